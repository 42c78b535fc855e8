//! A running server, as its two halves share it.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    process::Child,
    sync::{oneshot, watch},
    time::{self, Instant},
};

use super::{
    CommandReader, CommandWriter, Stderr,
    evidence::{Evidence, ending},
    supervisor::{Life, Patience, Supervisor},
};
use crate::{Error, Result};

/// How long to wait for the exit of a server that has closed its output, to say why it did.
const EXIT_AFTER_EOF: Duration = Duration::from_secs(1);
/// How long to wait for the rest of standard error of a server that has exited; its children may keep it open.
const STDERR_AFTER_EXIT: Duration = Duration::from_millis(300);

/// What both halves know of the process. When the last of them is dropped, the process is ended.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) evidence: Arc<Evidence>,
    life: watch::Receiver<Life>,
    /// Its sender is dropped at the end of standard error.
    stderr: watch::Receiver<()>,
    close: Mutex<Option<oneshot::Sender<()>>>,
    closing: AtomicBool,
    /// When a half first found the connection at its end.
    ended: OnceLock<Instant>,
}

impl Process {
    /// Starts the tasks that a process needs, and gives its two halves.
    pub(super) fn attend(
        mut child: Child,
        name: String,
        patience: Patience,
        policy: Stderr,
        max_message_bytes: usize,
    ) -> (CommandReader, CommandWriter) {
        let stdin = child.stdin.take().expect("stdin was piped");
        let stdout = child.stdout.take().expect("stdout was piped");
        let evidence = Arc::new(Evidence::new(name.clone()));
        let (stderr_open, stderr) = watch::channel(());
        if let Some(output) = child.stderr.take() {
            tokio::spawn(policy.drain(output, name, Arc::clone(&evidence), stderr_open));
        }
        let (close, closed) = oneshot::channel();
        let (life_sender, life) = watch::channel(Life::default());
        tokio::spawn(Supervisor::new(child, closed, life_sender, patience).run());
        let process = Arc::new(Self {
            evidence,
            life,
            stderr,
            close: Mutex::new(Some(close)),
            closing: AtomicBool::new(false),
            ended: OnceLock::new(),
        });
        (
            CommandReader::new(stdout, Arc::clone(&process), max_message_bytes),
            CommandWriter::new(stdin, process),
        )
    }

    /// Why the server has closed its output: nothing to say if that is how a session ends.
    ///
    /// # Cancel safety
    /// Cancel safe; the time that was waited counts.
    pub(super) async fn end_of_output(&self) -> Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(life) = self.exit().await else {
            let report = self.evidence.report("closed its standard output");
            return Err(Error::closed(report));
        };
        match life.status {
            Some(status) if status.success() && self.evidence.has_spoken() => Ok(()),
            _ => Err(self.obituary(life)),
        }
    }

    /// Why nothing can be written any more, if it is because the server has ended.
    pub(super) async fn end_of_input(&self) -> Option<Error> {
        self.exit().await.map(|life| self.obituary(life))
    }

    /// Ends the process, whose input must have been closed, and waits until it is over.
    pub(super) async fn close(&self) -> Result<()> {
        self.closing.store(true, Ordering::Release);
        let close = self
            .close
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(close) = close {
            // It fails where the process has ended before.
            let _ = close.send(());
        }
        let mut life = self.life.clone();
        // It fails where the runtime shuts down, which has killed the process.
        let _ = life.wait_for(|life| life.over).await;
        let forced = life.borrow().forced;
        if forced {
            let report = "did not exit when it was told to, and was killed";
            return Err(Error::timeout(self.evidence.report(report)));
        }
        Ok(())
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits a moment for the exit, and for what the server had to say about it.
    async fn exit(&self) -> Option<Life> {
        let deadline = *self.ended.get_or_init(Instant::now) + EXIT_AFTER_EOF;
        let mut life = self.life.clone();
        let exited = life.wait_for(|life| life.status.is_some());
        let life = *time::timeout_at(deadline, exited).await.ok()?.ok()?;
        let mut stderr = self.stderr.clone();
        let _ = time::timeout_at(deadline + STDERR_AFTER_EXIT, stderr.changed()).await;
        Some(life)
    }

    fn obituary(&self, life: Life) -> Error {
        let what = life.status.map_or_else(|| "ended".to_owned(), ending);
        Error::closed(self.evidence.report(&what))
    }
}
