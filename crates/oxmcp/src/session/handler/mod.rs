//! Handlers and what they are given.
//!
//! | file | |
//! |---|---|
//! | `traits.rs` | functions that are handlers, and their errors |
//! | `with_state.rs` | handlers that share a state |
//! | `state_scope.rs` | where many handlers are given one state |
//! | `context.rs` | the context of a request |
//! | `detached.rs` | what a handler goes on with when its request was answered |

pub(crate) mod context;
pub(crate) mod detached;
pub(crate) mod state_scope;
pub(crate) mod traits;
pub(crate) mod with_state;
