//! Handlers and what they are given.
//!
//! | file | |
//! |---|---|
//! | `traits.rs` | functions that are handlers, and their errors |
//! | `with_state.rs` | handlers that share a state |
//! | `state_scope.rs` | where many handlers are given one state |
//! | `context.rs` | the context of a request |

pub(crate) mod context;
pub(crate) mod state_scope;
pub(crate) mod traits;
pub(crate) mod with_state;
