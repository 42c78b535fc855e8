//! Handlers, and their shared states, journals and detached work.

pub(crate) mod detached;
#[cfg(feature = "server")]
pub(crate) mod journal;
pub(crate) mod state_scope;
pub(crate) mod traits;
pub(crate) mod with_state;
