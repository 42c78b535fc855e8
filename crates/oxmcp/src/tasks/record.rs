//! The task record: the stored data of a task, and its changes. Nothing here performs I/O or reads the clock.

use std::collections::BTreeMap;

use oxmcp_protocol::{ErrorObject, Revision, TaskStatus};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use super::takeover::{Entry, MAX_BYTES, TaskReplay};
use crate::error::Error;

/// The error message of an orphan that must not run again.
pub(crate) const ENDED: &str = "task interrupted: its process ended or stalled; check which work was done before calling the tool again";
/// The maximum number of open questions of one task. More are useless, because a user answers one form after another.
pub(crate) const MAX_QUESTIONS: usize = 32;

/// The stored data of a task. Serialize it as JSON, which includes the format version: a release that does not know the format
/// fails to read the record, rather than continue with half of it.
///
/// Arguments, questions, answers, results and the ID may be secrets: a store must not show them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRecord {
    #[serde(default = "this_format", deserialize_with = "known_format")]
    format: u32,
    /// The ID of the task, in the URL-safe alphabet.
    pub id: String,
    /// The name of the principal that owns the task. `None` stands for all callers without authentication, who share one owner.
    pub owner: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// The status of the task.
    pub status: TaskStatus,
    /// A description of the status, for people and models.
    pub status_message: Option<String>,
    /// The time at which the task was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of the last change, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The time for which the task is kept after its creation, in milliseconds.
    pub ttl_ms: u64,
    /// The interval at which clients should poll, in milliseconds.
    pub poll_interval_ms: u64,
    /// The open questions, as JSON, by their keys.
    pub questions: BTreeMap<String, Box<RawValue>>,
    /// The answers, by the keys of their questions. They are kept until the handler has received them or, if the handler may
    /// run again, until the task has ended.
    pub answers: BTreeMap<String, Box<RawValue>>,
    /// The number of questions so far, so that no key is used twice.
    pub asked: u64,
    /// The outcome of the task, once it has ended. A cancelled task has none.
    pub outcome: Option<TaskOutcome>,
    /// The revision of the call that became the task. The result exists only in its form, and clients of the other era do not
    /// see the task.
    #[serde(default = "latest")]
    pub revision: Revision,
    /// The scopes that the tool needs, separated by spaces, if the caller's token was checked against them.
    #[serde(default)]
    pub scopes: String,
    /// Whether the result reports that the tool failed.
    #[serde(default)]
    pub has_tool_failed: bool,
    /// The errors with which the client answered questions, by their keys. They are kept for as long as the answers.
    #[serde(default)]
    pub refusals: BTreeMap<String, ErrorObject>,
    /// The data that the handler needs to run again in another process. `None` if it must not run again, and once the task has
    /// ended.
    #[serde(default)]
    pub replay: Option<Box<TaskReplay>>,
    /// Whether another party does the work: the task does not depend on the process that began it.
    #[serde(default)]
    pub is_delegated: bool,
}

/// The format of records. It changes when a reader of the previous format would misread a record.
const FORMAT: u32 = 1;

fn this_format() -> u32 {
    FORMAT
}

fn known_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        FORMAT => Ok(FORMAT),
        other => Err(de::Error::custom(format!(
            "unsupported record format {other}; this release reads format {FORMAT}"
        ))),
    }
}

/// The revision of a record that was stored without one.
fn latest() -> Revision {
    Revision::LATEST
}

/// The outcome of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TaskOutcome {
    /// The result that would have answered the call, even if it reports that the tool failed.
    Result(Box<RawValue>),
    /// The protocol error that would have answered the call.
    Error(ErrorObject),
}

impl TaskRecord {
    /// Creates the record of a task that has just begun.
    #[must_use]
    pub fn new(id: impl Into<String>, tool: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            id: id.into(),
            owner: None,
            tool: tool.into(),
            status: TaskStatus::Working,
            status_message: None,
            created_ms: 0,
            updated_ms: 0,
            ttl_ms: 0,
            poll_interval_ms: 0,
            questions: BTreeMap::new(),
            answers: BTreeMap::new(),
            asked: 0,
            outcome: None,
            revision: latest(),
            scopes: String::new(),
            has_tool_failed: false,
            refusals: BTreeMap::new(),
            replay: None,
            is_delegated: false,
        }
    }

    /// Returns whether the task has ended. Then it never changes again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(
            self.status,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled
        )
    }

    /// Returns the approximate size of the record, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = self.questions.iter().chain(&self.answers);
        let texts: usize = texts.map(|(key, text)| key.len() + text.get().len()).sum();
        let of_error = |error: &ErrorObject| {
            let data = error.data.as_ref().map_or(0, |data| data.get().len());
            error.message.len() + data
        };
        let outcome = match &self.outcome {
            Some(TaskOutcome::Result(result)) => result.get().len(),
            Some(TaskOutcome::Error(error)) => of_error(error),
            None => 0,
        };
        let refusals = self.refusals.iter();
        let refusals: usize = refusals.map(|(key, it)| key.len() + of_error(it)).sum();
        let message = self.status_message.as_ref().map_or(0, String::len);
        let owner = self.owner.as_ref().map_or(0, String::len);
        let names = self.id.len() + self.tool.len() + self.scopes.len();
        let replay = self.replay.as_ref().map_or(0, |it| it.bytes());
        names + owner + message + texts + refusals + outcome + replay
    }

    /// Ends the task. The first end of a task is final.
    pub(crate) fn finish(&mut self, outcome: TaskOutcome) -> bool {
        if self.is_over() {
            return false;
        }
        self.status = match &outcome {
            TaskOutcome::Result(result) => {
                self.has_tool_failed = is_failure(result);
                TaskStatus::Completed
            }
            TaskOutcome::Error(error) => {
                self.status_message = Some(error.message.clone());
                TaskStatus::Failed
            }
        };
        self.outcome = Some(outcome);
        self.clear();
        true
    }

    /// Cancels the task, whatever its handler does afterwards.
    pub(crate) fn cancel(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        self.status = TaskStatus::Cancelled;
        self.clear();
        true
    }

    fn clear(&mut self) {
        self.questions.clear();
        self.answers.clear();
        self.refusals.clear();
        self.replay = None;
    }

    /// Records a question or a step of the handler. A handler with too much recorded data is not run again.
    pub(crate) fn note(&mut self, entry: Entry) -> bool {
        if self.is_over() {
            return false;
        }
        let answers = self.answers.values().map(|it| it.get().len());
        let answers: usize = answers.sum();
        if let Some(replay) = &mut self.replay {
            replay.note(entry);
            if replay.bytes() + answers > MAX_BYTES {
                self.replay = None;
            }
        }
        true
    }

    /// Prepares the task for another process that takes it over.
    pub(crate) fn hand_over(&mut self) -> bool {
        if let Some(replay) = &mut self.replay {
            replay.hand_over();
        }
        !self.is_over()
    }

    /// Lets another process take the task over, or ends the task if it cannot continue.
    pub(crate) fn take_over(&mut self) -> bool {
        let goes_on = match &mut self.replay {
            Some(replay) => replay.take_over(),
            None => Err(Error::internal(ENDED)),
        };
        match goes_on {
            Ok(()) => !self.is_over(),
            Err(error) => self.finish(TaskOutcome::Error(ErrorObject::from(&error))),
        }
    }

    /// Leaves the work to another party: the handler is never run again, even if its process ends.
    pub(crate) fn leave(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        self.replay = None;
        self.is_delegated = true;
        true
    }

    /// Sets the status message.
    pub(crate) fn report(&mut self, message: &str) -> bool {
        if self.is_over() || self.status_message.as_deref() == Some(message) {
            return false;
        }
        self.status_message = Some(message.to_owned());
        true
    }

    /// Adds a question, under a key that no other question of the task ever has. `None` if the task has ended or has too many
    /// questions.
    pub(crate) fn ask(&mut self, question: Box<RawValue>) -> Option<String> {
        if self.is_over() || self.questions.len() >= MAX_QUESTIONS {
            return None;
        }
        self.asked += 1;
        let key = format!("q{}", self.asked);
        self.questions.insert(key.clone(), question);
        self.status = TaskStatus::InputRequired;
        Some(key)
    }

    /// Accepts an answer. An answer to a question that is not open is ignored.
    pub(crate) fn answer(&mut self, key: &str, answer: &RawValue) -> bool {
        if self.is_over() || self.questions.remove(key).is_none() {
            return false;
        }
        self.answers.insert(key.to_owned(), answer.to_owned());
        self.settle();
        true
    }

    /// Accepts an error in place of an answer. An error for a question that is not open is ignored.
    pub(crate) fn refuse(&mut self, key: &str, error: ErrorObject) -> bool {
        if self.is_over() || self.questions.remove(key).is_none() {
            return false;
        }
        self.refusals.insert(key.to_owned(), error);
        self.settle();
        true
    }

    /// Withdraws a question whose answer the handler no longer waits for.
    pub(crate) fn withdraw(&mut self, key: &str) -> bool {
        let was_open = self.questions.remove(key).is_some();
        let was_refused = self.refusals.remove(key).is_some();
        let was_answered = self.answers.remove(key).is_some() || was_refused;
        if was_open {
            self.settle();
        }
        was_open || was_answered
    }

    fn settle(&mut self) {
        if self.questions.is_empty() && !self.is_over() {
            self.status = TaskStatus::Working;
        }
    }

    /// Extends the TTL while the task works. It is not extended while the task waits for its client or for work that another
    /// party does, because whether that party is still at work is unknown.
    pub(crate) fn extend(&mut self, by_ms: u64, at_most_ms: u64) -> bool {
        let longer = self.ttl_ms.saturating_add(by_ms).min(at_most_ms);
        let is_running = self.status == TaskStatus::Working && !self.is_delegated;
        let changes = is_running && longer > self.ttl_ms;
        if changes {
            self.ttl_ms = longer;
        }
        changes
    }
}

/// Whether a result reports that its tool failed.
fn is_failure(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Failure {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }

    serde_json::from_str(result.get()).is_ok_and(|it: Failure| it.is_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn task() -> TaskRecord {
        TaskRecord::new("t", "tool")
    }

    #[test]
    fn first_completion_wins() {
        let ends: [fn(&mut TaskRecord) -> bool; 3] = [
            |it| it.finish(TaskOutcome::Result(json("{}"))),
            |it| {
                it.finish(TaskOutcome::Error(ErrorObject::new(
                    oxmcp_protocol::ErrorCode::INTERNAL_ERROR,
                    "no",
                )))
            },
            TaskRecord::cancel,
        ];
        for first in ends {
            for second in ends {
                let mut task = task();
                task.ask(json("1"));
                assert!(first(&mut task));
                let before = serde_json::to_string(&task).unwrap();
                assert!(
                    !second(&mut task) && !task.report("later") && task.ask(json("2")).is_none()
                );
                assert!(!task.answer("q1", &json("3")) && !task.extend(1, 9));
                assert_eq!(serde_json::to_string(&task).unwrap(), before);
            }
        }
    }

    #[test]
    fn record_of_another_format_is_refused() {
        let text = serde_json::to_string(&task()).unwrap();
        assert!(text.starts_with(r#"{"format":1,"#), "{text}");
        let read = |text: &str| serde_json::from_str::<TaskRecord>(text).map(|it| it.id);
        assert_eq!(read(&text).unwrap(), "t");
        // Records of earlier releases have no format.
        assert_eq!(read(&text.replace(r#""format":1,"#, "")).unwrap(), "t");
        let newer = read(&text.replace(r#""format":1"#, r#""format":2"#)).unwrap_err();
        assert!(newer.to_string().contains("this release reads format 1"));
    }

    #[test]
    fn question_keys_are_never_reused() {
        let mut task = task();
        let first = task.ask(json("1")).unwrap();
        let second = task.ask(json("1")).unwrap();
        assert_ne!(first, second);
        assert!(task.answer(&first, &json("2")));
        assert_eq!(task.status, TaskStatus::InputRequired);
        // The same key answered twice: the first answer stands.
        assert!(!task.answer(&first, &json("3")) && !task.answer("q9", &json("3")));
        assert_eq!(task.answers[&first].get(), "2");
        assert!(task.withdraw(&second));
        assert_eq!(task.status, TaskStatus::Working);
        assert!(task.withdraw(&first));
        assert_eq!(task.ask(json("1")).unwrap(), "q3");
        // The number is written out: it is what a store and a client have to hold.
        for _ in 1..32 {
            task.ask(json("1")).unwrap();
        }
        assert_eq!(task.ask(json("1")), None);
    }

    #[test]
    fn error_replaces_a_single_answer() {
        let mut task = task();
        let error = || ErrorObject::new(oxmcp_protocol::ErrorCode::INTERNAL_ERROR, "no window");
        let key = task.ask(json("1")).unwrap();
        let before = task.bytes();
        assert!(task.refuse(&key, error()) && !task.refuse(&key, error()));
        assert!(!task.answer(&key, &json("2")) && task.answers.is_empty());
        assert_eq!(task.status, TaskStatus::Working);
        assert!(task.bytes() > before);
        assert!(task.withdraw(&key) && task.refusals.is_empty());
    }

    #[test]
    fn result_may_report_a_failed_tool() {
        for (result, has_failed) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"content":[{"isError":true}]}"#, false),
        ] {
            let mut task = task();
            assert!(task.finish(TaskOutcome::Result(json(result))));
            assert_eq!(task.has_tool_failed, has_failed, "{result}");
            // The stored status is the same for both eras.
            assert_eq!(task.status, TaskStatus::Completed);
        }
    }

    #[test]
    fn task_lifetime_is_extended_only_while_working() {
        let mut task = task();
        task.ttl_ms = 10;
        assert!(task.extend(10, 25) && task.extend(10, 25));
        assert_eq!(task.ttl_ms, 25);
        assert!(!task.extend(10, 25));
        task.ask(json("1"));
        assert!(!task.extend(10, 99));
    }

    #[test]
    fn delegated_task_lifetime_is_not_extended() {
        let mut task = task();
        task.ttl_ms = 10;
        assert!(task.leave() && task.is_delegated);
        assert!(!task.extend(10, 99));
        task.cancel();
        assert!(!task.leave());
    }
}
