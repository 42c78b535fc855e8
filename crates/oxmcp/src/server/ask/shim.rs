//! Handlers that ask by what they return, and clients that have never heard of it.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::sleep;

use super::{
    live,
    memory::{Memory, Mode},
    serve::{Ended, by_hand, check},
};
use crate::{
    Error, Result,
    json::Text,
    protocol::{InputRequiredResult, InputResponse, InputResponses},
    session::{Body, BoxFuture, RequestContext, Work},
};

/// How often a handler may ask, as clients limit it where they make the request again by themselves.
const ROUNDS: usize = 10;
/// How long a handler rests that asks nothing but wants to run again.
const PAUSE: Duration = Duration::from_millis(250);

/// Begins a handler, and begins it again with the answers to what it returned.
pub(super) fn serve(
    cx: RequestContext,
    arguments: Text<'_>,
    begin: impl Fn(RequestContext, Text<'_>) -> Work + Send + Sync + 'static,
) -> Work {
    let kept: Box<str> = arguments.get().into();
    let first = begin(cx.clone(), arguments);
    let again = {
        let cx = cx.clone();
        move || begin(cx.clone(), Text::checked(&kept)).future
    };
    Work {
        future: Box::pin(run(cx, first.future, again)),
        ..first
    }
}

async fn run(
    cx: RequestContext,
    mut running: BoxFuture<Result<Body>>,
    again: impl Fn() -> BoxFuture<Result<Body>> + Send + Sync,
) -> Result<Body> {
    for _ in 0..ROUNDS {
        let asked = match by_hand(running.await)? {
            Ended::Asked(asked) => asked,
            Ended::Done(body) => return Ok(body),
        };
        let responses = answers(&cx, &asked).await?;
        let memory = Memory::of(cx.parts());
        memory.begin(Mode::ByHand(asked.request_state), None, responses);
        running = again();
    }
    match by_hand(running.await)? {
        Ended::Asked(_) => Err(Error::limit(format!(
            "the handler asked more than {ROUNDS} times; a client would have given up"
        ))),
        Ended::Done(body) => Ok(body),
    }
}

/// Makes a request of each question, all at once.
async fn answers(cx: &RequestContext, asked: &InputRequiredResult) -> Result<InputResponses> {
    check(cx, asked)?;
    let Some(requests) = &asked.input_requests else {
        sleep(PAUSE).await;
        return Ok(InputResponses::new());
    };
    if cx.parts().batch.is_some() {
        return Err(Error::unsupported(
            "the client sent this request in a batch, and waits for all its answers at once: nothing can be asked meanwhile",
        ));
    }
    let server = cx.server_session().map(|session| session.server());
    let server = server.ok_or_else(|| Error::internal("only servers ask"))?;
    let settings = server.features().ask.clone();
    let answers = requests.iter().map(async |(key, request)| {
        let answer = live::ask(cx, &settings, key, request).await?;
        Ok::<_, Error>((key.to_owned(), InputResponse::from(answer)))
    });
    Ok(try_join_all(answers).await?.into_iter().collect())
}
