//! Handlers and what they are given.
//!
//! | file | |
//! |---|---|
//! | `traits.rs` | functions that are handlers, and their errors |
//! | `with_state.rs` | handlers that share a state |
//! | `context.rs` | the context of a request |

pub(crate) mod context;
pub(crate) mod traits;
pub(crate) mod with_state;
