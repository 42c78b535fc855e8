//! Takeover: a task whose process has ended goes on in another one, which runs its handler again from the top. What that has
//! learned and done before comes from the journal that is stored with the task.

// | `journal` | what a handler has asked and done, in order, and another run of it |
// | `replay` | the call and the journal as they are stored |
// | `orphans` | finding the tasks of processes that ended, and going on with them |

mod journal;
mod orphans;
mod replay;

pub(super) use journal::{Entry, Question, Run, Step};
pub(super) use orphans::look_for_orphans;
pub(super) use replay::MAX_BYTES;
pub use replay::TaskReplay;
