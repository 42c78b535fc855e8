//! Tasks of the protocol itself, as 2025-11-25 has them: the client asks for them, and they are shown otherwise.
//! See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
//!
//! What is kept of a task is the same for both eras; this room is the other way to it.

// | `methods` | `tasks/get`, `tasks/result`, `tasks/cancel`, `tasks/list` |
// | `session` | what the session that made a task is told of it unasked: its progress and its status |
// | `view` | a task as this revision shows it |

mod methods;
mod session;
mod view;

pub(super) use methods::add_methods;
pub(super) use session::TaskSession;
pub(super) use view::{created, has_tasks};
