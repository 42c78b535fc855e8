//! A call that continues as a task: its progress, questions, steps, and end.

use std::{
    future::{Future, pending},
    pin::pin,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp_protocol::{ErrorObject, InputRequest, Revision};
use serde_json::value::{RawValue, to_raw_value};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, interval_at, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    engine::{LEASE, MAX_TTL, NewTask, Tasks, extend, extension_step, unknown},
    legacy::{self, TaskSession},
    record::{ENDED, TaskOutcome, TaskRecord},
    store::StoredTask,
    takeover::{Entry, Question, Run, Step, TaskReplay},
    wire::{ID, RESULT_TYPE, TaskState},
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{DetachableCall, Replay, Server, ToolResponse, known, question_digest},
    session::{
        connection::RequestContext,
        handler::{
            detached::{
                DetachedAnswer, DetachedProgress, DetachedStep, DetachedStepEnd, DetachedWork,
            },
            journal::RecordedAnswer,
        },
        panics,
    },
    sync::Mutex,
};

/// The pause after a status message. Of the reports in the meantime, only the newest is used.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause after a failure of the store, and the number of attempts to store the end of a step.
const RETRY: Duration = Duration::from_secs(1);
const MAX_STORED: usize = 3;
/// The error message of a task whose process shuts down and whose handler must not run again.
const SHUT_DOWN: &str = "task interrupted: its process was shut down; check which work was done before calling the tool again";

/// A call that continues as a task.
pub(crate) struct RunningTask(Arc<Inner>);

struct Inner {
    tasks: Arc<Tasks>,
    server: Server,
    id: String,
    /// The revision of the call.
    revision: Revision,
    /// The epoch of the lease.
    epoch: u64,
    /// The interval at which the TTL is extended while the task works, and the length of each extension.
    step: Duration,
    /// The session that created the task, if its client asked for a task.
    session: Option<TaskSession>,
    /// The newest report of progress that was not sent yet.
    report: Mutex<Option<DetachedProgress>>,
    reported: Notify,
    /// The run of the handler. `None` if it must not run again.
    run: Mutex<Option<Run>>,
    /// Notified whenever a step has ended.
    step_ended: Notify,
    /// Whether the handler was detached, for a handler that runs again.
    is_begun: AtomicBool,
    /// Whether another party does the work.
    is_delegated: AtomicBool,
    /// Whether the task is being handed over: its open questions stay.
    is_handed_over: AtomicBool,
}

impl RunningTask {
    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// Leaves the work to others: no process runs the handler again, even if this one ends.
    pub(crate) async fn leave(&self) -> Result<()> {
        let inner = &self.0;
        let (tasks, id) = (&inner.tasks, &inner.id);
        let left = tasks.change_quietly(id, inner.epoch, TaskRecord::leave);
        left.await?.ok_or_else(over)?;
        *inner.run.lock() = None;
        inner.is_delegated.store(true, Ordering::Relaxed);
        match tasks.renew(id, inner.epoch, MAX_TTL).await? {
            true => Ok(()),
            false => Err(over()),
        }
    }

    /// Lets the handler continue without its request.
    fn detach(&self, call: DetachableCall) -> Result<()> {
        let inner = Arc::clone(&self.0);
        let cancel = CancellationToken::new();
        let rest = call.detach(Arc::new(Self(Arc::clone(&inner))), cancel.clone());
        let rest =
            rest.map_err(|_| Error::internal("could not detach the call from its request"))?;
        inner.is_begun.store(true, Ordering::Relaxed);
        tokio::spawn(inner.drive(rest, cancel));
        Ok(())
    }
}

/// A task that was created for a call, whose handler is not detached yet.
pub(crate) struct CreatedTask {
    inner: Arc<Inner>,
    task: TaskRecord,
}

impl CreatedTask {
    /// Creates a task for a call that will continue as one.
    ///
    /// # Errors
    /// If the store is full, or fails. The call can still run to its end.
    pub(crate) async fn create(
        tasks: &Arc<Tasks>,
        cx: &RequestContext,
        tool: &str,
        call: &mut DetachableCall,
    ) -> Result<Self> {
        let asked = cx.parts().task.get();
        let replay = call.to_stored()?;
        let replay = replay.map(|stored| TaskReplay::new(stored, known(cx)));
        let begun = NewTask {
            ttl_ms: asked.and_then(|it| it.ttl),
            replay,
            message: call.progress().as_ref().map(message),
            outcome: None,
        };
        let task = tasks.create(cx, tool, begun).await?;
        let epoch = tasks.claim(&task.id).await?;
        let epoch =
            epoch.ok_or_else(|| Error::internal("the task store did not lease a new task"))?;
        let run = task.replay.as_ref().map(|it| it.first_run());
        let session = asked.map(|_| TaskSession::of(cx));
        let inner = Inner::new(tasks, cx.server()?, &task, (epoch, run, session));
        Ok(Self { inner, task })
    }

    /// Lets the handler continue as the task, and returns the answer to the call.
    pub(crate) async fn begin(
        self,
        cx: &RequestContext,
        call: DetachableCall,
    ) -> Result<ToolResponse> {
        let Self { inner, task } = self;
        RunningTask(Arc::clone(&inner)).detach(call)?;
        inner.note_late(known(cx)).await;
        answer(cx, &task)
    }
}

/// Turns a call whose handler has not begun into a task, and returns the answer to the call.
pub(crate) async fn start(
    tasks: &Arc<Tasks>,
    cx: &RequestContext,
    tool: &str,
    mut call: DetachableCall,
) -> Result<ToolResponse> {
    let task = CreatedTask::create(tasks, cx, tool, &mut call).await?;
    task.begin(cx, call).await
}

/// Turns a call whose handler has begun into a task, and returns the answer to the call. If no task can be created, the call
/// continues without one, because ending it would leave its work half done.
pub(crate) async fn continue_as_task(
    tasks: &Arc<Tasks>,
    cx: &RequestContext,
    tool: &str,
    mut call: DetachableCall,
) -> Result<ToolResponse> {
    match CreatedTask::create(tasks, cx, tool, &mut call).await {
        Ok(task) => task.begin(cx, call).await,
        Err(error) => {
            warn_without_task(tool, &error);
            call.run().await
        }
    }
}

fn warn_without_task(tool: &str, error: &Error) {
    tracing::warn!(tool, error = %Logged(error), "could not create a task; the call continues without one");
}

/// Continues a task of another process: runs its handler from the top.
pub(crate) async fn resume(
    tasks: &Arc<Tasks>,
    server: &Server,
    task: &TaskRecord,
    epoch: u64,
) -> Result<()> {
    let Some(replay) = &task.replay else {
        return Ok(());
    };
    let run = Some(replay.next_run());
    let inner = Inner::new(tasks, server.clone(), task, (epoch, run, None));
    let again = Replay {
        tool: &task.tool,
        revision: task.revision,
        owner: task.owner.as_deref(),
        extension: ID,
        work: Arc::new(RunningTask(Arc::clone(&inner))),
    };
    let called = match replay.call().replay(server, again) {
        Ok(called) => called,
        Err(error) => return inner.fail(&error).await,
    };
    tokio::spawn(async move {
        // The layer of the tool detaches the handler, and returns.
        let ended = panics::flatten(panics::catch(called).await);
        if !inner.is_begun.load(Ordering::Relaxed) {
            let unlike = || Error::internal("the tool no longer runs as a task");
            let error = ended.err().unwrap_or_else(unlike);
            inner.logged(inner.fail(&error).await);
        }
    });
    Ok(())
}

/// Detaches a handler that runs again. Returns the answer that its client has already received, for the layers around the handler.
pub(crate) async fn resume_detached(
    work: &RunningTask,
    cx: &RequestContext,
    call: DetachableCall,
) -> Result<ToolResponse> {
    let found = work.0.tasks.load(work.id()).await?.ok_or_else(unknown)?;
    if call.to_stored()?.is_none() {
        return Err(Error::internal(ENDED));
    }
    work.detach(call)?;
    answer(cx, &found.task)
}

/// Turns a call that has ended into a task, and returns the answer to the call. If no task can be created, the answer is the
/// result.
pub(crate) async fn keep(
    tasks: &Arc<Tasks>,
    cx: &RequestContext,
    tool: &str,
    done: Result<ToolResponse>,
) -> Result<ToolResponse> {
    let outcome = outcome(done, cx.revision());
    let begun = NewTask {
        outcome: Some(outcome.clone()),
        ..NewTask::default()
    };
    match tasks.create(cx, tool, begun).await {
        Ok(task) => answer(cx, &task),
        Err(error) => {
            warn_without_task(tool, &error);
            match outcome {
                TaskOutcome::Result(result) => Ok(ToolResponse::of_json(&result)),
                TaskOutcome::Error(error) => Err(error.into()),
            }
        }
    }
}

fn answer(cx: &RequestContext, task: &TaskRecord) -> Result<ToolResponse> {
    if !cx.revision().is_modern() {
        return Ok(ToolResponse::of_task(legacy::created(task)));
    }
    ToolResponse::from_extension(cx, RESULT_TYPE, TaskState::created(task))
}

/// The outcome of a call, in the form of its revision.
fn outcome(ended: Result<ToolResponse>, revision: Revision) -> TaskOutcome {
    let result = ended.and_then(|response| response.into_json(revision));
    match result {
        Ok(result) => TaskOutcome::Result(result),
        Err(error) => TaskOutcome::Error(ErrorObject::from(&error)),
    }
}

impl Inner {
    fn new(
        tasks: &Arc<Tasks>,
        server: Server,
        task: &TaskRecord,
        (epoch, run, session): (u64, Option<Run>, Option<TaskSession>),
    ) -> Arc<Self> {
        Arc::new(Self {
            tasks: Arc::clone(tasks),
            server,
            id: task.id.clone(),
            revision: task.revision,
            epoch,
            step: extension_step(task),
            session,
            report: Mutex::default(),
            reported: Notify::new(),
            run: Mutex::new(run),
            step_ended: Notify::new(),
            is_begun: AtomicBool::new(false),
            is_delegated: AtomicBool::new(false),
            is_handed_over: AtomicBool::new(false),
        })
    }

    /// Runs the rest of the call, until it ends, the task is ended from outside, its lease is lost, or it is handed over.
    async fn drive(
        self: Arc<Self>,
        rest: impl Future<Output = Result<ToolResponse>> + Send,
        cancel: CancellationToken,
    ) {
        let _running = self.tasks.local.count();
        // A separate task renews the lease, so that a handler that blocks its thread for a while keeps it. Dropping the set
        // ends that task.
        let mut lease = JoinSet::new();
        lease.spawn(Arc::clone(&self).keep_lease());
        let ended = {
            let mut rest = pin!(rest);
            tokio::select! {
                biased;
                ended = &mut rest => Some(ended),
                () = async {
                    tokio::select! {
                        () = self.until_over() => {}
                        _ = lease.join_next() => {}
                    }
                } => {
                    // The handler ends within its grace period, and its outcome is dropped.
                    cancel.cancel();
                    drop(rest.await);
                    return;
                }
                () = self.report() => return,
                () = self.until_handed_over() => None,
            }
        };
        match ended {
            Some(ended) => self.end(ended).await,
            None => {
                // The handler was dropped, as if its process had ended: it was not cancelled.
                lease.shutdown().await;
                self.logged(self.hand_over().await);
            }
        }
    }

    /// Stores the outcome of the handler, which has ended.
    async fn end(&self, ended: Result<ToolResponse>) {
        self.tell_progress().await;
        let whole = self.run.lock().as_ref().map_or(Ok(()), Run::check_whole);
        let outcome = outcome(whole.and(ended), self.revision);
        let mut finished = self.change(|task| task.finish(outcome.clone())).await;
        if let Err(error) = finished {
            // If the outcome is too large for the store, the error about that may fit.
            let failed = TaskOutcome::Error(ErrorObject::from(&error));
            finished = self.change(|task| task.finish(failed.clone())).await;
        }
        if let Some(Some(task)) = self.logged(finished) {
            self.tell_status(&task).await;
        }
    }

    async fn fail(&self, error: &Error) -> Result<()> {
        let failed = TaskOutcome::Error(ErrorObject::from(error));
        self.change(|task| task.finish(failed.clone()))
            .await
            .map(drop)
    }

    /// Waits until the task must be handed over and can be. A handler that must not run again may continue until the remaining
    /// tasks are cut off; then its task fails.
    async fn until_handed_over(&self) {
        let local = &self.tasks.local;
        local.closing.cancelled().await;
        let may_run_again = self.run.lock().is_some();
        if self.is_delegated.load(Ordering::Relaxed) || may_run_again {
            self.until_between_steps().await;
            self.is_handed_over.store(true, Ordering::Relaxed);
            return;
        }
        local.cut.cancelled().await;
        if self.is_delegated.load(Ordering::Relaxed) {
            return;
        }
        self.logged(self.fail(&Error::internal(SHUT_DOWN)).await);
        pending::<()>().await;
    }

    /// Waits for the end of a step that must not be interrupted, or until tasks are cut off.
    async fn until_between_steps(&self) {
        loop {
            let is_in_step = self.run.lock().as_ref().is_some_and(Run::is_in_step);
            if !is_in_step {
                return;
            }
            tokio::select! {
                () = self.step_ended.notified() => {}
                () = self.tasks.local.cut.cancelled() => return,
            }
        }
    }

    /// Releases the lease, so that another process takes the task over at once.
    async fn hand_over(&self) -> Result<()> {
        if self.is_delegated.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (tasks, id) = (&self.tasks, &self.id);
        let handed_over = tasks.change_quietly(id, self.epoch, TaskRecord::hand_over);
        if handed_over.await?.is_some() {
            tasks.renew(id, self.epoch, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Notifies the session that created the task, if its status has changed.
    async fn tell_status(&self, task: &TaskRecord) {
        if let Some(session) = &self.session {
            session.tell(task).await;
        }
    }

    /// Sends the newest report of progress, and returns its status message.
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
            let is_delegated = self.is_delegated.load(Ordering::Relaxed);
            let lease = if is_delegated { MAX_TTL } else { LEASE };
            let renewed = self.tasks.renew(&self.id, self.epoch, lease);
            let renewed = timeout(LEASE / 3, renewed).await;
            // If the store does not respond, the call is repeated: only the store knows whether the lease is valid.
            if let Ok(Ok(false)) = renewed {
                return;
            }
        }
    }

    fn logged<T>(&self, done: Result<T>) -> Option<T> {
        done.inspect_err(|error| {
            tracing::warn!(error = %Logged(error), "could not store a task");
        })
        .ok()
    }

    /// Waits until another party has ended or claimed the task, or it is gone. Meanwhile, its TTL is extended for as long as it
    /// works.
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

    /// Sends progress, and writes it as status messages, forever.
    async fn report(&self) {
        loop {
            self.reported.notified().await;
            if let Some(message) = self.tell_progress().await {
                self.logged(self.change(|task| task.report(&message)).await);
            }
            sleep(PAUSE).await;
        }
    }

    /// Stores entries of the handler's questions and steps, unless the handler must not run again.
    ///
    /// # Errors
    /// If they cannot be stored, or if the task has ended or another process holds its lease.
    async fn note(&self, entries: &[Entry]) -> Result<()> {
        let note = |task: &mut TaskRecord| {
            let notes = entries.iter().map(|it| task.note(it.clone()));
            notes.fold(false, |any, one| any | one)
        };
        let noted = self.tasks.change_quietly(&self.id, self.epoch, note);
        let noted = noted.await?.ok_or_else(over)?;
        self.forget_run(&noted);
        Ok(())
    }

    /// Drops the run of a handler with too much data to store: the handler is not run again.
    fn forget_run(&self, task: &TaskRecord) {
        if task.replay.is_none() && self.run.lock().take().is_some() {
            tracing::warn!("too much data to replay a task; it fails if its process ends");
        }
    }

    /// Stores the entries that the handler made while its task was being created.
    async fn note_late(&self, known: Vec<RecordedAnswer>) {
        let late = match &mut *self.run.lock() {
            Some(run) => run.absorb(known),
            None => return,
        };
        if !late.is_empty() {
            self.logged(self.note(&late).await);
        }
    }

    /// Ends the task if its handler deviates from its previous run.
    async fn check_against_replay<T>(&self, reached: Result<T>) -> Result<T> {
        if let Err(error) = &reached {
            self.logged(self.fail(error).await);
        }
        reached
    }

    async fn begin_step(
        self: Arc<Self>,
        key: String,
        is_idempotent: bool,
    ) -> Result<Option<Box<RawValue>>> {
        let reached = match &mut *self.run.lock() {
            Some(run) => run.step(&key, is_idempotent),
            None => return Ok(None),
        };
        match self.check_against_replay(reached).await? {
            Step::Done(result) => Ok(Some(result)),
            Step::Begins(entry) => self.note(&[entry]).await.map(|()| None),
        }
    }

    async fn end_step(self: Arc<Self>, key: String, result: Option<Box<RawValue>>) {
        let ended = match &*self.run.lock() {
            Some(run) => run.step_ended(&key, result),
            None => return,
        };
        if let Some(ended) = ended {
            // The step was done, and nothing changes that: a failed store call is repeated, and finally the handler continues.
            for _ in 0..MAX_STORED {
                let noted = self.note(slice::from_ref(&ended)).await;
                if noted.as_ref().map_or_else(Error::is_cancelled, |()| true) {
                    break;
                }
                self.logged(noted);
                sleep(RETRY).await;
            }
            self.set(&ended, false);
        }
        self.step_ended.notify_one();
    }

    async fn ask(self: Arc<Self>, key: String, question: InputRequest) -> Result<Box<RawValue>> {
        let digest = question_digest(&key, &question, self.revision)?;
        let reached = self
            .run
            .lock()
            .as_mut()
            .map(|run| run.question(&key, &digest));
        let reached = match reached {
            Some(reached) => Some(self.check_against_replay(reached).await?),
            None => None,
        };
        let (entry, asked) = match reached {
            Some(Question {
                answer: Some(answer),
                ..
            }) => return Ok(answer),
            Some(Question { entry, wire, .. }) => (Some(entry), wire),
            None => (None, None),
        };
        let wire = match asked {
            Some(wire) => wire,
            None => self.put(&key, &question, entry.as_ref()).await?,
        };
        let question = OpenQuestion {
            task: self,
            entry,
            wire,
            is_answered: false,
        };
        question.answer().await
    }

    /// Adds a question to the task. Returns its key in the task.
    async fn put(
        &self,
        key: &str,
        question: &InputRequest,
        entry: Option<&Entry>,
    ) -> Result<String> {
        let question = to_raw_value(question).map_err(|error| {
            Error::misuse(format!("could not serialize the question {key:?}: {error}"))
        })?;
        let mut asked = None;
        let changed = self
            .change(|task| {
                asked = task.ask(question.clone());
                if let Some(entry) = entry.filter(|_| asked.is_some()) {
                    task.note(entry.asked_as(asked.clone()));
                }
                asked.is_some()
            })
            .await?;
        let (Some(task), Some(wire)) = (changed, asked) else {
            return Err(Error::limit(
                "cannot ask: the task has ended, or has too many open questions",
            ));
        };
        if let Some(entry) = entry {
            self.set(&entry.asked_as(Some(wire.clone())), true);
            self.forget_run(&task);
        }
        Ok(wire)
    }

    fn set(&self, entry: &Entry, is_open: bool) {
        if let Some(run) = &mut *self.run.lock() {
            run.set(entry, is_open);
        }
    }
}

fn over() -> Error {
    Error::cancelled("the task has ended, or another process runs it")
}

/// A question that waits for its answer. If it is dropped before that, the question is withdrawn.
struct OpenQuestion {
    task: Arc<Inner>,
    /// The entry of the question among the handler's questions and steps, if the handler may run again.
    entry: Option<Entry>,
    wire: String,
    is_answered: bool,
}

impl OpenQuestion {
    async fn answer(mut self) -> Result<Box<RawValue>> {
        loop {
            let found = self.task.tasks.load(&self.task.id).await?;
            let found = found.filter(|it| !it.task.is_over());
            let Some(StoredTask { task, revision, .. }) = found else {
                return Err(Error::cancelled("the task has ended"));
            };
            let answer = task.answers.get(&self.wire).cloned().map(Ok);
            let refusal = || task.refusals.get(&self.wire).cloned().map(Err);
            if let Some(answer) = answer.or_else(refusal) {
                self.is_answered = true;
                return answer.map_err(Error::from);
            }
            self.task.tasks.changed(&self.task.id, revision).await?;
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let (task, wire) = (Arc::clone(&self.task), self.wire.clone());
        let may_run_again = task.run.lock().is_some();
        let entry = self.entry.take().filter(|_| may_run_again);
        if let (Some(entry), true) = (&entry, self.is_answered) {
            // The answer is kept for another run.
            return task.set(&entry.asked_as(Some(wire)), false);
        }
        if task.is_handed_over.load(Ordering::Relaxed) {
            return;
        }
        let entry = entry.map(|it| it.asked_as(None));
        if let Some(entry) = &entry {
            task.set(entry, false);
        }
        // If the runtime is gone, the task has ended with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let withdraw = |task: &mut TaskRecord| {
                    let is_withdrawn = task.withdraw(&wire);
                    entry.iter().for_each(|it| {
                        task.note(it.clone());
                    });
                    is_withdrawn
                };
                task.logged(task.change(withdraw).await);
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

    fn step(&self, key: String, is_idempotent: bool) -> DetachedStep {
        Box::pin(Arc::clone(&self.0).begin_step(key, is_idempotent))
    }

    fn step_ended(&self, key: String, result: Option<Box<RawValue>>) -> DetachedStepEnd {
        Box::pin(Arc::clone(&self.0).end_step(key, result))
    }
}

/// The status message for a report of progress.
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
