//! Full validator: every keyword of every dialect, on a parsed value. It has the last word.
//!
//! It is our own, since nothing else that is kept well fits. The crate `jsonschema` was used before: it is complete and
//! quick, and with the fifty crates that it stands on it was more than half of the build of a whole server. The others
//! are incomplete, or bring the same crates for formats and URIs, which are hints and names here. Tests hold this one against
//! `jsonschema`, and the work that a value may cause is bounded besides.
//!
//! A schema becomes nodes that name each other by number ([`nodes`]), which [`compile`] and [`keywords`] make; references are looked up
//! in [`resources`]. [`run`] holds a value against the nodes, with [`apply`] for the keywords that apply
//! other schemas, and collects [`Failure`](failure::Failure)s, which are put into words elsewhere.
//!
//! Whether a schema is one is asked in the same way, by the [`grammar`] of its dialect.
//!
//! | | |
//! |---|---|
//! | `compile`, `nodes`, `keywords` | from a document to numbered nodes |
//! | `resources`, `uri` | the targets of references |
//! | `dialect`, `grammar` | the dialects, and whether a schema is one |
//! | `run`, `apply`, `at` | a value held against the nodes, within a budget of work |
//! | `failure` | the failures that are found |
//! | `number`, `pattern` | numbers by value; ECMAScript patterns |

mod apply;
mod at;
pub(crate) mod compile;
pub(crate) mod dialect;
pub(crate) mod failure;
pub(crate) mod grammar;
mod keywords;
pub(crate) mod nodes;
pub(crate) mod number;
mod pattern;
mod resources;
pub(crate) mod run;
pub(crate) mod uri;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;
