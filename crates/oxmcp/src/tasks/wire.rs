//! The messages of the extension, in the form of 2026-07-28.
//! See [tasks](https://github.com/modelcontextprotocol/ext-tasks).

use oxmcp_protocol::{
    EmptyResult, ErrorObject, InputResponses, Meta, Method, Notification, OrderedMap, Payload,
    RawJson, TaskParams, TaskStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/tasks";

/// The result type of a call that became a task.
pub(crate) const RESULT_TYPE: &str = "task";

/// The key of subscriptions to tasks, whose value is a list of task IDs.
pub(crate) const LISTEN_KEY: &str = "taskIds";

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
    /// The ID of the task.
    pub task_id: String,
    /// The answers, by the keys of the task's input requests. Some requests may stay unanswered.
    pub input_responses: InputResponses,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl UpdateTaskParams {
    /// Creates answers for a task.
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

/// The state of a task: the result of `tasks/get`, and the params of `notifications/tasks`. Without outcome and input requests,
/// it is also the answer to a call that became a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskState {
    /// The ID of the task.
    pub task_id: String,
    /// The status of the task.
    pub status: TaskStatus,
    /// A description of the status, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// The time at which the task was created, in ISO 8601.
    pub created_at: String,
    /// The time of the last change, in ISO 8601.
    pub last_updated_at: String,
    /// The time for which the task is kept after its creation, in milliseconds. `None` means forever.
    pub ttl_ms: Option<u64>,
    /// The suggested interval between polls, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// The open questions, by their keys, if the task requires input. Each is a request of the server, with its method and its
    /// params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<OrderedMap<RawJson>>,
    /// The result that would have answered the call, if the task is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The error that would have answered the call, if the task has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

impl Payload for TaskState {}
