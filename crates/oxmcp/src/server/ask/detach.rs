//! Contexts of handlers that can be detached from their requests, or run again without one.

use std::{
    future::ready,
    sync::{Arc, OnceLock},
};

use oxmcp_protocol::{InputRequest, InputResponses};
use serde_json::value::RawValue;

use super::{
    check,
    returned::{Ask, ask_until_done},
};
use crate::{
    error::{Error, Result},
    session::{
        connection::{ContextParts, RequestContext},
        handler::{
            detached::{Detached, DetachedWork},
            journal::{Journal, QuestionMode, RecordedAnswer, RoundRequest},
        },
        inbound::body::Body,
        task::BoxFuture,
    },
};

/// A context for a handler of this request that can be detached from it.
pub(crate) fn detachable(request: &RequestContext) -> RequestContext {
    let parts = request.parts();
    let mut own = ContextParts::new(&parts.connection, parts.id.clone(), Arc::clone(&parts.peer));
    own.sender.clone_from(&parts.sender);
    own.batch.clone_from(&parts.batch);
    own.progress_token.clone_from(&parts.progress_token);
    own.log_level.clone_from(&parts.log_level);
    own.meta.clone_from(&parts.meta);
    own.detached = Detached::possible();
    own.journal = OnceLock::from(Arc::clone(parts.journal()));
    RequestContext::new(Arc::new(own))
}

/// Whether the handler of a request has asked a question that its client is to answer in the next round.
pub(crate) fn is_suspended(request: &RequestContext) -> bool {
    request
        .parts()
        .journal
        .get()
        .is_some_and(|journal| journal.is_suspended())
}

/// The questions and steps of a request's handler so far, for its next run.
pub(crate) fn known(request: &RequestContext) -> Vec<RecordedAnswer> {
    request
        .parts()
        .journal
        .get()
        .map_or_else(Vec::new, |journal| journal.known())
}

/// The state and the responses passed to a handler that asks by a [`Reply`](crate::Reply). `None` for any other handler.
pub(crate) fn reply_input(request: &RequestContext) -> Option<(Option<String>, InputResponses)> {
    request.parts().journal.get()?.reply()
}

/// Begins the journal of a handler that runs again, detached from its request. `reply` is the value that [`reply_input`]
/// returned.
pub(crate) fn begin_again(
    parts: &ContextParts,
    request: RoundRequest,
    reply: Option<(Option<String>, InputResponses)>,
) {
    let (mode, responses) = match reply {
        Some((state, responses)) => (QuestionMode::Reply(state), responses),
        None if parts.peer.revision.is_modern() => {
            (QuestionMode::Rounds(request), InputResponses::new())
        }
        None => (QuestionMode::LiveSession, InputResponses::new()),
    };
    parts.journal().begin(mode, None, responses);
}

/// Begins a step. If it was done before, returns its result.
///
/// # Errors
/// If the step must not run.
pub(crate) async fn begin_step(
    cx: &RequestContext,
    journal: &Journal,
    key: &str,
    is_idempotent: bool,
) -> Result<Option<Box<RawValue>>> {
    if let Some(done) = journal.step(key) {
        journal.reach_step(key, is_idempotent);
        return Ok(Some(done));
    }
    if let Some(work) = cx.parts().detached.get()
        && let Some(done) = work.step(key.to_owned(), is_idempotent).await?
    {
        journal.record_step(key, done.clone());
        return Ok(Some(done));
    }
    journal.reach_step(key, is_idempotent);
    Ok(None)
}

/// Ends a step.
pub(crate) async fn end_step(cx: &RequestContext, key: &str, result: Option<Box<RawValue>>) {
    if let Some(work) = cx.parts().detached.get() {
        work.step_ended(key.to_owned(), result).await;
    }
}

/// Asks a question of a detached handler.
pub(crate) async fn ask(
    cx: &RequestContext,
    work: &Arc<dyn DetachedWork>,
    key: &str,
    request: &InputRequest,
) -> Result<Box<RawValue>> {
    let answer = tokio::select! {
        biased;
        answer = work.ask(key.to_owned(), request.clone()) => answer?,
        () = cx.cancelled() => {
            return Err(Error::cancelled("the question was cancelled with its call"));
        }
    };
    let connection = &cx.parts().connection;
    check::answer(connection, Some(key), request, &answer, cx.revision())
}

/// Continues a handler that asks by a [`Reply`](crate::Reply) after it was detached from its request, which can no longer carry
/// the answers. `ended` is the handler's result; `again` restarts the handler.
pub(crate) async fn go_on_detached(
    cx: RequestContext,
    ended: Result<Body>,
    again: impl Fn() -> BoxFuture<Result<Body>> + Send + Sync,
) -> Result<Body> {
    let has_asked = ended.as_ref().is_err_and(Error::is_input_required);
    let Some(work) = cx.parts().detached.get().filter(|_| has_asked) else {
        return ended;
    };
    let ask_work: Ask<'_> = &|cx, key, request| {
        let work = Arc::clone(work);
        Box::pin(async move { ask(cx, &work, key, request).await })
    };
    ask_until_done(&cx, true, Box::pin(ready(ended)), again, ask_work).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::Limits,
        server::{Server, dispatch::ServerRole},
        session::connection::{Connection, Peer},
        transport::principal::Principal,
    };

    #[tokio::test]
    async fn detachable_context_matches_its_request() {
        let connection = Connection::new(ServerRole::new(Server::new("s", "1")), Limits::default());
        let mut parts = ContextParts::new(&connection, Some(1.into()), Arc::new(Peer::unknown()));
        parts.sender = Some(Principal::new("ann"));
        parts.meta = Some("{}".into());
        let own = detachable(&RequestContext::new(Arc::new(parts)));
        assert_eq!(own.principal().map(Principal::as_str), Some("ann"));
        assert_eq!(own.parts().meta.as_deref(), Some("{}"));
        assert_eq!(own.parts().id, Some(1.into()));
    }
}
