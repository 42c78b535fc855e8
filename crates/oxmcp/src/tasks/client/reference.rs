//! [`TaskReference`], by which a task is resumed from another session or another process.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use oxmcp_protocol::Revision;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::exchange::Era;
use crate::{
    client::ClientSession,
    error::{Error, Result},
};

/// A reference by which a task is resumed from another session or another process: see
/// [`TaskHandle::reference`](super::TaskHandle::reference) and [`ResumeTask::resume_task`](super::ResumeTask::resume_task).
///
/// It can be stored, by serde. Apart from the id of the task it contains no secret. A holder of the id may be able to read the
/// task, so store the reference like a secret. `Debug` does not show the id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReference {
    task_id: String,
    tool: String,
    revision: Revision,
    /// A digest of the name of the server; the name of a command includes its arguments.
    endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

impl TaskReference {
    pub(super) fn new(session: &ClientSession, tool: &str, task_id: &str) -> Self {
        Self {
            task_id: task_id.to_owned(),
            tool: tool.to_owned(),
            revision: session.revision(),
            endpoint: endpoint(session),
            server: session.server_info().map(|it| it.name.clone()),
        }
    }

    /// The id of the task.
    #[must_use]
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// The name of the tool that was called.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The revision in which the task was created. The task can be resumed in sessions whose revision has the same kind of tasks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The name of the server as stated by the server itself, if it stated one.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Checks that the task can be resumed in a session. Returns the design of tasks that the session has.
    pub(super) fn check(&self, session: &ClientSession) -> Result<Era> {
        let era = Era::of(session);
        if self.endpoint != endpoint(session) {
            let server = self.server.as_deref().unwrap_or("another server");
            return Err(Error::misuse(format!(
                "the task was made by {server:?}, which was connected to in another way than the server of this session: resume \
                 it in a session that is connected by the same URL or command"
            )));
        }
        let was_modern = self.revision.is_modern();
        match era {
            Some(era) if was_modern == (era == Era::Extension) => Ok(era),
            _ => Err(Error::unsupported(format!(
                "the task was made in revision {}, and is not found in one that speaks {}",
                self.revision,
                session.revision()
            ))),
        }
    }
}

/// A digest of the server's name, by which sessions with the same server are recognized.
fn endpoint(session: &ClientSession) -> String {
    let digest = Sha256::digest(session.state().server_name.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(digest)
}

impl fmt::Debug for TaskReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskReference")
            .field("tool", &self.tool)
            .field("revision", &self.revision)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
