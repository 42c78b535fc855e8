//! Orphans: tasks whose process has died, which another process that has their store ends.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp_protocol::ErrorObject;
use tokio::time::sleep;

use super::{
    engine::{LEASE, Tasks},
    record::TaskOutcome,
    wire::ID,
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{Server, WeakServer},
    session::connection::RequestContext,
};

/// The orphans of one round, and the pause after a round that may have left some.
const ROUND: usize = 100;
const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// What an orphan has come to.
const ENDED: &str = "the process that ran this task ended or stalled, and the task may have been done in part; see what was \
                     done, then call the tool again";

impl Tasks {
    /// The tasks of the server that a request came to. The first request begins the search for orphans.
    ///
    /// # Errors
    /// Where the server does not have the extension.
    pub(super) fn of(cx: &RequestContext) -> Result<Arc<Self>> {
        let missing = || Error::misuse(format!("the server does not have the extension {ID}"));
        let tasks = cx.extension_state(ID).ok_or_else(missing)?;
        begin(&tasks, &cx.server()?);
        Ok(tasks)
    }
}

/// Begins to look for orphans, unless this was begun before. It ends with the server.
fn begin(tasks: &Arc<Tasks>, server: &Server) {
    if !tasks.is_sweeping.swap(true, Ordering::Relaxed) {
        let running = Running(Arc::clone(&tasks.is_sweeping));
        tokio::spawn(sweep(Arc::downgrade(tasks), server.downgrade(), running));
    }
}

/// Says while it is there that orphans are looked for. A runtime that ends drops it, and the next request begins anew.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

async fn sweep(tasks: Weak<Tasks>, server: WeakServer, _running: Running) {
    loop {
        let pause = {
            let (Some(tasks), Some(server)) = (tasks.upgrade(), server.upgrade()) else {
                return;
            };
            match round(&tasks, &server).await {
                Ok(ended) if ended >= ROUND => SHORT_PAUSE,
                Ok(_) => LEASE,
                Err(error) => {
                    warn(&error);
                    LEASE
                }
            }
        };
        sleep(pause).await;
    }
}

/// Ends some orphans. Returns how many were found.
async fn round(tasks: &Tasks, server: &Server) -> Result<usize> {
    let orphans = tasks.orphans(ROUND).await?;
    for id in &orphans {
        // One that cannot be ended does not keep the others from it.
        if let Err(error) = end(tasks, server, id).await {
            warn(&error);
        }
    }
    Ok(orphans.len())
}

/// Ends an orphan. Of several processes that find it, one gets it; should that die as well, the task is an orphan again.
async fn end(tasks: &Tasks, server: &Server, id: &str) -> Result<()> {
    let Some(epoch) = tasks.claim(id).await? else {
        return Ok(());
    };
    let failed = ErrorObject::from(&Error::internal(ENDED));
    let end = tasks.change_leased(server, id, epoch, |task| {
        task.finish(TaskOutcome::Error(failed.clone()))
    });
    end.await.map(drop)
}

fn warn(error: &Error) {
    tracing::warn!(error = %Logged(error), "a task whose process has died could not be ended");
}
