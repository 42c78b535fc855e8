//! URI templates by [RFC 6570](https://www.rfc-editor.org/rfc/rfc6570): parsing, expansion, and matching, which the RFC
//! does not define.
//!
//! [`UriTemplate`] parses and expands a template. [`Matcher`] extracts the values from a URI without backtracking, and
//! refuses ambiguous templates. To expand a template of a server, see
//! [`ResourceTemplate::expand`](crate::ResourceTemplate::expand).

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
