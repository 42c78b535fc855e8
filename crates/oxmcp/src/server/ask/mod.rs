//! Questions that a handler asks of the user, of a model, or for the client's roots, while it serves a request.
//!
//! A handler is written once. In a session that `initialize` opened, a question is a request to the client, made while the
//! handler waits. A modern request is answered with the questions and made again with the answers; then the handler runs from
//! its beginning, and finds the earlier answers and results of steps in its journal. Between the rounds the journal travels
//! with the client, sealed.
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
//!
//! # Where it is decided
//!
//! Whether a client may be asked: `LegacySession::may_be_asked` (`server/dispatch/identity.rs`) and `question` (`check.rs`).
//! State: `journal.rs`, sealed and opened in `rounds.rs` (`sealed_state.rs`) by the first of `state_keys`, or by the key of the
//! process; any of them opens it (`session/sealing.rs`). State that does not open is -32602. The state of a [`Reply`] is the
//! handler's own, and is not sealed.

mod check;
mod context;
mod detach;
mod form;
mod journal;
mod live_session;
mod question;
mod reply;
mod returned;
mod roots;
mod rounds;
mod sealed_state;
mod server;
mod settings;

#[cfg(test)]
mod form_tests;
#[cfg(test)]
mod sealed_state_tests;

pub(crate) use context::question_digest;
pub(crate) use detach::{
    begin_again, detachable, go_on_detached, is_suspended, known, reply_input,
};
pub(crate) use journal::{RecordedAnswer, RecordedOutcome, RoundRequest};
pub use live_session::SessionCall;
pub(crate) use live_session::ask_for_task;
pub use question::{Asked, Question, Questions};
pub use reply::Reply;
pub(crate) use roots::RootsCache;
pub(crate) use rounds::{needs_rounds, serve};
pub(crate) use settings::AskSettings;
