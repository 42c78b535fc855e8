//! Questions that a handler asks of the user, of a model, or for the client's roots, while it serves a request.
//!
//! A handler is written once. In a session that `initialize` opened, a question is a request to the client, made while the
//! handler waits. A modern request is answered with the questions and made again with the answers; then the handler runs from
//! its beginning, and finds the earlier answers and results of steps in its journal. Between the rounds the journal travels
//! with the client, sealed.
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
//!
//! | file | content |
//! |---|---|
//! | `context.rs` | the methods of a handler: `ask`, `sample`, `roots`, `step` |
//! | `question.rs` | one or several questions, and reading their answers |
//! | `form.rs` | the form that asks for a type |
//! | `check.rs` | checks of questions and answers |
//! | `detach.rs` | contexts whose questions and steps outlive the request |
//! | `live_session.rs` | questions as requests to the client |
//! | `rounds.rs` | questions as the result of the request |
//! | `journal.rs` | the questions, answers and steps of a handler |
//! | `sealed_state.rs` | the journal on its way through the client |
//! | `reply.rs` | handlers that ask by the [`Reply`] that they return |
//! | `returned.rs` | returned questions: read and checked for rounds, asked in a loop in sessions without rounds |
//! | `roots.rs` | the roots of a client, cached until they change |
//! | `server.rs`, `settings.rs` | asking outside of requests, and the settings |

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
