//! Tasks of 2025-11-25, as a part of the protocol: the client asks for them, and their wire format differs.
//! See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
//!
//! The record of a task is the same for both eras; this module is its second interface.

mod methods;
mod session;
mod view;

pub(crate) use methods::add_methods;
pub(crate) use session::TaskSession;
pub(crate) use view::{created, has_tasks};
