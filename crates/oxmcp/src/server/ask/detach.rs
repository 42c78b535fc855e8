//! Contexts of handlers that can be detached from their requests, with the journal of the request.

use std::{future::ready, sync::Arc};

use oxmcp_protocol::InputRequest;
use serde_json::value::RawValue;

use super::{
    check,
    journal::Journal,
    returned::{Ask, ask_until_done},
};
use crate::{
    error::{Error, Result},
    session::{
        connection::{ContextParts, RequestContext},
        handler::detached::DetachedWork,
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
    own.role_state.get_or_init(|| Journal::of(parts));
    RequestContext::new(Arc::new(own))
}

/// Whether the handler of a request has asked what its client is to answer with the next round.
pub(crate) fn is_suspended(request: &RequestContext) -> bool {
    Journal::find(request).is_some_and(|journal| journal.is_suspended())
}

/// Asks what a detached handler wants to know.
pub(super) async fn ask(
    cx: &RequestContext,
    work: &Arc<dyn DetachedWork>,
    key: &str,
    request: &InputRequest,
) -> Result<Box<RawValue>> {
    let answer = tokio::select! {
        biased;
        answer = work.ask(key.to_owned(), request.clone()) => answer?,
        () = cx.cancelled() => {
            return Err(Error::cancelled("the work that asked was cancelled"));
        }
    };
    check::answer(Some(key), request, &answer, cx.revision())
}

/// Goes on with a handler that asks by a [`Reply`](crate::Reply) after it was detached from its request, which cannot bring the
/// answers any more. `ended` is what it has returned; `again` begins it anew.
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
