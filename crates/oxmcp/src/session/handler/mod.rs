//! Handlers and what they are given.
//!
//! | file | |
//! |---|---|
//! | `traits.rs` | functions that are handlers |
//! | `with_state.rs` | handlers that share a state |
//! | `context.rs` | the context of a request |
//! | `error.rs` | what handlers may fail with |

pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod traits;
pub(crate) mod with_state;

// old names
pub(crate) use traits::{Handler, HandlerContext, HandlerFuture};
