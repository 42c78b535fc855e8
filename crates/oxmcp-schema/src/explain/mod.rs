//! Explanations: descriptions of validation failures that a model can act on.
//!
//! | | |
//! |---|---|
//! | `messages` | violations from failures |
//! | `rules` | messages for limits and combinations |
//! | `misfit` | messages for errors in schemas |
//! | `misspelt` | members whose names are close to that of a property |
//! | `expected` | descriptions of schemas, lists and quotes |
//! | `refusal` | messages for values that a type refuses although the schema accepts them |
//! | `formats` | formats of strings: their names in words, and a check of the text |
//! | `refused` | the property that a type refuses although the schema accepts it |
//! | `integers` | integers that a type does not read in the same way as the schema |
//! | `spelling` | the nearest known name |
//! | `watched_object` | a deserializer that observes a type reading an object, for `misspelt` and `refused` |

pub(crate) mod expected;
mod formats;
pub(crate) mod integers;
pub(crate) mod messages;
pub(crate) mod misfit;
pub(crate) mod misspelt;
pub(crate) mod refusal;
pub(crate) mod refused;
pub(crate) mod rules;
pub(crate) mod spelling;
mod watched_object;
