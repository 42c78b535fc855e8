//! Tasks as a part of the protocol, in 2025-11-25: the client asks for them, and their wire format differs.
//! See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
//!
//! The record of a task is the same for both eras; this module is the second interface to it.

// | `methods` | `tasks/get`, `tasks/result`, `tasks/cancel`, `tasks/list` |
// | `session` | the notifications of progress and status to the session that created a task |
// | `view` | a task in the wire format of this revision |

mod methods;
mod session;
mod view;

pub(super) use methods::add_methods;
pub(super) use session::TaskSession;
pub(super) use view::{created, has_tasks};
