//! A call that runs on as a task: its progress, its questions, its end.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use oxmcp_protocol::{ErrorObject, InputRequest, Revision};
use serde_json::value::{RawValue, to_raw_value};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, interval_at, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    engine::{LEASE, Tasks, extend, extension_step},
    legacy::{self, TaskSession},
    record::{TaskOutcome, TaskRecord},
    store::StoredTask,
    wire::{RESULT_TYPE, TaskState},
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{DetachableCall, Server, ToolResponse},
    session::{
        connection::RequestContext,
        handler::detached::{DetachedAnswer, DetachedProgress, DetachedWork},
    },
    sync::Mutex,
};

/// The pause after a status message: those that come meanwhile become one.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause after the store has failed.
const RETRY: Duration = Duration::from_secs(1);

/// A call that runs on as a task.
pub(super) struct RunningTask(Arc<Inner>);

struct Inner {
    tasks: Arc<Tasks>,
    server: Server,
    id: String,
    /// That of its call.
    revision: Revision,
    /// That of its lease.
    epoch: u64,
    /// For how long it is kept longer at a time while it works.
    step: Duration,
    /// The session that has made it, where its client asked for a task.
    session: Option<TaskSession>,
    /// The newest report of progress that was not told yet.
    report: Mutex<Option<DetachedProgress>>,
    reported: Notify,
}

impl RunningTask {
    pub(super) fn id(&self) -> &str {
        &self.0.id
    }
}

/// Makes a task of a call that goes on, and returns its answer.
pub(super) async fn start(
    tasks: &Arc<Tasks>,
    cx: &RequestContext,
    tool: &str,
    call: DetachableCall,
) -> Result<ToolResponse> {
    let asked = cx.parts().task.get();
    let task = tasks.create(cx, tool, asked.and_then(|it| it.ttl)).await?;
    let epoch = tasks.claim(&task.id).await?;
    let epoch = epoch.ok_or_else(|| Error::internal("the store does not lease a new task"))?;
    let inner = Arc::new(Inner {
        tasks: Arc::clone(tasks),
        server: cx.server()?,
        id: task.id.clone(),
        revision: task.revision,
        epoch,
        step: extension_step(&task),
        session: asked.map(|_| TaskSession::of(cx)),
        report: Mutex::default(),
        reported: Notify::new(),
    });
    let cancel = CancellationToken::new();
    let work = Arc::new(RunningTask(Arc::clone(&inner)));
    let rest = call.detach(work, cancel.clone());
    let rest = rest.map_err(|_| Error::internal("the call cannot go on without its request"))?;
    tokio::spawn(inner.drive(rest, cancel));
    answer(cx, &task)
}

/// Makes a task of a call that is done, and returns its answer.
pub(super) async fn keep(
    tasks: &Arc<Tasks>,
    cx: &RequestContext,
    tool: &str,
    done: Result<ToolResponse>,
) -> Result<ToolResponse> {
    let outcome = outcome(done, cx.revision());
    let task = tasks.create(cx, tool, None).await?;
    let server = cx.server()?;
    let ended = tasks.change(&server, &task.id, |task| task.finish(outcome.clone()));
    let ended = ended.await?;
    answer(cx, &ended.unwrap_or(task))
}

fn answer(cx: &RequestContext, task: &TaskRecord) -> Result<ToolResponse> {
    if !cx.revision().is_modern() {
        return Ok(ToolResponse::of_task(legacy::created(task)));
    }
    ToolResponse::of_extension(cx, RESULT_TYPE, TaskState::created(task))
}

/// What a call has come to, as its revision has it.
fn outcome(ended: Result<ToolResponse>, revision: Revision) -> TaskOutcome {
    let result = ended.and_then(|response| response.into_json(revision));
    match result {
        Ok(result) => TaskOutcome::Result(result),
        Err(error) => TaskOutcome::Error(ErrorObject::from(&error)),
    }
}

impl Inner {
    /// Runs the rest of the call, until it ends, somebody else ends the task, or its lease is lost.
    async fn drive(
        self: Arc<Self>,
        rest: impl Future<Output = Result<ToolResponse>> + Send,
        cancel: CancellationToken,
    ) {
        // On a task of its own, so that a handler that blocks its thread for a while keeps its lease. Dropped, it ends.
        let mut lease = JoinSet::new();
        lease.spawn(Arc::clone(&self).keep_lease());
        let mut rest = pin!(rest);
        let ended = tokio::select! {
            biased;
            ended = &mut rest => ended,
            () = async {
                tokio::select! {
                    () = self.until_over() => {}
                    _ = lease.join_next() => {}
                }
            } => {
                // It ends within its grace, and what it comes to then is nobody's.
                cancel.cancel();
                drop(rest.await);
                return;
            }
            () = self.report() => return,
        };
        self.tell_progress().await;
        let outcome = outcome(ended, self.revision);
        let mut finished = self.change(|task| task.finish(outcome.clone())).await;
        if let Err(error) = finished {
            // What is too large for the store can still be said to be so.
            let failed = TaskOutcome::Error(ErrorObject::from(&error));
            finished = self.change(|task| task.finish(failed.clone())).await;
        }
        if let Some(Some(task)) = self.logged(finished) {
            self.tell_status(&task).await;
        }
    }

    /// Tells the session that has made the task how far it is, where that is another status.
    async fn tell_status(&self, task: &TaskRecord) {
        if let Some(session) = &self.session {
            session.tell(task).await;
        }
    }

    /// Tells the newest report of progress.
    async fn tell_progress(&self) -> Option<String> {
        let report = self.report.lock().take()?;
        let message = message(&report);
        if let Some(session) = &self.session {
            session.report(&self.id, report).await;
        }
        Some(message)
    }

    async fn change(
        &self,
        change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>> {
        self.tasks
            .change_leased(&self.server, &self.id, self.epoch, change)
            .await
    }

    /// Renews the lease, until it is lost.
    async fn keep_lease(self: Arc<Self>) {
        loop {
            sleep(LEASE / 3).await;
            let renewed = timeout(LEASE / 3, self.tasks.renew(&self.id, self.epoch)).await;
            // Where the store does not answer, it is asked again: it knows whether the lease holds.
            if let Ok(Ok(false)) = renewed {
                return;
            }
        }
    }

    fn logged<T>(&self, done: Result<T>) -> Option<T> {
        done.inspect_err(|error| {
            tracing::warn!(error = %Logged(error), "a task could not be written");
        })
        .ok()
    }

    /// Waits until the task was ended or claimed by somebody else, or is gone. Meanwhile it is kept for as long as it works.
    async fn until_over(&self) {
        let mut steps = interval_at(Instant::now() + self.step, self.step);
        loop {
            let Ok(found) = self.tasks.load(&self.id).await else {
                sleep(RETRY).await;
                continue;
            };
            if let Some(found) = &found {
                self.tell_status(&found.task).await;
            }
            let found = found.filter(|it| !it.task.is_over() && it.epoch == self.epoch);
            let Some(StoredTask { revision, .. }) = found else {
                return;
            };
            tokio::select! {
                changed = self.tasks.changed(&self.id, revision) => {
                    if changed.is_err() {
                        sleep(RETRY).await;
                    }
                }
                _ = steps.tick() => {
                    self.logged(self.change(|task| extend(task, self.step)).await);
                }
            }
        }
    }

    /// Tells of progress, and writes it as status messages, for ever.
    async fn report(&self) {
        loop {
            self.reported.notified().await;
            if let Some(message) = self.tell_progress().await {
                self.logged(self.change(|task| task.report(&message)).await);
            }
            sleep(PAUSE).await;
        }
    }

    async fn ask(self: Arc<Self>, key: String, question: InputRequest) -> Result<Box<RawValue>> {
        let question = to_raw_value(&question)
            .map_err(|error| Error::misuse(format!("the question {key:?} is no JSON: {error}")))?;
        let mut asked = None;
        self.change(|task| {
            asked = task.ask(question.clone());
            asked.is_some()
        })
        .await?;
        let Some(asked) = asked else {
            return Err(Error::limit("the task is over, or asks too much at once"));
        };
        let question = OpenQuestion {
            task: Arc::clone(&self),
            key: asked,
        };
        question.answer().await
    }
}

/// A question that waits for its answer. Dropped, it is taken back.
struct OpenQuestion {
    task: Arc<Inner>,
    key: String,
}

impl OpenQuestion {
    async fn answer(&self) -> Result<Box<RawValue>> {
        loop {
            let found = self.task.tasks.load(&self.task.id).await?;
            let found = found.filter(|it| !it.task.is_over());
            let Some(StoredTask { task, revision, .. }) = found else {
                return Err(Error::cancelled("the task that asked is over"));
            };
            if let Some(answer) = task.answers.get(&self.key) {
                return Ok(answer.clone());
            }
            if let Some(refusal) = task.refusals.get(&self.key) {
                return Err(refusal.clone().into());
            }
            self.task.tasks.changed(&self.task.id, revision).await?;
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let (task, key) = (Arc::clone(&self.task), self.key.clone());
        // The runtime that ends takes the task with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                task.logged(task.change(|task| task.withdraw(&key)).await);
            });
        }
    }
}

impl DetachedWork for RunningTask {
    fn progress(&self, report: DetachedProgress) {
        *self.0.report.lock() = Some(report);
        self.0.reported.notify_one();
    }

    fn ask(&self, key: String, question: InputRequest) -> DetachedAnswer {
        Box::pin(Arc::clone(&self.0).ask(key, question))
    }
}

/// The status message that a report of progress is.
fn message(report: &DetachedProgress) -> String {
    let DetachedProgress {
        done,
        total,
        message,
    } = report;
    match (message, total) {
        (Some(message), _) => message.clone(),
        (None, Some(total)) => format!("{done} of {total}"),
        (None, None) => done.to_string(),
    }
}
