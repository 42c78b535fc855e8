//! The rules for servers that offer apps, with the identifiers that other tools use, and functions that check them.
//!
//! [`check`] checks a running server, and the other functions what it returns. A server that is built with this crate is checked
//! by the same functions before it serves.

mod finding;
mod listed;
#[cfg(feature = "host")]
mod session;

pub use finding::{Finding, Rule};
#[cfg(feature = "server")]
pub(crate) use listed::check_html;
pub use listed::{check_contents, check_resource, check_result, check_tool};
#[cfg(feature = "host")]
pub use session::check;
