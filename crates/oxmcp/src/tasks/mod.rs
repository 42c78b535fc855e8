//! Tasks: tool calls that outlive their response, in 2025-11-25 and from 2026-07-28 on.
//!
//! A long call may exceed the timeout of the client that waits for it. With this extension, a server answers such a call with a
//! task. The client polls the task until it is done, answers its questions, and may cancel it.
//!
//! The server decides for each call, and only for clients that declare the extension; calls of other clients wait as usual. In
//! 2025-11-25, tasks are part of the protocol, and the client asks for one. The handler is the same in all cases.
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
//! Each principal has its own tasks. An ID that is unknown, has expired, or belongs to another principal or to the other kind
//! of tasks gets the same error. Tasks in a [`MemoryTaskStore`] end with their process.
//!
//! Several processes may share a [`TaskStore`], and each serves all tasks in it. A running task holds a lease of 15 seconds,
//! which its process renews. If the process ends or stalls for longer, another one takes the task over and runs its handler
//! again from the top, with the answers so far and the results of its [steps](crate::RequestContext::step).
//!
//! A step that was interrupted fails the task, unless it is [idempotent](crate::RequestContext::step_idempotent); so does a
//! tool that must not run again ([`task_live`](TaskTool::task_live)). A stalled process that wakes up after the takeover cannot
//! change the task, and its handler is cancelled. A process that shuts down [hands its tasks over](TaskControl::hand_over).
//! Work that a handler has [left](TaskContext::leave_task) to others never runs again.
//!
//! See the [extension](https://github.com/modelcontextprotocol/ext-tasks), and
//! [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks) of 2025-11-25.

// Where it is decided:
//
// - When a call becomes a task: `run` (`tool.rs`), in the tool's layer (`server/tool/layer.rs`), which detaches the handler;
//   `start` (`running.rs`) hands its future to `Inner::drive`. If the client asks for a task (2025-11-25): `take_task` in
//   `server/dispatch/lookup.rs`. Ownership: `Tasks::find` and `own_ids` (`engine.rs`), and `scopes.rs`. The first final change
//   to `TaskRecord` (`record.rs`) wins.
// - A process that has ended: `takeover/orphans.rs` looks from `Server::begin_serving` on, and claims; `resume` (`running.rs`)
//   calls the tool again through `server/dispatch/replay.rs`, and `Run` (`takeover/journal.rs`) knows what it did. Clients, in
//   `client/`: `start.rs` finds out, `Drive` (`drive.rs`) waits, `Clock` (`pace.rs`) is its timeout; `CallDriver` in
//   `client/requests/call_driver.rs` leads there.
// - When a task expires: each store deletes it, `remove_expired` (`memory.rs`) and its siblings in oxmcp-sqlite and oxmcp-redis.

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod engine;
#[cfg(feature = "server")]
mod legacy;
#[cfg(feature = "server")]
mod memory;
#[cfg(feature = "server")]
mod methods;
#[cfg(feature = "server")]
mod policy;
#[cfg(feature = "server")]
mod record;
#[cfg(feature = "server")]
mod running;
#[cfg(feature = "server")]
mod scopes;
#[cfg(feature = "server")]
mod state;
#[cfg(feature = "server")]
pub(crate) mod store;
#[cfg(feature = "server")]
mod takeover;
#[cfg(feature = "server")]
mod tool;
mod wire;

#[cfg(feature = "client")]
pub use client::{AsTask, ClientTasks, ResumeTask, TaskHandle, TaskReference};
#[cfg(feature = "server")]
pub use engine::Tasks;
#[cfg(feature = "server")]
pub use memory::MemoryTaskStore;
#[cfg(feature = "server")]
pub use methods::{ServerTasks, TaskControl};
#[cfg(feature = "server")]
pub use policy::TaskPolicy;
#[cfg(feature = "server")]
pub use record::{TaskOutcome, TaskRecord};
#[cfg(feature = "server")]
pub use store::{StoredTask, TaskStore};
#[cfg(feature = "server")]
pub use takeover::TaskReplay;
#[cfg(feature = "server")]
pub use tool::{TaskContext, TaskTool};
pub use wire::{CancelTask, GetTask, ID, TaskChanged, TaskState, UpdateTask, UpdateTaskParams};
