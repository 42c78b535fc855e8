//! Completing arguments while they are typed.
//! See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).

mod completer;
mod completing;
mod output;
mod serve;

pub use completer::{Completer, CompleterArguments, IntoCompleter};
pub use completing::Completing;
pub use output::IntoCompletion;
pub(super) use serve::{Completers, Completes, can_complete, complete};
