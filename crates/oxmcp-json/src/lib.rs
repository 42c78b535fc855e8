//! JSON as text: checked once, then walked over and handed on without building values.
//!
//! A [`Cursor`] checks text of which nothing is known and hands out its values as [`Text`]s; a `Text` is walked over without a
//! second check; [`write_string`] appends a string as JSON. What they promise is held against serde_json by property tests.
//!
//! | | |
//! |---|---|
//! | `cursor` | [`Cursor`]: the one pass over unchecked text |
//! | `text` | [`Text`], [`Members`], [`Items`], [`Walk`]: values that are known to be JSON |
//! | `names` | names that stand twice in an object |
//! | `strings` | reading and writing strings |

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
