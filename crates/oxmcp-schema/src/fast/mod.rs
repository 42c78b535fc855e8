//! Fast path: plain schemas checked, and values read and written, in one walk.
//!
//! It only ever accepts: where it does not, the full validator decides.
//!
//! | | |
//! |---|---|
//! | `check` | the compiled form of a plain schema |
//! | `accept` | the walk that validates |
//! | `read` | the walk that validates and deserializes |
//! | `write` | the serializer that validates what it writes |
//! | `values` | the deserializer of strings, and what serde_json reads |

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod read;
pub(crate) mod values;
pub(crate) mod write;
