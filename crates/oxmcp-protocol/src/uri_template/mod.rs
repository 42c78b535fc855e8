//! URI templates by [RFC 6570](https://www.rfc-editor.org/rfc/rfc6570): parsing, expansion, and matching, which the RFC
//! does not define.

//!
//! | | |
//! |---|---|
//! | `parse` | [`UriTemplate`] |
//! | `expand` | expansion of a template with values to a URI |
//! | `matcher` | [`Matcher`]: extraction of the values from a URI, without backtracking |
//! | `resource` | [`ResourceTemplate::expand`](crate::ResourceTemplate::expand) |
//! | `ambiguity` | refusal of templates that cannot be matched in one way only |

mod ambiguity;
mod expand;
mod matcher;
mod parse;
mod resource;
#[cfg(test)]
mod tests;

pub use expand::Value;
pub use matcher::{Captured, Captures, Matcher};
pub use parse::UriTemplate;
