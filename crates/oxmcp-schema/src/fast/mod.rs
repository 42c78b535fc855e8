//! Fast path: checking values against simple schemas, and reading and writing them, in one pass.
//!
//! It only ever accepts values: otherwise the full validator decides.

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod read;
pub(crate) mod values;
pub(crate) mod write;
