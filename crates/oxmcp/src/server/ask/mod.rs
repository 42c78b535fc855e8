//! Questions that a handler asks of the user, of a model, or for the client's roots, while it serves a request.
//!
//! A handler is written once, for all revisions. In a legacy session, a question is a request to the client, and the handler
//! waits for the answer. A modern request is answered with the questions, and the client repeats it with the answers: the
//! handler then runs from its beginning, and finds earlier answers and step results in its journal. Between the rounds, the
//! client keeps the journal, sealed.
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
//!
//! # Where it is decided
//!
//! Whether a client may be asked: `LegacySession::may_be_asked` (`server/dispatch/identity.rs`) and `question` (`check.rs`).
//! State: the journal (`session/handler/journal.rs`), sealed and opened in `rounds.rs` (`sealed_state.rs`). The first of
//! `state_keys` seals it, or else the key of the process; each of the keys opens it (`session/sealing.rs`). State that does not
//! open fails with -32602. The state of a [`Reply`] belongs to the handler, which seals
//! it by `RequestContext::seal_state` if it must.

mod check;
mod context;
mod detach;
mod form;
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
pub use live_session::SessionCall;
pub(crate) use live_session::ask_for_task;
pub use question::{Question, Questions, UserDecision};
pub use reply::Reply;
pub(crate) use roots::RootsCache;
pub(crate) use rounds::{needs_rounds, serve};
pub(crate) use settings::AskSettings;
