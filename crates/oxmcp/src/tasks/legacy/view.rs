//! The view of a task in 2025-11-25: its fields, its status, and its result.

use std::collections::BTreeMap;

use oxmcp_protocol::{
    CreateTaskResult, JsonObject, Meta, Method, Revision, Task, TaskPayload, TaskStatus,
    method::{self, GetTask},
};
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use super::super::{record::TaskRecord, state::iso_8601};
use crate::error::{Error, Result};

/// Whether a revision has its own tasks.
pub(crate) fn has_tasks(revision: Revision) -> bool {
    method::is_in(method::REQUESTS_TO_SERVER, GetTask::NAME, revision)
}

/// The answer to a call that became a task.
pub(crate) fn created(task: &TaskRecord) -> CreateTaskResult {
    CreateTaskResult::from(shown(task))
}

/// A task in the format of 2025-11-25, where the task of a failed tool has failed. In later revisions it is completed.
pub(crate) fn shown(task: &TaskRecord) -> Task {
    let mut shown = Task::new(task.id.as_str(), iso_8601(task.created_ms));
    shown.last_updated_at = iso_8601(task.updated_ms);
    shown.ttl = Some(task.ttl_ms);
    shown.poll_interval = Some(task.poll_interval_ms);
    shown.status = task.status.clone();
    shown.status_message.clone_from(&task.status_message);
    if task.has_tool_failed && task.status == TaskStatus::Completed {
        shown.status = TaskStatus::Failed;
        shown.status_message = Some("the tool failed; see tasks/result".to_owned());
    }
    shown
}

/// The `_meta` with the task that a message belongs to.
pub(crate) fn related(id: &str) -> Meta {
    Meta::from_iter([(Meta::RELATED_TASK, json!({"taskId": id}))])
}

/// The result of a call, with the task that it belongs to.
///
/// # Errors
/// If the result is not an object, which cannot happen.
pub(crate) fn payload(id: &str, result: &RawValue) -> Result<TaskPayload> {
    const META: &str = "_meta";
    let unfit = |error| Error::internal(format!("could not read the result of a task: {error}"));
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(result.get()).map_err(unfit)?;
    let own = members
        .get(META)
        .map(|meta| serde_json::from_str(meta.get()));
    let mut meta: JsonObject = own.transpose().map_err(unfit)?.unwrap_or_default();
    meta.extend(related(id).as_object().cloned().unwrap_or_default());
    members.insert(META.to_owned(), to_raw_value(&meta).map_err(unfit)?);
    to_raw_value(&members).map(TaskPayload::from).map_err(unfit)
}
