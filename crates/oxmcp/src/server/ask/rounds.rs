//! Rounds of questions (MRTR): serving a request whose handler can ask.
//!
//! The response to a modern request has the questions, and the client repeats the request with the answers: the handler then
//! runs from its beginning, with its journal.

use std::time::{SystemTime, UNIX_EPOCH};

use oxmcp_json::Text;
use oxmcp_protocol::{
    InputRequiredResult, InputResponse, InputResponses, Method,
    internal::{RequestParams, mend_unchecked_answer},
    method::CallTool,
};

use super::{
    check, live_session,
    returned::{Ask, Outcome, ask_until_done, check_asked, reply},
    sealed_state::{self, Binding, OwnBinding, OwnState},
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{dispatch::Call, features::Features, registry::AskMode, server::Server},
    session::{
        connection::RequestContext,
        handler::journal::{JournalRecord, QuestionMode, RoundRequest},
        inbound::{body::Body, run::Work},
        panics,
        sealing::random,
        task::BoxFuture,
    },
    transport::principal::Principal,
};

/// The error for a state that does not open. It never gives the reason, which would only help a forger.
const REFUSED: &str = "Invalid or expired requestState";

/// Whether a request needs [`serve`]. Most do not, and have no overhead.
pub(crate) fn needs_rounds(call: &Call<'_>, mode: AskMode) -> bool {
    let modern = || call.cx.revision().is_modern();
    let comes_back = call.params.request_state.is_some();
    match mode {
        AskMode::Reply => true,
        AskMode::Never => comes_back && modern(),
        AskMode::Context => {
            modern() && (comes_back || check::is_any_supported(call.cx.client_capabilities()))
        }
    }
}

/// Serves a request whose handler can ask. `begin` starts the handler, again and again while a legacy client answers the
/// questions that it returns.
///
/// # Errors
/// If the state or the responses that came with the request are malformed, or the state does not open.
pub(crate) fn serve(
    call: &Call<'_>,
    request: RoundRequest,
    mode: AskMode,
    begin: impl Fn(RequestContext, Text<'_>) -> Work + Send + Sync + 'static,
) -> Result<Work> {
    let cx = call.cx.clone();
    let journal = call.cx.parts().journal();
    if !cx.revision().is_modern() {
        journal.begin(QuestionMode::Reply(None), None, InputResponses::new());
        return Ok(serve_legacy(cx, request, begin));
    }
    let token = token(call.params)?;
    let responses = responses(call.params)?;
    let arguments = request.arguments.clone();
    if mode == AskMode::Reply {
        let responses = mended(&cx, request.method, responses);
        journal.begin(QuestionMode::Reply(token), None, responses);
        let work = begin(cx.clone(), Text::checked(&arguments));
        let future = Box::pin(finish_reply(cx, work.future));
        return Ok(Work { future, ..work });
    }
    let record = token.map(|token| open(&cx, call.features, &request, &token));
    journal.begin(
        QuestionMode::Rounds(request),
        record.transpose()?,
        responses,
    );
    let work = begin(cx.clone(), Text::checked(&arguments));
    let future = Box::pin(finish_round(cx, work.future));
    Ok(Work { future, ..work })
}

fn token(params: &RequestParams<'_>) -> Result<Option<String>> {
    let Some(state) = params.request_state.filter(|state| !state.is_null()) else {
        return Ok(None);
    };
    let text = state.as_str();
    let text = text.ok_or_else(|| Error::invalid_params("`requestState` must be a string"))?;
    Ok(Some(text.into_owned()))
}

fn responses(params: &RequestParams<'_>) -> Result<InputResponses> {
    let Some(responses) = params.input_responses.filter(|it| !it.is_null()) else {
        return Ok(InputResponses::new());
    };
    responses.parse().map_err(|error| {
        Error::invalid_params(format!(
            "`inputResponses` must be an object with an answer for each key: {error}"
        ))
    })
}

/// The responses for a handler that reads them itself: those that are odd are written again, if that is tolerated.
fn mended(cx: &RequestContext, method: &str, responses: InputResponses) -> InputResponses {
    let connection = &cx.parts().connection;
    let responses = responses.into_iter().map(|(key, response)| {
        let mended = connection.read_by(method, || mend_unchecked_answer(response.get()));
        (key, mended.map_or(response, InputResponse::from))
    });
    responses.collect()
}

fn open(
    cx: &RequestContext,
    features: &Features,
    request: &RoundRequest,
    token: &str,
) -> Result<JournalRecord> {
    let limit = features.limits.max_request_state;
    let binding = binding(cx, features, request);
    let opened = sealed_state::open(token, &binding, &features.ask.keys.current(), now(), limit);
    opened.map_err(|reason| {
        tracing::warn!(
            method = request.method,
            target = %Logged(&request.target),
            %reason,
            "refusing a request state"
        );
        Error::invalid_params(REFUSED)
    })
}

/// Seals a state that a handler writes itself.
pub(crate) fn seal_own(cx: &RequestContext, values: &[&str], state: String) -> Result<String> {
    let features = server(cx)?.features();
    let settings = &features.ask;
    let state = OwnState {
        expires: sealed_state::expiry(now(), settings.lifetime),
        state,
    };
    sealed_state::seal_own(
        &state,
        &own_binding(cx, &features, values),
        settings.keys.current().sealing()?,
        random()?,
        features.limits.max_request_state,
    )
}

/// Opens a state that a handler has written itself.
pub(crate) fn open_own(cx: &RequestContext, values: &[&str], token: &str) -> Result<String> {
    let features = server(cx)?.features();
    let limit = features.limits.max_request_state;
    let binding = own_binding(cx, &features, values);
    let keys = features.ask.keys.current();
    let opened = sealed_state::open_own(token, &binding, &keys, now(), limit);
    let opened = opened.map_err(|reason| {
        tracing::warn!(%reason, "refusing a request state");
        Error::invalid_params(REFUSED)
    });
    Ok(opened?.state)
}

fn own_binding<'a>(
    cx: &'a RequestContext,
    features: &'a Features,
    values: &'a [&'a str],
) -> OwnBinding<'a> {
    OwnBinding {
        server: &features.info.name,
        principal: cx.principal().map(Principal::as_str),
        values,
    }
}

fn binding<'a>(
    cx: &'a RequestContext,
    features: &'a Features,
    request: &'a RoundRequest,
) -> Binding<'a> {
    Binding {
        server: &features.info.name,
        principal: cx.principal().map(Principal::as_str),
        method: request.method,
        target: &request.target,
        arguments: &request.arguments,
    }
}

/// Seconds since 1970; 0 if the clock is before 1970, so that no state expires.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Runs the handler. If it has asked questions, they are the response, whatever it returns.
async fn finish_round(cx: RequestContext, future: BoxFuture<Result<Body>>) -> Result<Body> {
    let ended = panics::catch(future).await;
    let asked = cx
        .parts()
        .journal
        .get()
        .and_then(|journal| journal.take_suspended());
    let Some((requests, record, request)) = asked else {
        return ended.unwrap_or_else(|panic| Err(panic.into_error()));
    };
    let token = seal(&cx, &server(&cx)?.features(), &request, record)?;
    let mut asked = InputRequiredResult::new().with_request_state(token);
    asked.input_requests = Some(requests);
    Ok(Body::of(asked))
}

fn seal(
    cx: &RequestContext,
    features: &Features,
    request: &RoundRequest,
    mut record: JournalRecord,
) -> Result<String> {
    let settings = &features.ask;
    record.expires = sealed_state::expiry(now(), settings.lifetime);
    let keys = settings.keys.current();
    sealed_state::seal(
        &record,
        &binding(cx, features, request),
        keys.sealing()?,
        random()?,
        features.limits.max_request_state,
    )
}

/// Runs a handler that asks by a [`Reply`](crate::Reply).
async fn finish_reply(cx: RequestContext, future: BoxFuture<Result<Body>>) -> Result<Body> {
    match reply(future.await)? {
        Outcome::Done(body) => Ok(body),
        Outcome::Asked(mut asked) => {
            check_asked(&cx, &mut asked)?;
            Ok(Body::of(asked))
        }
    }
}

/// Serves a handler that asks by a [`Reply`](crate::Reply) in a legacy session, whose client does not know rounds: sends each
/// question as a request, and runs the handler again with the answers.
fn serve_legacy(
    cx: RequestContext,
    request: RoundRequest,
    begin: impl Fn(RequestContext, Text<'_>) -> Work + Send + Sync + 'static,
) -> Work {
    let is_tool = request.method == CallTool::NAME;
    let arguments = request.arguments;
    let first = begin(cx.clone(), Text::checked(&arguments));
    let again = {
        let cx = cx.clone();
        move || begin(cx.clone(), Text::checked(&arguments)).future
    };
    Work {
        future: Box::pin(async move {
            let settings = server(&cx)?.features().ask.clone();
            let ask: Ask<'_> = &|cx, key, request| {
                let settings = settings.clone();
                Box::pin(async move { live_session::ask(cx, &settings, key, request).await })
            };
            ask_until_done(&cx, is_tool, first.future, again, ask).await
        }),
        ..first
    }
}

fn server(cx: &RequestContext) -> Result<Server> {
    let session = cx.server_session();
    let session =
        session.ok_or_else(|| Error::internal("cannot ask here: only servers ask questions"))?;
    Ok(session.server())
}
