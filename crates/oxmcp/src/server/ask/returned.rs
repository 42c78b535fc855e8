//! Questions that a handler returns as a [`Reply`](crate::Reply), asked without a round of its request.

use std::time::Duration;

use futures_core::future::BoxFuture as BorrowingFuture;
use oxmcp_protocol::{
    CallToolResult, InputRequest, InputRequests, InputRequiredResult, InputResponse,
    InputResponses, Payload,
};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::check;
use crate::{
    error::{Error, Result},
    session::{
        connection::RequestContext,
        handler::journal::QuestionMode,
        inbound::body::Body,
        task::{BoxFuture, try_join_boxed},
    },
};

/// The maximum number of rounds of one handler. It only ends handlers that ask without end: each round has waited for the client,
/// and a handler that passes on questions of another server needs a round for each of them.
const MAX_ROUNDS: usize = 100;
/// The pause before the next run of a handler that has asked no question.
const PAUSE: Duration = Duration::from_millis(250);

/// A function that asks one question, given with its key.
pub(crate) type Ask<'f> = &'f (
        dyn for<'a> Fn(
    &'a RequestContext,
    &'a str,
    &'a InputRequest,
) -> BorrowingFuture<'a, Result<Box<RawValue>>>
            + Send
            + Sync
    );

/// The outcome of a handler that asks by a [`Reply`](crate::Reply).
pub(crate) enum Outcome {
    Done(Body),
    Asked(InputRequiredResult),
}

/// Extracts the questions from the error that a [`Reply`](crate::Reply) becomes.
pub(crate) fn reply(result: Result<Body>) -> Result<Outcome> {
    let error = match result {
        Ok(body) => return Ok(Outcome::Done(body)),
        Err(error) if !error.is_input_required() => return Err(error),
        Err(error) => error,
    };
    let asked = error
        .data()
        .map(|asked| InputRequiredResult::from_json(asked.get()))
        .transpose();
    match asked {
        Ok(Some(asked)) => Ok(Outcome::Asked(asked)),
        Ok(None) => Err(error),
        Err(problem) => Err(Error::misuse(format!(
            "the handler returned an invalid question: {problem}"
        ))),
    }
}

/// Refuses questions that the client cannot be asked.
pub(crate) fn check_asked(cx: &RequestContext, asked: &mut InputRequiredResult) -> Result<()> {
    let mut is_any = false;
    for request in asked
        .input_requests
        .iter_mut()
        .flat_map(InputRequests::values_mut)
    {
        is_any = true;
        request.fit_capabilities(cx.client_capabilities(), cx.revision());
        check::question(request, cx.client_capabilities(), cx.revision())?;
    }
    if !is_any && asked.request_state.is_none() {
        return Err(Error::misuse(
            "the handler asked for nothing: an `InputRequiredResult` needs input requests, a request state, or both",
        ));
    }
    Ok(())
}

/// Runs a handler to its end: asks the questions that it returns, and runs it again with the answers.
pub(crate) async fn ask_until_done(
    cx: &RequestContext,
    is_tool: bool,
    mut running: BoxFuture<Result<Body>>,
    again: impl Fn() -> BoxFuture<Result<Body>> + Send + Sync,
    ask: Ask<'_>,
) -> Result<Body> {
    for _ in 0..MAX_ROUNDS {
        let mut asked = match reply(running.await)? {
            Outcome::Asked(asked) => asked,
            Outcome::Done(body) => return Ok(body),
        };
        let responses = match answers(cx, &mut asked, ask).await {
            Err(error) if is_tool && error.is_for_models() => {
                return Ok(Body::of(CallToolResult::error(error.message())));
            }
            responses => responses?,
        };
        cx.parts()
            .journal()
            .begin(QuestionMode::Reply(asked.request_state), None, responses);
        running = again();
    }
    match reply(running.await)? {
        Outcome::Asked(_) => Err(Error::limit(format!(
            "too many rounds: the handler asked more than {MAX_ROUNDS} times"
        ))),
        Outcome::Done(body) => Ok(body),
    }
}

/// Asks all questions at once.
async fn answers(
    cx: &RequestContext,
    asked: &mut InputRequiredResult,
    ask: Ask<'_>,
) -> Result<InputResponses> {
    check_asked(cx, asked)?;
    let Some(requests) = &asked.input_requests else {
        sleep(PAUSE).await;
        return Ok(InputResponses::new());
    };
    check::batch(cx)?;
    let answers = requests.iter().map(|(key, request)| ask(cx, key, request));
    let answers = try_join_boxed(answers).await?;
    let keys = requests.iter().map(|(key, _)| key);
    Ok(keys
        .zip(answers.into_iter().map(InputResponse::from))
        .collect())
}
