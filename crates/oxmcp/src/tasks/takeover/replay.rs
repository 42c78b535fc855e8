//! The stored call and journal of a task, for another run of its handler.

use serde::{Deserialize, Serialize};

use super::journal::{Entry, Journal, Run};
use crate::{
    error::{Error, Result},
    server::StoredCall,
    session::handler::journal::RecordedAnswer,
};

/// The maximum number of takeovers from a process that ended. A task that crashes more processes than this would crash them
/// all.
const MAX_TAKEOVERS: u32 = 3;
/// The maximum number of bytes that are stored for the replay of one task. A task with more data is not run again.
pub(crate) const MAX_BYTES: usize = 256 << 10;

/// The data that a task needs to continue in another process: the call that became the task, and the questions and steps of its
/// handler.
///
/// Arguments, answers and results of steps can be secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskReplay {
    call: StoredCall,
    journal: Journal,
    /// The number of takeovers from processes that ended.
    takeovers: u32,
    /// Whether the process of the task handed it over.
    is_handed_over: bool,
}

impl TaskReplay {
    pub(crate) fn new(call: StoredCall, known: Vec<RecordedAnswer>) -> Self {
        Self {
            call,
            journal: Journal::of(known),
            takeovers: 0,
            is_handed_over: false,
        }
    }

    pub(crate) fn call(&self) -> &StoredCall {
        &self.call
    }

    /// The approximate size, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.call.bytes() + self.journal.bytes()
    }

    pub(crate) fn note(&mut self, entry: Entry) {
        self.journal.note(entry);
    }

    /// The run that creates the journal.
    pub(crate) fn first_run(&self) -> Run {
        Run::first(&self.journal)
    }

    /// A later run of the handler.
    pub(crate) fn next_run(&self) -> Run {
        Run::again(&self.journal)
    }

    /// Marks the task as handed over by its process.
    pub(crate) fn hand_over(&mut self) {
        self.is_handed_over = true;
    }

    /// Records that another process takes the task over.
    ///
    /// # Errors
    /// If the task cannot continue.
    pub(crate) fn take_over(&mut self) -> Result<()> {
        self.journal.check()?;
        if self.is_handed_over {
            self.is_handed_over = false;
            return Ok(());
        }
        if self.takeovers >= MAX_TAKEOVERS {
            return Err(Error::internal(format!(
                "task abandoned: {} processes ended while running it; check which work was done before calling the tool again",
                self.takeovers + 1
            )));
        }
        self.takeovers += 1;
        Ok(())
    }
}
