//! Tasks of a client: calls of tools that their server runs on as tasks, awaited like any other, or held by a handle.

// | `driver` | [`ClientTasks`], and the calls of tools of a client with tasks |
// | `start` | a call up to the answer that says whether it is a task |
// | `core` | a task of 2025-11-25, waited for |
// | `drive` | a task, asked for until it is over |
// | `exchange` | the requests about a task, and what becomes of those that fail |
// | `handle` | [`TaskHandle`], a call that is held as a task |
// | `reference` | [`TaskReference`], by which a task is found again |
// | `pace` | how often a task is asked for, and how long it is waited for |
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
