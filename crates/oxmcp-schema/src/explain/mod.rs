//! Explanations: failures of validation in words that a model can act on.
//!
//! | | |
//! |---|---|
//! | `messages` | a failure as a violation |
//! | `rules` | limits and combinations in words |
//! | `misfit` | values that are nearly of the right type |
//! | `misspelt` | members that are nearly a property |
//! | `expected` | a schema in words, and lists and quotes |
//! | `refused` | the property that a type refuses though the schema accepts it |
//! | `integers` | integers that a type does not read as the schema does |
//! | `spelling` | the nearest known name |
//! | `watched_object` | an object that a type is watched reading, for `misspelt` and `refused` |

pub(crate) mod expected;
pub(crate) mod integers;
pub(crate) mod messages;
pub(crate) mod misfit;
pub(crate) mod misspelt;
pub(crate) mod refused;
pub(crate) mod rules;
pub(crate) mod spelling;
mod watched_object;
