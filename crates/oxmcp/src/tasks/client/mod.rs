//! Tasks of a client: tool calls that the server runs as tasks, awaited like any other call or held by a handle.

mod core;
mod drive;
mod driver;
mod exchange;
mod handle;
mod pace;
mod push;
mod reference;
mod start;

pub use driver::ClientTasks;
pub use handle::{AsTask, ResumeTask, TaskHandle};
pub use reference::TaskReference;
