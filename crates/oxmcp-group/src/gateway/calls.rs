//! The calls that a gateway passes on.
//!
//! A modern upstream asks in its result, which is passed on, its state sealed for the client and the target. A call of a legacy
//! upstream that asks is [parked](super::parked). In both cases the client repeats its request with the answers, in the way of
//! its revision.

use std::{sync::Arc, time::Duration};

use oxmcp::{
    Call, ClientSession, Error, Reply, RequestContext, RequestId, Result, ServerSession,
    protocol::{InputRequiredResult, JsonObject, LoggingLevel, Meta, method::Method},
    tasks::TaskContext,
};
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::JoinSet,
};

use super::{
    events::{CAPACITY, CallEvent, named, named_error},
    links::Holder,
    offers::Offers,
    parked::{CallResources, Owner, PARKED, RunningCall},
    path,
    state::Inner,
    tasks::{Outcome, Passed, Plan},
};

/// The longest time without a response or progress of an upstream. The client has its own timeout, and cancels.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// From the most to the least verbose.
const LEVELS: [LoggingLevel; 8] = [
    LoggingLevel::Debug,
    LoggingLevel::Info,
    LoggingLevel::Notice,
    LoggingLevel::Warning,
    LoggingLevel::Error,
    LoggingLevel::Critical,
    LoggingLevel::Alert,
    LoggingLevel::Emergency,
];

/// Passes a request on to an upstream, and its result back.
pub(super) async fn pass_on<M: Passed>(
    gateway: &Inner,
    cx: &RequestContext,
    (server, target): (usize, &str),
    call: impl FnOnce(&ClientSession) -> Call<M>,
) -> Result<Reply<M::Result>> {
    let principal = cx.principal().map(|it| it.as_str().to_owned());
    let task = cx.task_id();
    let bound_to = [M::NAME, gateway.group.label_at(server), target];
    let owner = Owner {
        principal,
        // A task outlives its request.
        request: request_of(cx).filter(|_| task.is_none()),
        task,
        target: bound_to.join(" "),
    };
    let state = cx.request_state();
    let mut running = match state.as_deref() {
        Some(id) if id.starts_with(PARKED) => {
            let mut running = gateway.parked.take(id, &owner)?;
            running.answer(cx);
            running
        }
        sealed => {
            let state = sealed.map(|it| cx.open_state(&bound_to, it));
            begin(gateway, cx, (server, owner), state.transpose()?, call).await?
        }
    };
    let is_open = running.asked.is_empty();
    if is_open && let Some(outcome) = run(&mut running, cx).await? {
        return match outcome {
            Outcome::Complete(result) => match result.downcast::<M::Result>() {
                Ok(result) => Ok(Reply::Complete(*result)),
                Err(_) => Err(Error::internal("the call has a result of another type")),
            },
            Outcome::InputRequired(mut asked) => {
                asked.input_requests = asked.input_requests.map(|questions| {
                    let named = |(key, it)| (key, named(running.server.as_deref(), it));
                    questions.into_iter().map(named).collect()
                });
                // The server in front names itself.
                if !asked.meta.is_absent() {
                    asked.meta.remove(Meta::SERVER_INFO);
                }
                let state = asked.request_state.unwrap_or_default();
                asked.request_state = Some(cx.seal_state(&bound_to, state)?);
                Ok(Reply::InputRequired(asked))
            }
        };
    }
    let mut asked = InputRequiredResult::new();
    for (key, question) in &running.asked {
        let request = named(running.server.as_deref(), question.request.clone());
        asked = asked.with_input_request(key, request);
    }
    asked.request_state = Some(gateway.parked.put(running)?);
    Ok(Reply::InputRequired(asked))
}

async fn run(running: &mut RunningCall, cx: &RequestContext) -> Result<Option<Outcome>> {
    let outcome = running.run(cx).await;
    outcome.map_err(|error| named_error(running.server.as_deref(), error))
}

/// The name of an upstream that its questions have.
pub(super) fn name_of(gateway: &Inner, server: usize) -> Option<String> {
    let label = || gateway.group.label_at(server).to_owned();
    gateway.names_questions.then(label)
}

/// The request of a client with a session, which stays open while the client is asked.
pub(super) fn request_of(cx: &RequestContext) -> Option<(ServerSession, RequestId)> {
    match cx.revision().is_modern() {
        true => None,
        false => Some((cx.server_session()?, cx.request_id()?.clone())),
    }
}

/// Admits one more call.
///
/// # Errors
/// If there are too many.
pub(super) fn permit(gateway: &Inner) -> Result<OwnedSemaphorePermit> {
    let permit = Arc::clone(&gateway.calls).try_acquire_owned();
    permit.map_err(|_| {
        Error::limit(format!(
            "the gateway already has {} open calls; try again later",
            gateway.limits.calls
        ))
    })
}

async fn begin<M: Passed>(
    gateway: &Inner,
    cx: &RequestContext,
    (server, owner): (usize, Owner),
    state: Option<String>,
    call: impl FnOnce(&ClientSession) -> Call<M>,
) -> Result<RunningCall> {
    let permit = permit(gateway)?;
    let link = gateway.link(cx, server).await?;
    let (sender, events) = mpsc::channel(CAPACITY);
    let open = link.calls.enter(sender.clone());
    let mut call = with_meta(call(&link.session), gateway, cx)?
        .timeout(TIMEOUT)
        .max_total(TIMEOUT);
    if let Some(level) = LEVELS.into_iter().find(|it| cx.wants_log(*it)) {
        link.set_level(level).await;
        call = call.log_level(level);
    }
    if cx.wants_progress() {
        let sender = sender.clone();
        call = call.on_progress(move |progress| {
            // Progress that nobody reads is of no interest later.
            let _ = sender.try_send(CallEvent::Progress(progress));
        });
    }
    let is_modern = link.session.revision().is_modern();
    if is_modern {
        call = call.input_responses(cx.input_responses());
        if let Some(state) = state.filter(|it| !it.is_empty()) {
            call = call.request_state(state);
        }
    }
    let plan = Plan {
        cx: cx.clone(),
        events: sender,
        is_modern,
        has_tasks: Offers::of(cx).has(Offers::TASKS),
    };
    let future = M::make(call, plan);
    Ok(RunningCall {
        future,
        events,
        asked: Vec::new(),
        asking: JoinSet::new(),
        questions: 0,
        statuses: 0,
        server: name_of(gateway, server),
        owner,
        holder: Holder::of(cx),
        held: CallResources {
            open,
            _link: link,
            _permit: permit,
        },
    })
}

/// Adds the `_meta` of the client's request, and the path of gateways.
pub(super) fn with_meta<M: Method>(
    mut call: Call<M>,
    gateway: &Inner,
    cx: &RequestContext,
) -> Result<Call<M>> {
    for (key, value) in passed_meta(gateway, cx)? {
        call = call.meta(key, value);
    }
    Ok(call)
}

/// The `_meta` of a client's request as an upstream gets it, with the path of gateways.
///
/// # Errors
/// If the request has come in a loop.
pub(super) fn passed_meta(gateway: &Inner, cx: &RequestContext) -> Result<JsonObject> {
    let meta = cx.meta();
    let path: Value = gateway.id.extend(&meta)?;
    let is_passed = |key: &str| {
        let is_trace = [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE].contains(&key);
        let is_own = [path::KEY, Meta::PROGRESS_TOKEN].contains(&key);
        Meta::is_valid_key(key) && !Meta::is_reserved_key(key) && !is_own && !is_trace
    };
    let members = meta.as_object().into_iter().flatten();
    let passed = members.filter(|(key, _)| is_passed(key));
    let mut passed: JsonObject = passed
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    passed.insert(path::KEY.to_owned(), path);
    Ok(passed)
}
