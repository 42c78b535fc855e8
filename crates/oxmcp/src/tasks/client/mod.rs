//! Tasks of a client: tool calls that the server runs as tasks, awaited like any other call, or held by a handle.

// | `driver` | [`ClientTasks`], and the tool calls of a client with tasks |
// | `start` | a call up to the answer that tells whether it became a task |
// | `core` | the wait for a task of 2025-11-25 |
// | `drive` | [`Drive`], which polls a task until it is over |
// | `exchange` | the requests about a task, and their retries |
// | `handle` | [`TaskHandle`], a call that is held as a task |
// | `reference` | [`TaskReference`], by which a task is resumed |
// | `pace` | the pauses between the polls of a task, and the deadlines of its call |
// | `push` | the subscription to a task |

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
