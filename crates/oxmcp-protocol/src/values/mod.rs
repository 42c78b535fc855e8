//! Building blocks of the types of the protocol.
//!
//! | | |
//! |---|---|
//! | `blob` | bytes in base64 |
//! | `json` | any JSON, kept as text, and numbers as the protocol writes them |
//! | `ordered_map` | maps that keep the order of their entries |
//! | `open_enum` | enums that keep unknown names, and setters |
//! | `tagged` | unions whose variants are named by a member |

pub(crate) mod blob;
pub(crate) mod json;
pub(crate) mod open_enum;
pub(crate) mod ordered_map;
pub(crate) mod tagged;
