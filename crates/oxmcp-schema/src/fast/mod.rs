//! Fast path: plain schemas checked, and values read, in one walk over the text.
//!
//! It only ever accepts: where it does not, the full validator decides.
//!
//! | | |
//! |---|---|
//! | `check` | the compiled form of a plain schema |
//! | `accept` | the walk that validates |
//! | `read` | the walk that validates and deserializes |
//! | `values` | the deserializer of single values |

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod read;
pub(crate) mod values;
