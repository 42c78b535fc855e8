//! The end of a process, whoever brings it about: one task per process that waits for it and reaps it.

use std::{process::ExitStatus, time::Duration};

use tokio::{
    process::Child,
    sync::{oneshot, watch},
    time,
};

use super::group::Group;

/// How long SIGKILL may take; only a process that hangs inside the kernel needs longer, and that one cannot be helped.
const KILLED_WITHIN: Duration = Duration::from_secs(1);
/// How often to look whether a process group is gone: no event tells.
const GROUP_POLL: Duration = Duration::from_millis(10);

/// How long to wait at each step of the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// From the end of its input to SIGTERM.
    pub(super) exit: Duration,
    /// From SIGTERM to SIGKILL.
    pub(super) kill: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            exit: Duration::from_secs(3),
            kill: Duration::from_secs(2),
        }
    }
}

/// What became of the process so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Life {
    /// How it ended, once it has.
    pub(super) status: Option<ExitStatus>,
    /// It had to be killed.
    pub(super) forced: bool,
    /// It and all that it had started are gone.
    pub(super) over: bool,
}

pub(super) struct Supervisor {
    child: Child,
    group: Group,
    /// A value means that the connection was closed; no sender any more, that it was dropped.
    closed: oneshot::Receiver<()>,
    life: watch::Sender<Life>,
    patience: Patience,
}

impl Supervisor {
    pub(super) fn new(
        child: Child,
        closed: oneshot::Receiver<()>,
        life: watch::Sender<Life>,
        patience: Patience,
    ) -> Self {
        let group = Group::led_by(&child);
        Self {
            child,
            group,
            closed,
            life,
            patience,
        }
    }

    /// Waits for the end of the process, or brings it about. Dropping the future kills the group.
    pub(super) async fn run(mut self) {
        let closed = tokio::select! {
            biased;
            () = ended(&mut self.child, &self.life) => None,
            closed = &mut self.closed => Some(closed.is_ok()),
        };
        match closed {
            None => {}
            Some(true) => self.end(self.patience.exit).await,
            Some(false) => self.end(Duration::ZERO).await,
        }
        self.end_the_rest().await;
        self.group.let_go();
        self.life.send_modify(|life| life.over = true);
    }

    /// Ends the process, by ever stronger means.
    async fn end(&mut self, patience: Duration) {
        if self.ends_within(patience).await {
            return;
        }
        #[cfg(unix)]
        {
            tracing::debug!("the server did not exit when its input was closed; sending SIGTERM");
            self.group.terminate();
            if self.ends_within(self.patience.kill).await {
                return;
            }
        }
        self.life.send_modify(|life| life.forced = true);
        self.group.kill();
        // It fails where the process has just ended.
        let _ = self.child.start_kill();
        self.ends_within(KILLED_WITHIN).await;
    }

    async fn ends_within(&mut self, patience: Duration) -> bool {
        let ended = ended(&mut self.child, &self.life);
        time::timeout(patience, ended).await.is_ok()
    }

    /// Ends what the process had started and left behind. A server whose process is gone is over, and a child that
    /// holds its standard output would keep the connection open for ever.
    async fn end_the_rest(&self) {
        if self.group.is_gone() {
            return;
        }
        #[cfg(unix)]
        {
            self.group.terminate();
            if self.rest_ends_within(self.patience.kill).await {
                return;
            }
        }
        self.group.kill();
        self.rest_ends_within(KILLED_WITHIN).await;
    }

    async fn rest_ends_within(&self, patience: Duration) -> bool {
        let gone = async {
            while !self.group.is_gone() {
                time::sleep(GROUP_POLL).await;
            }
        };
        time::timeout(patience, gone).await.is_ok()
    }
}

/// Waits until the process has ended, reaps it, and tells how it ended. Cancel safe.
async fn ended(child: &mut Child, life: &watch::Sender<Life>) {
    let status = child.wait().await.ok();
    life.send_modify(|life| life.status = status);
}
