//! Takeover: a task whose process has ended continues in another process, which runs its handler again from the top. Earlier
//! answers and results of steps come from the journal that is stored with the task.

mod journal;
mod orphans;
mod replay;

pub(crate) use journal::{Entry, Question, Run, Step};
pub(crate) use orphans::look_for_orphans;
pub(crate) use replay::MAX_BYTES;
pub use replay::TaskReplay;
