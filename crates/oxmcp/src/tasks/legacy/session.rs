//! The session that created a task in 2025-11-25, and receives notifications of its progress and status.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{
    Notification, ProgressParams, ProgressToken, TaskStatus,
    method::{Progress, TaskStatusChanged},
};
use serde::Serialize;
use tokio::time::timeout;

use super::{
    super::record::TaskRecord,
    view::{related, shown},
};
use crate::{
    session::{
        connection::{Connection, RequestContext},
        handler::detached::DetachedProgress,
    },
    sync::Mutex,
};

/// The time that a notification waits for space. A client that reads nothing gets no notifications, and learns everything by
/// polling.
const PATIENCE: Duration = Duration::from_millis(250);

/// The session that created a task. Over HTTP, it is notified on its GET stream.
pub(crate) struct TaskSession {
    connection: Arc<Connection>,
    /// The progress token of the call, valid for as long as its task runs.
    progress_token: Option<ProgressToken>,
    told: Mutex<Told>,
}

/// The status and the progress in the last notifications to the session.
struct Told {
    status: TaskStatus,
    done: f64,
}

impl TaskSession {
    pub(crate) fn of(cx: &RequestContext) -> Self {
        let parts = cx.parts();
        Self {
            connection: Arc::clone(parts.connection.trunk()),
            progress_token: parts.progress_token.clone(),
            told: Mutex::new(Told {
                status: TaskStatus::Working,
                done: f64::NEG_INFINITY,
            }),
        }
    }

    /// Notifies the session of progress, if the call asked for it. Progress that does not increase is skipped.
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#task-progress-notifications).
    pub(crate) async fn report(&self, id: &str, report: DetachedProgress) {
        let Some(token) = &self.progress_token else {
            return;
        };
        let DetachedProgress {
            done,
            total,
            message,
        } = report;
        let is_more = done > self.told.lock().done;
        if !is_more || !done.is_finite() {
            return;
        }
        self.told.lock().done = done;
        let mut params = ProgressParams::new(token.clone(), done);
        params.total = total;
        params.message = message;
        params.meta = related(id);
        self.notify(Progress::NAME, params).await;
    }

    /// Notifies the session of the status, if it has changed.
    /// See [task status](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#task-status-notification).
    pub(crate) async fn tell(&self, task: &TaskRecord) {
        let shown = shown(task);
        if self.told.lock().status == shown.status {
            return;
        }
        self.told.lock().status = shown.status.clone();
        self.notify(TaskStatusChanged::NAME, shown).await;
    }

    async fn notify(&self, method: &'static str, params: impl Serialize) {
        let sent = self.connection.notify(method, params);
        // A session that has ended gets no notification.
        let _ = timeout(PATIENCE, sent).await;
    }
}
