//! Asking: what a handler wants to know of the user, of a model, or of the client's roots, while it serves a request.
//!
//! A handler is written once. In a session that `initialize` opened, a question is a request of the server's own, made
//! while the handler waits (`live.rs`). A modern request is answered with the questions (`serve.rs`) and made again with
//! the answers; then the handler runs from its beginning, and finds in its memory (`memory.rs`) what it has learned and
//! done before. Between the rounds the memory travels with the client, sealed (`state.rs`).
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

mod answer;
mod call;
mod capability;
mod context;
mod form;
mod key;
mod live;
mod memory;
mod question;
mod questions;
mod reply;
mod roots;
mod serve;
mod session;
mod settings;
mod shim;
mod state;
mod step;

#[cfg(test)]
mod form_tests;
#[cfg(test)]
mod state_tests;

pub use call::SessionCall;
pub use key::StateKey;
#[cfg(feature = "http-server")]
pub(crate) use key::random;
pub use question::{Asked, Question};
pub use questions::Questions;
pub use reply::Reply;
pub(crate) use roots::{OnRootsChanged, RootsCache};
pub(crate) use serve::{Asks, Target, is_wanted, serve};
pub(crate) use settings::AskSettings;
