//! A running server process, shared by its two halves.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    process::{Child, ChildStderr},
    sync::{oneshot, watch},
    time::{self, Instant},
};

use crate::{
    error::{Error, Result},
    sync::Mutex,
    transport::command::{
        diagnostics::{Diagnostics, ending},
        stderr::Stderr,
        supervisor::{ExitTimeouts, ProcessState, Supervisor},
    },
};

/// The time to wait for the exit of a server that has closed its output, so that the error can explain why.
const EXIT_AFTER_EOF: Duration = Duration::from_secs(1);
/// The time to wait for the rest of standard error of a server that has exited. Its children may keep it open.
const STDERR_AFTER_EXIT: Duration = Duration::from_millis(300);

/// The part of a process that both halves share. Dropping the last of them ends the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) diagnostics: Arc<Diagnostics>,
    state: watch::Receiver<ProcessState>,
    /// Closed at the end of standard error, when the sender is dropped.
    stderr: watch::Receiver<()>,
    close: Mutex<Option<oneshot::Sender<()>>>,
    closing: AtomicBool,
    /// The time at which a half first found the end of the connection.
    ended: OnceLock<Instant>,
}

impl Process {
    /// Starts the tasks that a process needs.
    pub(crate) fn supervise(
        child: Child,
        stderr: Option<ChildStderr>,
        name: String,
        timeouts: ExitTimeouts,
        policy: Stderr,
    ) -> Arc<Self> {
        let diagnostics = Arc::new(Diagnostics::new(name.clone()));
        let (stderr_open, stderr_end) = watch::channel(());
        if let Some(output) = stderr {
            tokio::spawn(policy.drain(output, name, Arc::clone(&diagnostics), stderr_open));
        }
        let (close, closed) = oneshot::channel();
        let (state_sender, state) = watch::channel(ProcessState::default());
        tokio::spawn(Supervisor::new(child, closed, state_sender, timeouts).run());
        Arc::new(Self {
            diagnostics,
            state,
            stderr: stderr_end,
            close: Mutex::new(Some(close)),
            closing: AtomicBool::new(false),
            ended: OnceLock::new(),
        })
    }

    /// The error of a server that has closed its output. `Ok` if the session has ended normally.
    ///
    /// # Cancel safety
    /// Cancel safe; the time that has been waited counts.
    pub(crate) async fn end_of_output(&self) -> Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(state) = self.exit().await else {
            let report = self.diagnostics.report("closed its standard output");
            return Err(Error::closed(report));
        };
        match state.status {
            Some(status) if status.success() && self.diagnostics.has_spoken() => Ok(()),
            _ => Err(self.exit_error(state)),
        }
    }

    /// The error of a write that failed because the server has ended.
    pub(crate) async fn end_of_input(&self) -> Option<Error> {
        self.exit().await.map(|state| self.exit_error(state))
    }

    /// Ends the process, whose input must be closed already, and waits until it has exited.
    pub(crate) async fn close(&self) -> Result<()> {
        self.closing.store(true, Ordering::Release);
        let close = self.close.lock().take();
        if let Some(close) = close {
            // It fails if the process has ended before.
            let _ = close.send(());
        }
        let mut state = self.state.clone();
        // It fails if the runtime shuts down, which has killed the process.
        let _ = state.wait_for(|state| state.over).await;
        let forced = state.borrow().forced;
        if forced {
            let report = "did not exit when asked to, and was killed";
            return Err(Error::timeout(self.diagnostics.report(report)));
        }
        Ok(())
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits a short time for the exit, and for the rest of standard error.
    async fn exit(&self) -> Option<ProcessState> {
        let deadline = *self.ended.get_or_init(Instant::now) + EXIT_AFTER_EOF;
        let mut state = self.state.clone();
        let exited = state.wait_for(|state| state.status.is_some());
        let state = *time::timeout_at(deadline, exited).await.ok()?.ok()?;
        let mut stderr = self.stderr.clone();
        let _ = time::timeout_at(deadline + STDERR_AFTER_EXIT, stderr.changed()).await;
        Some(state)
    }

    fn exit_error(&self, state: ProcessState) -> Error {
        let what = state.status.map_or_else(|| "ended".to_owned(), ending);
        Error::closed(self.diagnostics.report(&what))
    }
}
