//! Full validator: every keyword of every dialect, on a parsed value. Its verdict is final.
//!
//! It is a custom implementation, since no well-maintained crate fits. The crate `jsonschema` is complete and fast, but with
//! its fifty dependencies it takes more than half of the build time of a whole server. The others are incomplete, or have
//! the same dependencies for formats and URIs, which are only hints and names here.
//! Tests compare this validator with `jsonschema`; in addition, it limits the work that a value may cause.
//!
//! A schema is compiled by [`compile`] and [`keywords`] to nodes that refer to each other by number ([`nodes`]);
//! references are resolved by [`resources`]. [`run`] checks a value against the nodes, with [`apply`] for the keywords
//! that apply other schemas, and collects [`Failure`](failure::Failure)s, which [`explain`](crate::explain) describes.
//!
//! Whether a schema is valid is checked in the same way, by the [`grammar`] of its dialect.

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
