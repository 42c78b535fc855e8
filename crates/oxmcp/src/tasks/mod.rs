//! Tasks: calls that go on when they have been answered, in 2026-07-28 and later.
//!
//! A call that takes long outlives the patience of the client that waits for it. With this extension a server answers it with a
//! task, which the client asks for until it is done, answers its questions, and may cancel. It is the server that decides, for
//! each call, and only for clients that declare the extension; all others wait, as ever. The handler is the same for both.
//!
//! ```
//! use std::time::Duration;
//! use oxmcp::{RequestContext, Server, Tool, tasks::{TaskPolicy, TaskTool, Tasks}};
//!
//! async fn report(cx: RequestContext) -> String {
//!     for page in 1..=100 {
//!         cx.progress(page).total(100).message("writing").await;
//!         // … a page takes its time …
//!     }
//!     "the report".to_owned()
//! }
//!
//! let server = Server::new("office", "1.0.0")
//!     .extension(Tasks::in_memory().extension())
//!     .tool(Tool::new("report", "Write a report", report).task(TaskPolicy::After(Duration::from_secs(5))));
//! # assert!(server.check().is_ok());
//! ```
//!
//! Each principal has its own tasks; an id that is unknown, has expired or is somebody else's is answered alike. Where a
//! [`MemoryTaskStore`] keeps them, they end with their process.
//!
//! Several processes may share a [`TaskStore`], and each answers for all tasks in it. A call that runs as a task leases it, for 15
//! seconds at a time. Where its process ends or stalls for longer, another one that serves requests of this extension ends the
//! task as failed, with an error that says so; it is not run again, since nobody knows what of it was done. A process that comes
//! back to such a task changes nothing in it, and its handler is cancelled. This holds as well where the work was left to somebody
//! else: the process whose handler waits for it must live.
//!
//! See the [extension](https://github.com/modelcontextprotocol/ext-tasks).

// The files of this room, which stands on what the rest of the crate offers everybody:
//
// | `policy` | [`TaskPolicy`], when a call becomes a task |
// | `tool` | tools with a policy, and what their handlers know of their task |
// | `running` | a call that runs on as a task |
// | `engine` | [`Tasks`]: settings, ids, making, finding and changing tasks |
// | `orphans` | ending the tasks of processes that died |
// | `methods` | the methods of the extension, and completing tasks from elsewhere |
// | `record` | what is kept of a task, and how it changes |
// | `store` | the trait of stores |
// | `memory` | the store in memory |
// | `wire` | the messages |

mod engine;
mod memory;
mod methods;
mod orphans;
mod policy;
mod record;
mod running;
pub(crate) mod store;
mod tool;
mod wire;

pub use engine::Tasks;
pub use memory::MemoryTaskStore;
pub use methods::{ServerTasks, TaskControl};
pub use policy::TaskPolicy;
pub use record::{TaskOutcome, TaskRecord};
pub use store::{StoredTask, TaskStore};
pub use tool::{TaskContext, TaskTool};
pub use wire::{CancelTask, GetTask, ID, TaskChanged, TaskState, UpdateTask, UpdateTaskParams};
