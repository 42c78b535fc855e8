//! Handlers, and their contexts and shared states.

pub(crate) mod context;
pub(crate) mod detached;
pub(crate) mod state_scope;
pub(crate) mod traits;
pub(crate) mod with_state;
