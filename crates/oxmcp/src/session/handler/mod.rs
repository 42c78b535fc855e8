//! Handlers, and the contexts and states that they are given.
//!
//! | file | |
//! |---|---|
//! | `traits.rs` | functions that are handlers, and their errors |
//! | `with_state.rs` | handlers that share a state |
//! | `state_scope.rs` | scopes in which many handlers are given one state |
//! | `context.rs` | the context of a request |
//! | `detached.rs` | handlers that continue after their request was answered |

pub(crate) mod context;
pub(crate) mod detached;
pub(crate) mod state_scope;
pub(crate) mod traits;
pub(crate) mod with_state;
