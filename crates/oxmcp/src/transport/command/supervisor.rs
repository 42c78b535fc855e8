//! The supervisor of a process: a task that waits for it to exit, or ends it, and reaps it.

use std::{process::ExitStatus, thread, time::Duration};

use tokio::{
    process::Child,
    sync::{oneshot, watch},
    time,
};

use crate::transport::command::process_group::ProcessGroup;

/// The time that SIGKILL may take. Only a process that hangs inside the kernel needs longer, and nothing can end that.
const KILLED_WITHIN: Duration = Duration::from_secs(1);
/// The interval of the checks whether a process group is gone: there is no event for it.
const GROUP_POLL: Duration = Duration::from_millis(10);

/// The time that the supervisor waits at each step of ending a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExitTimeouts {
    /// From the end of its input to SIGTERM.
    pub(crate) exit: Duration,
    /// From SIGTERM to SIGKILL.
    pub(crate) kill: Duration,
}

impl Default for ExitTimeouts {
    fn default() -> Self {
        Self {
            exit: Duration::from_secs(3),
            kill: Duration::from_secs(2),
        }
    }
}

/// The state of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessState {
    /// The exit status, once the process has ended.
    pub(crate) status: Option<ExitStatus>,
    /// Whether the process had to be killed.
    pub(crate) forced: bool,
    /// Whether the process and all processes that it had started are gone.
    pub(crate) over: bool,
}

pub(crate) struct Supervisor {
    /// The process; it is taken only when the supervisor is dropped.
    child: Option<Child>,
    group: ProcessGroup,
    /// Receives a value when the connection is closed. The sender is dropped if the connection is dropped.
    closed: oneshot::Receiver<()>,
    state: watch::Sender<ProcessState>,
    timeouts: ExitTimeouts,
}

impl Supervisor {
    pub(crate) fn new(
        child: Child,
        closed: oneshot::Receiver<()>,
        state: watch::Sender<ProcessState>,
        timeouts: ExitTimeouts,
    ) -> Self {
        let group = ProcessGroup::led_by(&child);
        Self {
            child: Some(child),
            group,
            closed,
            state,
            timeouts,
        }
    }

    /// Waits for the process to exit, or ends it. Dropping the future kills the group.
    pub(crate) async fn run(mut self) {
        let closed = tokio::select! {
            biased;
            () = ended(&mut self.child, &self.state) => None,
            closed = &mut self.closed => Some(closed.is_ok()),
        };
        match closed {
            None => {}
            Some(true) => self.end(self.timeouts.exit).await,
            Some(false) => self.end(Duration::ZERO).await,
        }
        self.end_the_rest().await;
        self.group.let_go();
        self.state.send_modify(|state| state.over = true);
    }

    /// Ends the process: waits for its exit, then sends SIGTERM (on Unix), then kills it.
    async fn end(&mut self, timeout: Duration) {
        if self.ends_within(timeout).await {
            return;
        }
        #[cfg(unix)]
        {
            tracing::debug!("server did not exit after its input closed; sending SIGTERM");
            self.group.terminate();
            if self.ends_within(self.timeouts.kill).await {
                return;
            }
        }
        self.state.send_modify(|state| state.forced = true);
        self.group.kill();
        // It fails if the process has just ended.
        let _ = self.child.as_mut().map(Child::start_kill);
        self.ends_within(KILLED_WITHIN).await;
    }

    async fn ends_within(&mut self, timeout: Duration) -> bool {
        let ended = ended(&mut self.child, &self.state);
        time::timeout(timeout, ended).await.is_ok()
    }

    /// Ends the child processes that the process left behind. A server ends with its main process, and a child that holds its
    /// standard output would keep the connection open forever.
    async fn end_the_rest(&self) {
        if self.group.is_gone() {
            return;
        }
        #[cfg(unix)]
        {
            self.group.terminate();
            if self.rest_ends_within(self.timeouts.kill).await {
                return;
            }
        }
        self.group.kill();
        self.rest_ends_within(KILLED_WITHIN).await;
    }

    async fn rest_ends_within(&self, timeout: Duration) -> bool {
        let gone = async {
            while !self.group.is_gone() {
                time::sleep(GROUP_POLL).await;
            }
        };
        time::timeout(timeout, gone).await.is_ok()
    }
}

/// A runtime that shuts down drops the task and no longer reaps processes, so this kills and reaps the process without it.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.group.kill();
        let Some(mut child) = self.child.take() else {
            return;
        };
        if child.id().is_none() {
            return;
        }
        // It fails if the process has just ended.
        let _ = child.start_kill();
        if matches!(child.try_wait(), Ok(None)) {
            // If no thread can be started, its next parent process reaps it.
            let reaper = thread::Builder::new().name("oxmcp-reaper".to_owned());
            let _ = reaper.spawn(move || reap(child));
        }
    }
}

/// Waits for a process that was killed, and reaps it.
fn reap(mut child: Child) {
    let mut waited = Duration::ZERO;
    while waited < KILLED_WITHIN && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(GROUP_POLL);
        waited += GROUP_POLL;
    }
}

/// Waits until the process has ended, reaps it, and publishes its exit status. Cancel safe.
async fn ended(child: &mut Option<Child>, state: &watch::Sender<ProcessState>) {
    let status = match child {
        Some(child) => child.wait().await.ok(),
        None => None,
    };
    state.send_modify(|state| state.status = status);
}
