//! URI templates by [RFC 6570](https://www.rfc-editor.org/rfc/rfc6570): parsed, expanded, and matched, which the RFC leaves
//! to others.

mod doubts;
mod expand;
mod matcher;
mod parse;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use expand::Value;
pub(crate) use matcher::{Captured, Captures, Matcher};
pub(crate) use parse::UriTemplate;
