//! The calls that a gateway passes on.
//!
//! A modern upstream asks in its result, which is passed on as it is. A call of a legacy upstream that asks is
//! [parked](super::parked). In both cases the client repeats its request with the answers, in the way of its revision.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use oxmcp::{
    Call, CallOutcome, ClientSession, Error, Reply, RequestContext, RequestId, Result,
    ServerSession,
    protocol::{
        ElicitParams, InputRequest, InputRequiredResult, LoggingLevel, Meta,
        method::{Method, MultiRoundTrip},
    },
};
use tokio::sync::mpsc;

use super::{
    events::{CAPACITY, CallEvent},
    parked::{CallResources, Outcome, Owner, PARKED, RunningCall},
    path,
    state::Inner,
};

/// The longest time without a response or progress of an upstream. The client has its own timeout, and cancels.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The beginning of the state of a request that is the state of the upstream.
const UPSTREAM: &str = "state:";

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
pub(super) async fn pass_on<M: MultiRoundTrip>(
    gateway: &Inner,
    cx: &RequestContext,
    (server, target): (usize, &str),
    call: impl FnOnce(&ClientSession) -> Call<M>,
) -> Result<Reply<M::Result>> {
    let principal = cx.principal().map(|it| it.as_str().to_owned());
    let owner = Owner {
        principal,
        request: request_of(cx),
        target: format!("{} {server} {target}", M::NAME),
    };
    let state = cx.request_state();
    let mut running = match state.as_deref() {
        Some(id) if id.starts_with(PARKED) => {
            let mut running = gateway.parked.take(id, &owner)?;
            running.answer(cx);
            running
        }
        state => begin(gateway, cx, (server, owner), state, call).await?,
    };
    if running.asked.is_empty()
        && let Some(outcome) = running.run(cx).await?
    {
        return match outcome {
            Outcome::Complete(result) => match result.downcast::<M::Result>() {
                Ok(result) => Ok(Reply::Complete(*result)),
                Err(_) => Err(Error::internal("the call has a result of another type")),
            },
            Outcome::InputRequired(mut asked) => {
                asked.input_requests = asked.input_requests.map(|questions| {
                    let named = |(key, it)| (key, named(gateway, server, it));
                    questions.into_iter().map(named).collect()
                });
                let state = asked.request_state.unwrap_or_default();
                asked.request_state = Some(format!("{UPSTREAM}{state}"));
                Ok(Reply::InputRequired(asked))
            }
        };
    }
    let mut asked = InputRequiredResult::new();
    for (key, question) in &running.asked {
        let request = named(gateway, server, question.request.clone());
        asked = asked.with_input_request(key, request);
    }
    asked.request_state = Some(gateway.parked.put(running)?);
    Ok(Reply::InputRequired(asked))
}

/// A question under the name of its upstream: a user must know where the answer goes.
fn named(gateway: &Inner, server: usize, mut question: InputRequest) -> InputRequest {
    let message = match &mut question {
        InputRequest::Elicit(ElicitParams::Form(form)) => Some(&mut form.message),
        InputRequest::Elicit(ElicitParams::Url(url)) => Some(&mut url.message),
        _ => None,
    };
    if let (true, Some(message)) = (gateway.names_questions, message) {
        *message = format!("{}: {message}", gateway.group.label_at(server));
    }
    question
}

/// The request of a client with a session, which stays open while the client is asked.
pub(super) fn request_of(cx: &RequestContext) -> Option<(ServerSession, RequestId)> {
    match cx.revision().is_modern() {
        true => None,
        false => Some((cx.server_session()?, cx.request_id()?.clone())),
    }
}

async fn begin<M: MultiRoundTrip>(
    gateway: &Inner,
    cx: &RequestContext,
    (server, owner): (usize, Owner),
    state: Option<&str>,
    call: impl FnOnce(&ClientSession) -> Call<M>,
) -> Result<RunningCall> {
    let permit = Arc::clone(&gateway.calls).try_acquire_owned();
    let permit = permit.map_err(|_| {
        Error::limit(format!(
            "the gateway has more than {} open calls; try again later",
            gateway.limits.calls
        ))
    })?;
    let own = gateway.group.session_at(server).await?;
    let keeps_state = !own.revision().is_modern();
    let link = gateway.links.get(cx, server, keeps_state).await?;
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
        call = call.on_progress(move |progress| {
            // Progress that nobody reads is of no interest later.
            let _ = sender.try_send(CallEvent::Progress(progress));
        });
    }
    let future: Pin<Box<dyn Future<Output = Result<Outcome>> + Send>> =
        match link.session.revision().is_modern() {
            true => {
                let state = state.and_then(|it| it.strip_prefix(UPSTREAM));
                call = call.input_responses(cx.input_responses());
                if let Some(state) = state.filter(|it| !it.is_empty()) {
                    call = call.request_state(state);
                }
                Box::pin(async move {
                    match call.manual().await? {
                        CallOutcome::Complete(result) => Ok(Outcome::Complete(Box::new(result))),
                        CallOutcome::InputRequired(asked) => Ok(Outcome::InputRequired(asked)),
                        _ => Err(Error::internal("unknown outcome of a call")),
                    }
                })
            }
            false => Box::pin(async move { Ok(Outcome::Complete(Box::new(call.await?))) }),
        };
    Ok(RunningCall {
        future,
        events,
        asked: Vec::new(),
        questions: 0,
        owner,
        _held: CallResources {
            _open: open,
            _link: link,
            _permit: permit,
        },
    })
}

/// Adds the `_meta` of the client's request, and the path of gateways.
fn with_meta<M: Method>(
    mut call: Call<M>,
    gateway: &Inner,
    cx: &RequestContext,
) -> Result<Call<M>> {
    let meta = cx.meta();
    for (key, value) in meta.as_object().into_iter().flatten() {
        let is_trace = [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE].contains(&key.as_str());
        let is_own = [path::KEY, Meta::PROGRESS_TOKEN].contains(&key.as_str());
        let is_vendors = Meta::is_valid_key(key) && !Meta::is_reserved_key(key) && !is_own;
        if is_vendors && !is_trace {
            call = call.meta(key, value.clone());
        }
    }
    Ok(call.meta(path::KEY, gateway.id.extend(&meta)?))
}
