//! The group: its settings, its sessions, and its calls.
//!
//! A supervisor for each server (`supervisor.rs`) connects, lists and reconnects, and writes what it learns to the state
//! (`state.rs`), which makes the catalog of merged lists (`catalog.rs`) from it. Calls only read the state.

mod builder;
mod call;
mod catalog;
mod event;
mod lent;
mod lists;
mod requests;
#[cfg(feature = "gateway")]
mod routes;
mod search;
mod session;
mod state;
mod status;
mod supervisor;

pub use builder::ClientGroup;
pub use call::GroupCall;
pub use event::{GroupEvent, GroupEvents};
pub use search::ToolSearch;
pub use session::{GroupSession, Origin};
pub use status::{ServerState, ServerStatus};
