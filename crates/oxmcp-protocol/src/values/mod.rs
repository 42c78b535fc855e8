//! Building blocks of the types of the protocol.

pub(crate) mod blob;
pub(crate) mod json;
pub(crate) mod open_enum;
pub(crate) mod ordered_map;
pub(crate) mod tagged;
