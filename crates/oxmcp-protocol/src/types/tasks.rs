//! Tasks: requests that run on after they are answered, the experiment of 2025-11-25.
//!
//! See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    meta::object::Meta,
    types::pagination::Cursor,
    values::{json::JsonObject, open_enum::open_enum},
};

/// Asks for a request to run as a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long to keep the task after it was made, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

/// The task that a message belongs to: the value of [`Meta::RELATED_TASK`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTaskMetadata {
    /// The id of the task.
    pub task_id: String,
}

open_enum! {
    /// How far a task is.
    pub enum TaskStatus {
        /// It runs.
        Working = "working",
        /// It waits for the other side.
        InputRequired = "input_required",
        /// It has its result.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// What it is asked for by.
    pub task_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// More about that, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was made, in ISO 8601.
    pub created_at: String,
    /// When it changed last, in ISO 8601.
    pub last_updated_at: String,
    /// How long it is kept after it was made, in milliseconds. `None` means for ever.
    pub ttl: Option<u64>,
    /// How often to ask for it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// What travels beside, where the task is the whole result or all params.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Task {
    /// A task that was made at a time, in ISO 8601, and runs.
    #[must_use]
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl: None,
            poll_interval: None,
            meta: Meta::default(),
        }
    }
}

/// The result of a request that runs on as a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl From<Task> for CreateTaskResult {
    fn from(task: Task) -> Self {
        Self {
            task,
            meta: Meta::default(),
        }
    }
}

/// The params of `tasks/get`, `tasks/result` and `tasks/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskParams {
    /// The id of the task.
    pub task_id: String,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl TaskParams {
    /// The params for a task.
    #[must_use]
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
            ..Self::default()
        }
    }
}

/// The result of `tasks/result`: what the request itself would have had, whatever that is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskPayload(Box<RawValue>);

impl TaskPayload {
    /// The result as it stands.
    #[must_use]
    pub fn get(&self) -> &RawValue {
        &self.0
    }
}

impl From<Box<RawValue>> for TaskPayload {
    fn from(result: Box<RawValue>) -> Self {
        Self(result)
    }
}

/// The result of `tasks/list`: one page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks of this page.
    pub tasks: Vec<Task>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

/// A client can run requests as tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientTasksCapability {
    /// It lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// It cancels them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that can be tasks, by the parts of their methods: `sampling.createMessage`, `elicitation.create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<JsonObject>,
}

/// A server can run requests as tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerTasksCapability {
    /// It lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// It cancels them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that can be tasks, by the parts of their methods: `tools.call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<JsonObject>,
}
