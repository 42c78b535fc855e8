//! Contexts of handlers that can be detached from their requests, with the journal of the request.

use std::sync::Arc;

use oxmcp_protocol::InputRequest;
use serde_json::value::RawValue;

use super::{check, journal::Journal};
use crate::{
    error::{Error, Result},
    session::{
        connection::{ContextParts, RequestContext},
        handler::detached::DetachedWork,
    },
};

/// A context for a handler of this request that can be detached from it.
pub(crate) fn detachable(request: &RequestContext) -> RequestContext {
    let parts = request.parts();
    let mut own = ContextParts::new(&parts.connection, parts.id.clone(), Arc::clone(&parts.peer));
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
