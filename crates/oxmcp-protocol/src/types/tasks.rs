//! Tasks: requests that continue to run after a first response, an experimental feature of 2025-11-25.
//!
//! See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    meta::object::Meta,
    types::pagination::Cursor,
    values::{json::JsonObject, open_enum::open_enum},
};

/// The metadata of a request that is to run as a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long to keep the task after its creation, in milliseconds.
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
    /// The status of a task.
    pub enum TaskStatus {
        /// The task is running.
        Working = "working",
        /// The task waits for input from the peer.
        InputRequired = "input_required",
        /// The task is completed and has its result.
        Completed = "completed",
        /// The task failed.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The id of the task.
    pub task_id: String,
    /// The status of the task.
    pub status: TaskStatus,
    /// Details about the status, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// The time of the creation, in ISO 8601.
    pub created_at: String,
    /// The time of the last change, in ISO 8601.
    pub last_updated_at: String,
    /// How long the task is kept after its creation, in milliseconds. `None` means forever.
    pub ttl: Option<u64>,
    /// The suggested interval between polls, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// Metadata of the protocol and of extensions (`_meta`), if the task is the whole result or all params.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Task {
    /// Creates a running task with the time of its creation, in ISO 8601.
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

/// The result of a request that continues to run as a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// Metadata of the protocol and of extensions (`_meta`).
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
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl TaskParams {
    /// Creates the params for a task.
    #[must_use]
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
            ..Self::default()
        }
    }
}

/// The result of `tasks/result`: the result of the request that ran as a task, of any type.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskPayload(Box<RawValue>);

impl TaskPayload {
    /// Returns the result as raw JSON.
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
    #[serde(deserialize_with = "crate::lenient::list")]
    pub tasks: Vec<Task>,
    /// The cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

/// The capability of a client to run requests as tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientTasksCapability {
    /// Support for `tasks/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// Support for `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that can run as tasks, by the parts of their methods: `sampling.createMessage`, `elicitation.create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<JsonObject>,
}

/// The capability of a server to run requests as tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerTasksCapability {
    /// Support for `tasks/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// Support for `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that can run as tasks, by the parts of their methods: `tools.call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<JsonObject>,
}
