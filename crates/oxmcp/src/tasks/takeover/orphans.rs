//! Orphans: tasks whose process has ended, which another process that has their store takes over.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::time::sleep;

#[cfg(feature = "http-server")]
use super::super::store::AnyTaskStore;
use super::super::{
    engine::{Local, Tasks},
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

/// The orphans of one round, the pause after a round, and after one that may have left some.
const ROUND: usize = 100;
const PAUSE: Duration = Duration::from_secs(5);
const SHORT_PAUSE: Duration = Duration::from_secs(1);

impl Tasks {
    /// The tasks of the server that a request came to. The search for orphans begins with it where it has not begun before: the tasks
    /// of a memory are orphans only if this process has stalled.
    ///
    /// # Errors
    /// Where the server does not have the extension.
    pub(in crate::tasks) fn of(cx: &RequestContext) -> Result<Arc<Self>> {
        let missing = || Error::misuse(format!("the server does not have the extension {ID}"));
        let tasks = cx.extension_state(ID).ok_or_else(missing)?;
        begin(&tasks, &cx.server()?);
        Ok(tasks)
    }

    /// Keeps the tasks of a server in this store from now on, where they are kept in memory, and looks for orphans there.
    #[cfg(feature = "http-server")]
    pub(crate) fn share(server: &Server, store: &Arc<dyn AnyTaskStore>) {
        let tasks: Option<Arc<Self>> = server.extension_state(ID);
        if let Some(tasks) = tasks.filter(|it| it.share_store(store)) {
            begin(&tasks, server);
        }
    }
}

/// Begins to look for orphans where a server begins to serve, if its store may have some: nobody need ask for a task before.
pub(in crate::tasks) fn look_for_orphans(server: &Server) {
    let tasks: Option<Arc<Tasks>> = server.extension_state(ID);
    if let Some(tasks) = tasks.filter(|it| it.may_have_orphans()) {
        begin(&tasks, server);
    }
}

/// Begins to look for orphans, unless this was begun before. It ends with the server.
fn begin(tasks: &Arc<Tasks>, server: &Server) {
    let local = &tasks.local;
    // Each request asks, and nearly always they are looked for.
    if local.is_sweeping.load(Ordering::Relaxed) || local.closing.is_cancelled() {
        return;
    }
    if !local.is_sweeping.swap(true, Ordering::Relaxed) {
        let sweeping = Sweeping(Arc::clone(local));
        tokio::spawn(sweep(Arc::downgrade(tasks), server.downgrade(), sweeping));
    }
}

/// Says while it is there that orphans are looked for. A runtime that ends drops it, and the next request begins anew.
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
        // One that cannot be taken over does not keep the others from it.
        if let Err(error) = take_over(tasks, server, id).await {
            warn(&error);
        }
    }
    Ok(orphans.len())
}

/// Takes an orphan over, or ends it. Of several processes that find it, one gets it; should that die as well, the task is an orphan
/// again.
async fn take_over(tasks: &Arc<Tasks>, server: &Server, id: &str) -> Result<()> {
    let Some(epoch) = tasks.claim(id).await? else {
        return Ok(());
    };
    let taken = tasks.change_leased(server, id, epoch, TaskRecord::take_over);
    match taken.await? {
        Some(task) if !task.is_over() => resume(tasks, server, &task, epoch).await,
        _ => Ok(()),
    }
}

fn warn(error: &Error) {
    tracing::warn!(error = %Logged(error), "a task whose process has died could not be taken over");
}
