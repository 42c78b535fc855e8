//! JSON as text: checked once, then traversed and passed on without building values.
//!
//! A [`Cursor`] checks text of unknown validity and hands out its values as [`Text`]s; a `Text` is traversed without a
//! second check; [`write_string`] appends a string as JSON. Property tests compare their results with those of
//! serde_json.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod cursor;
mod names;
mod strings;
mod text;

pub use cursor::{Checked, Cursor, Mark, SyntaxError};
pub use strings::write_string;
pub use text::{Items, Members, SPACE, Text, Walk, pointer_token};

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
