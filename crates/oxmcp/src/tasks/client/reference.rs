//! [`TaskReference`], which resumes a task in another session or another process.

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

/// A reference that resumes a task in another session or another process: see
/// [`TaskHandle::reference`](super::TaskHandle::reference) and [`ResumeTask::resume_task`](super::ResumeTask::resume_task).
///
/// It can be stored with serde. Store it like a secret: anyone who knows the task ID in it may be able to read the task. It
/// contains no other secrets, and `Debug` does not show the ID.
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
    pub(crate) fn new(session: &ClientSession, tool: &str, task_id: &str) -> Self {
        Self {
            task_id: task_id.to_owned(),
            tool: tool.to_owned(),
            revision: session.revision(),
            endpoint: endpoint(session),
            server: session.server_info().map(|it| it.name.clone()),
        }
    }

    /// Returns the ID of the task.
    #[must_use]
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// Returns the name of the tool that was called.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the revision in which the task was created. Sessions whose revision has the same kind of tasks can resume it.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the name that the server gave itself, if any.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Checks that the task can be resumed in a session. Returns the session's kind of tasks.
    pub(crate) fn check(&self, session: &ClientSession) -> Result<Era> {
        let era = Era::of(session);
        if self.endpoint != endpoint(session) {
            let server = self.server.as_deref().unwrap_or("another server");
            return Err(Error::misuse(format!(
                "cannot resume the task: it belongs to {server:?} at another URL or command; connect the session the same way"
            )));
        }
        let was_modern = self.revision.is_modern();
        match era {
            Some(era) if was_modern == (era == Era::Extension) => Ok(era),
            _ => Err(Error::unsupported(format!(
                "cannot resume the task: it was created in revision {}, and this session speaks {}",
                self.revision,
                session.revision()
            ))),
        }
    }
}

/// A digest of the server's name, which identifies sessions with the same server.
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
