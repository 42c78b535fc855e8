//! Session that has made a task in 2025-11-25, which is told of its progress and its status unasked.

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

/// How long a message waits for room. A client that reads nothing is told nothing: it learns all by asking.
const PATIENCE: Duration = Duration::from_millis(250);

/// The session that has made a task. Over HTTP it is told on the stream that it gets for what belongs to no request.
pub(in crate::tasks) struct TaskSession {
    connection: Arc<Connection>,
    /// The token of the call, which is good for as long as its task runs.
    progress_token: Option<ProgressToken>,
    told: Mutex<Told>,
}

/// What the session knows.
struct Told {
    status: TaskStatus,
    done: f64,
}

impl TaskSession {
    pub(in crate::tasks) fn of(cx: &RequestContext) -> Self {
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

    /// Tells of progress, if the call asked for it. It must increase.
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#task-progress-notifications).
    pub(in crate::tasks) async fn report(&self, id: &str, report: DetachedProgress) {
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

    /// Tells of the status, where it is another one.
    /// See [task status](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#task-status-notification).
    pub(in crate::tasks) async fn tell(&self, task: &TaskRecord) {
        let shown = shown(task);
        if self.told.lock().status == shown.status {
            return;
        }
        self.told.lock().status = shown.status.clone();
        self.notify(TaskStatusChanged::NAME, shown).await;
    }

    async fn notify(&self, method: &'static str, params: impl Serialize) {
        let sent = self.connection.notify(method, params);
        // A session that has ended hears nothing.
        let _ = timeout(PATIENCE, sent).await;
    }
}
