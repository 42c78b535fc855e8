//! Tasks: tool calls that continue after they have been answered, in 2026-07-28 and later, and in 2025-11-25.
//!
//! A long call may exceed the time-out of the client that waits for it. With this extension, a server answers such a call with a
//! task. The client polls the task until it is done, answers its questions, and may cancel it. The server decides for each call,
//! and only for clients that declare the extension; the calls of all other clients wait as usual. In 2025-11-25, tasks are a part
//! of the protocol, and the client asks for one. The handler is the same in all cases.
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
//! Each principal has its own tasks. The same error answers an id that is unknown, has expired, or belongs to another principal or
//! to the other era. Tasks in a [`MemoryTaskStore`] end with their process.
//!
//! Several processes may share a [`TaskStore`], and each answers for all tasks in it. A call that runs as a task leases it, for 15
//! seconds at a time. If its process ends or stalls for longer, another process that serves takes the task over and runs its
//! handler again from the top: with the answers so far, and the results of its [steps](crate::RequestContext::step). A step that
//! had begun and not ended fails the task, with an error that says so, unless it is
//! [idempotent](crate::RequestContext::step_idempotent); so does a tool that must not run again
//! ([`task_live`](TaskTool::task_live)). A process that returns to a task after another one took it over changes nothing in it, and
//! its handler is cancelled. A process that shuts down [hands its tasks over](TaskControl::hand_over). Work that a handler has
//! [left](TaskContext::leave_task) to others is never run again.
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
//   `client/`: `start.rs` finds out, `Drive` (`drive.rs`) waits, `Clock` (`pace.rs`) is its time-out; `CallDriver` in
//   `client/requests/call_driver.rs` leads there.

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
