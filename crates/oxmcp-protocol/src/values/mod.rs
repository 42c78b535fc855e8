//! Values that types of the protocol are made of.
//!
//! | | |
//! |---|---|
//! | `blob` | bytes in base64 |
//! | `json` | any JSON, kept as text, and numbers as the protocol writes them |
//! | `ordered_map` | maps whose order is kept |
//! | `open_enum` | enums that keep a name that they do not know, and setters |
//! | `tagged` | unions that a member tells apart |

pub(crate) mod blob;
pub(crate) mod json;
pub(crate) mod open_enum;
pub(crate) mod ordered_map;
pub(crate) mod tagged;
