//! URI templates by [RFC 6570](https://www.rfc-editor.org/rfc/rfc6570): parsed, expanded, and matched, which the RFC leaves
//! to others.

//!
//! | | |
//! |---|---|
//! | `parse` | [`UriTemplate`] |
//! | `expand` | a template with values, as a URI |
//! | `matcher` | [`Matcher`]: from a URI to the values, from the last part to the first, so that nothing is tried and taken back |
//! | `resource` | [`ResourceTemplate::expand`](crate::ResourceTemplate::expand) |
//! | `ambiguity` | templates that cannot be matched in one way only |

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
