//! Orphans: tasks whose process has ended, and their takeover by another process with the same store.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::time::sleep;

#[cfg(feature = "http-server")]
use super::super::store::AnyTaskStore;
use super::super::{
    engine::{Local, MAX_TTL, Tasks},
    record::TaskRecord,
    running::resume,
    wire::ID,
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{Server, WeakServer},
    session::connection::RequestContext,
};

/// The maximum number of orphans in one round, the pause after a round, and the pause after a round that may have left some.
const ROUND: usize = 100;
const PAUSE: Duration = Duration::from_secs(5);
const SHORT_PAUSE: Duration = Duration::from_secs(1);

impl Tasks {
    /// The tasks of the server that received a request. Begins the search for orphans, unless it is running: tasks in memory
    /// are orphans only if this process has stalled.
    ///
    /// # Errors
    /// If the server does not have the extension.
    pub(crate) fn of(cx: &RequestContext) -> Result<Arc<Self>> {
        let missing = || {
            Error::misuse(format!(
                "the server does not have the extension {ID}; add it with `Server::extension`"
            ))
        };
        let tasks = cx.extension_state(ID).ok_or_else(missing)?;
        begin(&tasks, &cx.server()?);
        Ok(tasks)
    }

    /// Stores the tasks of a server in this store from now on, if they would otherwise be in memory, and searches for orphans
    /// there.
    #[cfg(feature = "http-server")]
    pub(crate) fn share(server: &Server, store: &Arc<dyn AnyTaskStore>) {
        let tasks: Option<Arc<Self>> = server.extension_state(ID);
        if let Some(tasks) = tasks.filter(|it| it.share_store(store)) {
            begin(&tasks, server);
        }
    }
}

/// Begins the search for orphans when a server begins to serve, if its store may contain some, without waiting for a request
/// about a task.
pub(crate) fn look_for_orphans(server: &Server) {
    let tasks: Option<Arc<Tasks>> = server.extension_state(ID);
    if let Some(tasks) = tasks.filter(|it| it.may_have_orphans()) {
        begin(&tasks, server);
    }
}

/// Begins the search for orphans, unless it has begun before or tasks are being handed over. It ends with the server.
fn begin(tasks: &Arc<Tasks>, server: &Server) {
    let local = &tasks.local;
    // Each request calls this, and the search is nearly always running.
    if local.is_sweeping.load(Ordering::Relaxed) || local.closing.is_cancelled() {
        return;
    }
    if !local.is_sweeping.swap(true, Ordering::Relaxed) {
        let sweeping = Sweeping(Arc::clone(local));
        tokio::spawn(sweep(Arc::downgrade(tasks), server.downgrade(), sweeping));
    }
}

/// Marks the search for orphans as running. A runtime that ends drops it, and the next request starts the search again.
struct Sweeping(Arc<Local>);

impl Drop for Sweeping {
    fn drop(&mut self) {
        self.0.is_sweeping.store(false, Ordering::Relaxed);
    }
}

async fn sweep(tasks: Weak<Tasks>, server: WeakServer, _sweeping: Sweeping) {
    loop {
        let pause = {
            let (Some(tasks), Some(server)) = (tasks.upgrade(), server.upgrade()) else {
                return;
            };
            if tasks.local.closing.is_cancelled() {
                return;
            }
            match round(&tasks, &server).await {
                Ok(found) if found >= ROUND => SHORT_PAUSE,
                Ok(_) => PAUSE,
                Err(error) => {
                    warn(&error);
                    PAUSE
                }
            }
        };
        sleep(pause).await;
    }
}

/// Takes some orphans over. Returns how many were found.
async fn round(tasks: &Arc<Tasks>, server: &Server) -> Result<usize> {
    let orphans = tasks.orphans(ROUND).await?;
    for id in &orphans {
        // An orphan that cannot be taken over does not prevent the takeover of the others.
        if let Err(error) = take_over(tasks, server, id).await {
            warn(&error);
        }
    }
    Ok(orphans.len())
}

/// Takes an orphan over, or ends it, unless another party does its work. If several processes find it, one of them claims it.
/// If that one dies as well, the task is an orphan again.
async fn take_over(tasks: &Arc<Tasks>, server: &Server, id: &str) -> Result<()> {
    let Some(epoch) = tasks.claim(id).await? else {
        return Ok(());
    };
    if tasks.load(id).await?.is_some_and(|it| it.task.is_delegated) {
        // The lease expired early, for example because a store in a file ends all leases when it is opened. The new lease only
        // prevents the task from being found again.
        return tasks.renew(id, epoch, MAX_TTL).await.map(drop);
    }
    let taken = tasks.change_leased(server, id, epoch, TaskRecord::take_over);
    match taken.await? {
        Some(task) if !task.is_over() => resume(tasks, server, &task, epoch).await,
        _ => Ok(()),
    }
}

fn warn(error: &Error) {
    tracing::warn!(error = %Logged(error), "could not take over an orphaned task");
}
