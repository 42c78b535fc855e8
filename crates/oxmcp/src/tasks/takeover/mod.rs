//! Takeover: a task whose process has ended continues in another process, which runs its handler again from the top. The answers
//! and the results of steps from before come from the journal that is stored with the task.

// | `journal` | the questions and steps of a handler, in order, and another run of it |
// | `replay` | the stored call and journal |
// | `orphans` | finding the tasks of processes that ended, and continuing them |

mod journal;
mod orphans;
mod replay;

pub(super) use journal::{Entry, Question, Run, Step};
pub(super) use orphans::look_for_orphans;
pub(super) use replay::MAX_BYTES;
pub use replay::TaskReplay;
