//! Completion of arguments while they are typed.
//! See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
//!
//! The request is served in `../dispatch/lookup.rs`.

mod definition;
mod handler;
mod output;
mod registered;

pub use definition::{Completer, IntoCompleter};
pub use handler::{CompleterArguments, CompletionInput};
pub use output::IntoCompletion;
pub(crate) use registered::{Completers, Completes, can_complete};
