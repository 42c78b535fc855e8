//! Serving a request whose handler can ask.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{
    capability,
    key::random,
    memory::{Memory, Mode, Origin},
    shim,
    state::{self, Binding, Record},
};
use crate::{
    Error, Result,
    json::{Logged, Text},
    protocol::{InputRequiredResult, InputResponses, RequestParams},
    server::{features::Features, methods::Call},
    session::{Body, BoxFuture, RequestContext, Work, panics},
};

/// What a client is told whose state does not open, whatever the reason: one that helps a forger helps nobody else.
const REFUSED: &str = "Invalid or expired requestState";

/// Whether a handler can ask, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// It has no context to ask with.
    Never,
    /// By its context.
    WithContext,
    /// By what it returns.
    ByHand,
}

impl Asks {
    pub(crate) fn of(takes_context: bool, by_hand: bool) -> Self {
        match (by_hand, takes_context) {
            (true, _) => Self::ByHand,
            (false, true) => Self::WithContext,
            (false, false) => Self::Never,
        }
    }
}

/// What is called, got or read, and with what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) method: &'static str,
    /// Its name or URI.
    pub(crate) name: &'a str,
    pub(crate) arguments: Text<'a>,
}

/// Whether a request needs [`serve`]. Most do not, and it costs them nothing.
pub(crate) fn is_wanted(call: &Call<'_>, asks: Asks) -> bool {
    let modern = || call.cx.revision().is_modern();
    let comes_back = call.params.request_state.is_some();
    match asks {
        Asks::ByHand => true,
        Asks::Never => comes_back && modern(),
        Asks::WithContext => {
            modern() && (comes_back || capability::is_any(call.cx.client_capabilities()))
        }
    }
}

/// Serves a request whose handler can ask. `begin` begins the handler; it is called again where a legacy client has
/// answered what the handler returned.
///
/// # Errors
/// Where what came back with the request is not what was sent.
pub(crate) fn serve(
    call: &Call<'_>,
    target: Target<'_>,
    asks: Asks,
    begin: impl Fn(RequestContext, Text<'_>) -> Work + Send + Sync + 'static,
) -> Result<Work> {
    let cx = call.cx.clone();
    let memory = Memory::of(cx.parts());
    if !cx.revision().is_modern() {
        memory.begin(Mode::ByHand(None), None, InputResponses::new());
        return Ok(shim::serve(cx, target.arguments, begin));
    }
    let token = token(call.params)?;
    let responses = responses(call.params)?;
    if asks == Asks::ByHand {
        memory.begin(Mode::ByHand(token), None, responses);
        return Ok(wrap(begin(cx.clone(), target.arguments), |future| {
            Box::pin(checked(cx, future))
        }));
    }
    let origin = Origin {
        method: target.method,
        target: target.name.into(),
        arguments: target.arguments.get().into(),
    };
    let known = token.map(|token| open(&cx, call.features, &origin, &token));
    memory.begin(Mode::Rounds(origin), known.transpose()?, responses);
    Ok(wrap(begin(cx.clone(), target.arguments), |future| {
        Box::pin(conclude(cx, future))
    }))
}

fn wrap(
    work: Work,
    future: impl FnOnce(BoxFuture<Result<Body>>) -> BoxFuture<Result<Body>>,
) -> Work {
    Work {
        future: future(work.future),
        ..work
    }
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

fn open(cx: &RequestContext, features: &Features, origin: &Origin, token: &str) -> Result<Record> {
    let limit = features.limits.max_request_state;
    let binding = binding(cx, features, origin);
    let opened = state::open(token, &binding, &features.ask.keys, now(), limit);
    opened.map_err(|reason| {
        tracing::warn!(
            method = origin.method,
            target = %Logged(&origin.target),
            %reason,
            "a requestState was refused"
        );
        Error::invalid_params(REFUSED)
    })
}

fn binding<'a>(cx: &'a RequestContext, features: &'a Features, origin: &'a Origin) -> Binding<'a> {
    Binding {
        server: &features.info.name,
        principal: cx.parts().connection.origin().principal.as_deref(),
        method: origin.method,
        target: &origin.target,
        arguments: &origin.arguments,
    }
}

/// Seconds since 1970. A clock before that makes every state fresh for as long as it is wrong.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Runs the handler. If it has asked, the questions are the answer, whatever else it came to.
async fn conclude(cx: RequestContext, future: BoxFuture<Result<Body>>) -> Result<Body> {
    let ended = panics::catch(future).await;
    let asked = Memory::find(&cx).and_then(|memory| memory.take());
    let Some((requests, record, origin)) = asked else {
        return ended.unwrap_or_else(|panic| Err(panic.into_error()));
    };
    let server = cx.server_session().map(|session| session.server());
    let server = server.ok_or_else(|| Error::internal("only servers ask"))?;
    let token = seal(&cx, &server.features(), &origin, record)?;
    let mut asked = InputRequiredResult::new().with_request_state(token);
    asked.input_requests = Some(requests);
    Ok(Body::of(asked))
}

fn seal(
    cx: &RequestContext,
    features: &Features,
    origin: &Origin,
    mut record: Record,
) -> Result<String> {
    let settings = &features.ask;
    record.expires = state::expiry(now(), settings.lifetime);
    state::seal(
        &record,
        &binding(cx, features, origin),
        settings.keys.sealing()?,
        random()?,
        features.limits.max_request_state,
    )
}

/// Runs a handler that asks by what it returns.
async fn checked(cx: RequestContext, future: BoxFuture<Result<Body>>) -> Result<Body> {
    match by_hand(future.await)? {
        Ended::Done(body) => Ok(body),
        Ended::Asked(asked) => {
            check(&cx, &asked)?;
            Ok(Body::of(asked))
        }
    }
}

/// How a handler ended that asks by what it returns.
pub(super) enum Ended {
    Done(Body),
    Asked(InputRequiredResult),
}

/// Finds the questions in what a handler returned.
pub(super) fn by_hand(result: Result<Body>) -> Result<Ended> {
    let error = match result {
        Ok(body) => return Ok(Ended::Done(body)),
        Err(error) if !error.is_input_required() => return Err(error),
        Err(error) => error,
    };
    let asked = error
        .data()
        .map(|asked| serde_json::from_str(asked.get()))
        .transpose();
    match asked {
        Ok(Some(asked)) => Ok(Ended::Asked(asked)),
        Ok(None) => Err(error),
        Err(problem) => Err(Error::misuse(format!(
            "what the handler asks is no question of the protocol: {problem}"
        ))),
    }
}

/// Refuses what must not be sent.
pub(super) fn check(cx: &RequestContext, asked: &InputRequiredResult) -> Result<()> {
    let requests = asked.input_requests.iter().flatten();
    let mut is_any = false;
    for (_, request) in requests {
        is_any = true;
        capability::check(request, cx.client_capabilities(), cx.revision())?;
    }
    if !is_any && asked.request_state.is_none() {
        return Err(Error::misuse(
            "the handler asks for nothing: an InputRequiredResult has input requests, a request state, or both",
        ));
    }
    Ok(())
}
