//! The messages of the extension, as 2026-07-28 has them.
//! See [tasks](https://github.com/modelcontextprotocol/ext-tasks).

use oxmcp_protocol::{
    EmptyResult, ErrorObject, InputResponses, Meta, Method, Notification, Payload, TaskParams,
    TaskStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::record::{TaskOutcome, TaskRecord};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/tasks";

/// The result type of a call that became a task.
pub(super) const RESULT_TYPE: &str = "task";

/// The key of subscriptions: a list of ids.
pub(super) const LISTEN_KEY: &str = "taskIds";

/// The request `tasks/get`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GetTask;

impl Method for GetTask {
    const NAME: &'static str = "tasks/get";
    type Params = TaskParams;
    type Result = TaskState;
}

/// The request `tasks/update`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UpdateTask;

impl Method for UpdateTask {
    const NAME: &'static str = "tasks/update";
    type Params = UpdateTaskParams;
    type Result = EmptyResult;
}

/// The request `tasks/cancel`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CancelTask;

impl Method for CancelTask {
    const NAME: &'static str = "tasks/cancel";
    type Params = TaskParams;
    type Result = EmptyResult;
}

/// The notification `notifications/tasks`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TaskChanged;

impl Notification for TaskChanged {
    const NAME: &'static str = "notifications/tasks";
    type Params = TaskState;
}

/// The params of `tasks/update`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// The id of the task.
    pub task_id: String,
    /// The answers, by the keys of what the task asks. They may be some of them.
    pub input_responses: InputResponses,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl UpdateTaskParams {
    /// Answers for a task.
    #[must_use]
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self {
            task_id: task_id.into(),
            input_responses,
            meta: Meta::default(),
        }
    }
}

impl Payload for UpdateTaskParams {
    fn metadata(&mut self) -> Option<&mut Meta> {
        Some(&mut self.meta)
    }
}

/// A task as its owner sees it: the result of `tasks/get`, and the params of `notifications/tasks`. Without what a task came to
/// and what it asks, it is what a call is answered with that became a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskState {
    /// What it is asked for by.
    pub task_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// More about that, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was made, in ISO 8601.
    pub created_at: String,
    /// When it changed last, in ISO 8601.
    pub last_updated_at: String,
    /// How long it is kept after it was made, in milliseconds. `None` means for ever.
    pub ttl_ms: Option<u64>,
    /// How often to ask for it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// What it asks, by keys, where it requires input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<Map<String, Value>>,
    /// What the call would have been answered with, where it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The error that the call would have been answered with, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

impl Payload for TaskState {}

impl TaskState {
    /// What a call is answered with that became a task.
    pub(super) fn created(task: &TaskRecord) -> Self {
        Self {
            task_id: task.id.clone(),
            status: task.status.clone(),
            status_message: task.status_message.clone(),
            created_at: iso_8601(task.created_ms),
            last_updated_at: iso_8601(task.updated_ms),
            ttl_ms: Some(task.ttl_ms),
            poll_interval_ms: Some(task.poll_interval_ms),
            input_requests: None,
            result: None,
            error: None,
        }
    }

    /// All of it.
    pub(super) fn of(task: &TaskRecord) -> Self {
        let mut state = Self::created(task);
        if task.status == TaskStatus::InputRequired {
            let questions = task.questions.iter();
            let questions = questions.map(|(key, question)| {
                // A question was written as JSON.
                let question = serde_json::from_str(question.get()).unwrap_or_default();
                (key.clone(), question)
            });
            state.input_requests = Some(questions.collect());
        }
        match &task.outcome {
            Some(TaskOutcome::Result(result)) => state.result = Some(result.clone()),
            Some(TaskOutcome::Error(error)) => state.error = Some(error.clone()),
            None => {}
        }
        state
    }
}

/// A time since 1970 in ISO 8601, in UTC. The calendar is that of Howard Hinnant's `civil_from_days`.
fn iso_8601(ms: u64) -> String {
    let (days, ms) = (ms / 86_400_000, ms % 86_400_000);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    // Years begin in March here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let ms = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_iso_8601() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(ms), expected);
        }
    }
}
