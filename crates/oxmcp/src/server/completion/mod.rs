//! Completion of arguments while they are typed.
//! See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
//!
//! | file | content |
//! |---|---|
//! | `definition.rs` | [`Completer`], and the types that it can be made of |
//! | `handler.rs` | [`Completing`], the input of a completion function |
//! | `output.rs` | the types that a completion function may return |
//! | `registered.rs` | the completers of a prompt or a resource template |
//!
//! The request is served in `../dispatch/lookup.rs`.

mod definition;
mod handler;
mod output;
mod registered;

pub use definition::{Completer, IntoCompleter};
pub use handler::{CompleterArguments, Completing};
pub use output::IntoCompletion;
pub(super) use registered::{Completers, Completes, can_complete};
