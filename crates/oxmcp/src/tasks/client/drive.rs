//! [`Drive`], which polls a task until it has ended and answers its questions.

use std::{collections::HashSet, sync::Arc, time::Duration};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ErrorCode, Method, OrderedMap, RawJson, TaskStatus,
    internal::{RawInputRequest, ResultType, peek_result_type},
    method::CallTool,
};
use serde_json::Value;
use tokio::{select, time::Instant};

use super::{
    super::wire::TaskState,
    exchange::{Era, Exchange},
    pace::{Clock, Pace},
    push::{Push, Woken},
};
use crate::{
    client::requests::multi_round_trip::{answer_all, read_leniently},
    error::{Error, Result, plain_decode_error},
    session::{
        outbound::{calls::CallResult, options::OnQuestion},
        task::BoxFuture,
    },
};

/// A callback for each state of a task that differs from the previous one.
pub(crate) type OnChange = Box<dyn FnMut(&TaskState) + Send>;

/// The driver of one task that the client waits for.
pub(crate) struct Drive {
    pub(crate) exchange: Arc<Exchange>,
    /// The deadlines of the call that became the task, if a call waits for it.
    clock: Option<Arc<Clock>>,
    on_change: Option<OnChange>,
    /// Answers the questions, in place of the client's handlers.
    on_question: Option<OnQuestion>,
    /// The time at which this side learned of the task. Time stamps of the server are not used, because its clock may differ.
    pub(crate) known_since: Instant,
    pub(crate) state: Option<TaskState>,
    pub(crate) pace: Pace,
    /// The keys of the questions that were answered.
    answered: HashSet<String>,
    rounds: usize,
    has_subscribed: bool,
    /// Whether the task has ended or is gone, and need not be cancelled.
    is_over: bool,
}

impl Drive {
    /// `state` is the state with which the server created the task, if it is known.
    pub(crate) fn new(exchange: Arc<Exchange>, state: Option<TaskState>) -> Self {
        Self {
            exchange,
            clock: None,
            on_change: None,
            on_question: None,
            known_since: Instant::now(),
            state,
            pace: Pace::new(),
            answered: HashSet::new(),
            rounds: 0,
            has_subscribed: false,
            is_over: false,
        }
    }

    pub(crate) fn with_clock(mut self, clock: Arc<Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    pub(crate) fn answer_with(mut self, on_question: Option<OnQuestion>) -> Self {
        self.on_question = on_question;
        self
    }

    pub(crate) fn on_change(mut self, on_change: OnChange) -> Self {
        self.on_change = Some(on_change);
        self
    }

    /// Waits for the outcome of the call.
    ///
    /// # Errors
    /// The error of the call, a cancellation of the task, and any failure to determine the outcome.
    ///
    /// # Cancel safety
    /// Dropping the future stops the wait; the task continues.
    pub(crate) async fn run(&mut self) -> Result<CallResult> {
        let ended = Arc::clone(self.exchange.session.connection());
        select! {
            biased;
            done = self.run_in_era() => done,
            () = ended.calls().wait_closed() => Err(Error::closed(
                "tools/call failed: the session ended before its task did",
            )),
        }
    }

    async fn run_in_era(&mut self) -> Result<CallResult> {
        match self.exchange.era {
            Era::Core => self.run_core().await,
            Era::Extension => self.run_extension().await,
        }
    }

    async fn run_extension(&mut self) -> Result<CallResult> {
        let mut push = Push::None;
        let mut pause = self.initial_delay();
        loop {
            let state = match push.pause(&self.exchange.id, pause).await {
                Woken::Told(state) => *state,
                Woken::Due => self.get().await?,
            };
            let has_changed = self.take(&state);
            match &state.status {
                TaskStatus::Completed => return completed(state),
                TaskStatus::Failed => return failure(&state),
                TaskStatus::Cancelled => return Err(cancelled(&state)),
                TaskStatus::InputRequired => self.answer(&state).await?,
                TaskStatus::Working => {}
                // An outcome shows that the task has ended, whatever its status means.
                _ if state.result.is_some() || state.error.is_some() => return completed(state),
                _ => {}
            }
            // Most tasks have ended by the first poll, so the subscription is opened only after it.
            if !self.has_subscribed {
                self.has_subscribed = true;
                push = Push::open(&self.exchange);
            }
            pause = self.pace.next(state.poll_interval_ms, has_changed);
        }
    }

    /// The pause before the first poll. The answer that creates a task contains neither its questions nor its outcome, so only a
    /// task that is working is not polled at once.
    pub(crate) fn initial_delay(&mut self) -> Duration {
        match &self.state {
            Some(state) if state.status == TaskStatus::Working => {
                let asked = state.poll_interval_ms;
                self.pace.next(asked, false)
            }
            _ => Duration::ZERO,
        }
    }

    /// Fetches the state of the task.
    pub(crate) async fn get(&mut self) -> Result<TaskState> {
        let ttl = self.state.as_ref().and_then(|it| it.ttl_ms);
        let exchange = Arc::clone(&self.exchange);
        let get = || -> BoxFuture<_> {
            let exchange = Arc::clone(&exchange);
            Box::pin(async move { exchange.get().await })
        };
        let state = exchange
            .retry(ttl, self.known_since, &mut self.pace, get)
            .await;
        // The server no longer has the task.
        let is_gone =
            |error: &Error| error.is_protocol() && error.code() == ErrorCode::INVALID_PARAMS;
        self.is_over |= state.as_ref().is_err_and(is_gone);
        state
    }

    pub(crate) fn note_over(&mut self, is_over: bool) {
        self.is_over |= is_over;
    }

    /// Whether the task has ended or is gone, and need not be cancelled.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Records the state of the task. Returns whether the state has changed.
    pub(crate) fn take(&mut self, state: &TaskState) -> bool {
        let is_same = |old: &TaskState| {
            old.status == state.status
                && old.status_message == state.status_message
                && old.last_updated_at == state.last_updated_at
        };
        let has_changed = !self.state.as_ref().is_some_and(is_same);
        self.is_over |= is_final(&state.status);
        if let Some(clock) = &self.clock {
            let waits = state.status == TaskStatus::InputRequired;
            if waits && self.exchange.era == Era::Core {
                clock.pause();
            } else if has_changed {
                clock.restart();
            }
        }
        if has_changed {
            if let Some(on_change) = &mut self.on_change {
                on_change(state);
            }
            let mut kept = state.clone();
            (kept.result, kept.input_requests) = (None, None);
            self.state = Some(kept);
        }
        has_changed
    }

    /// Answers the task's unanswered questions.
    async fn answer(&mut self, state: &TaskState) -> Result<()> {
        let asked = state.input_requests.iter().flatten();
        let new: Vec<(&str, &RawJson)> = asked
            .filter(|(key, _)| !self.answered.contains(*key))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let session = &self.exchange.session;
        let limit = session.connection().limits.client.max_rounds;
        self.rounds += 1;
        if self.rounds > limit {
            return Err(Error::limit(format!(
                "{}: the task still asks for input after {limit} rounds; raise `ClientLimits::max_rounds` if that is expected",
                CallTool::NAME
            )));
        }
        let connection = session.connection();
        let mut inputs = Vec::new();
        for (key, question) in &new {
            let lenient = || connection.read_by(CallTool::NAME, || read_leniently(question.get()));
            let input: RawInputRequest = serde_json::from_str(question.get())
                .or_else(|error| lenient().ok_or(error))
                .map_err(|error| {
                    Error::decode(format!(
                        "{}: invalid request for input: {}",
                        CallTool::NAME,
                        plain_decode_error(&error)
                    ))
                })?;
            inputs.push((*key, input));
        }
        let inputs: OrderedMap<_> = inputs.into_iter().collect();
        if let Some(clock) = &self.clock {
            clock.pause();
        }
        let on_question = self.on_question.clone();
        let answers = answer_all(session, CallTool::NAME, inputs, on_question).await?;
        if let Some(clock) = &self.clock {
            clock.restart();
        }
        self.answered
            .extend(new.iter().map(|(key, _)| (*key).to_owned()));
        let exchange = Arc::clone(&self.exchange);
        let update = || -> BoxFuture<_> {
            let (exchange, answers) = (Arc::clone(&exchange), answers.clone());
            Box::pin(async move { exchange.update(answers).await })
        };
        exchange
            .retry(state.ttl_ms, self.known_since, &mut self.pace, update)
            .await
    }
}

/// Whether the status is final: the task no longer changes.
pub(crate) fn is_final(status: &TaskStatus) -> bool {
    matches!(
        status,
        TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled
    )
}

/// The result of the call, as a completed task contains it.
fn completed(state: TaskState) -> Result<CallResult> {
    let Some(result) = state.result else {
        return Err(state.error.map_or_else(
            || Error::decode("tools/call failed: the server completed its task without a result"),
            Error::from,
        ));
    };
    let text: Box<str> = result.into();
    // The task was the alternative to a complete result, so its own result must be complete.
    if peek_result_type(Text::checked(&text)) != ResultType::Complete {
        return Err(Error::decode(
            "tools/call failed: the result of its task is not a final result",
        ));
    }
    Ok(text.into())
}

/// The outcome of a failed task. Some servers give a result in place of the error.
fn failure(state: &TaskState) -> Result<CallResult> {
    match (&state.error, &state.result) {
        (Some(error), _) => Err(error.clone().into()),
        (None, Some(result)) => failed_result(state, result.get()),
        (None, None) => Err(failed(state)),
    }
}

/// The result of a failed task: the result of a failed tool, or an error if the result has no content.
pub(crate) fn failed_result(state: &TaskState, result: &str) -> Result<CallResult> {
    if says_failed(result) {
        return Ok(Box::<str>::from(result).into());
    }
    let read: serde_json::Result<OrderedMap<RawJson>> = serde_json::from_str(result);
    let Ok(members) = read else {
        return Err(failed(state));
    };
    let says = |name: &str| {
        let value = members.get(name).map(|it| it.get());
        value.is_some_and(|it| !matches!(it, "null" | "[]" | "{}"))
    };
    if !says("content") && !says("structuredContent") {
        return Err(failed(state));
    }
    let others = members.iter().filter(|(name, _)| *name != "isError");
    let mut text = String::from(r#"{"isError":true"#);
    for (name, value) in others {
        text.push(',');
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    Ok(text.into_boxed_str().into())
}

/// Whether a result reports that its tool failed.
pub(crate) fn says_failed(result: &str) -> bool {
    let mut members = Text::checked(result).members();
    members.any(|(name, value)| name.is_str("isError") && value.get() == "true")
}

/// The error of a failed task for which the server gives neither an error nor a result.
pub(crate) fn failed(state: &TaskState) -> Error {
    let said = state.status_message.clone();
    Error::internal(said.unwrap_or_else(|| {
        "tools/call failed: its task failed; the server gave no reason".to_owned()
    }))
}

pub(crate) fn cancelled(state: &TaskState) -> Error {
    let why = state.status_message.as_deref();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Error::cancelled(format!(
        "tools/call was cancelled: its task was cancelled{why}"
    ))
}
