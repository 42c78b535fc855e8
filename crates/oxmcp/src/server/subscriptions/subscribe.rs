//! Methods `resources/subscribe` and `resources/unsubscribe`, with which a session watches resources.

use std::sync::Arc;

use oxmcp_protocol::{EmptyResult, Method, SubscribeParams, method};
use tokio::task::yield_now;

use super::watched::{Hooks, ResourceSubscriptions, release};
use crate::{
    error::{Error, Result},
    server::{
        dispatch::{Call, Served},
        session::ServerSession,
    },
    session::{
        connection::{Caller, RequestContext},
        inbound::body::Body,
    },
};

/// See [subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
pub(crate) fn subscribe(call: &Call<'_>) -> Result<Served> {
    let name = method::Subscribe::NAME;
    let Some(ResourceSubscriptions { hooks }) = call.features.subscriptions.clone() else {
        return Err(Error::method_not_found(name));
    };
    let params: SubscribeParams = call.read(name)?;
    if hooks.is_some() && !call.features.calls_subscribe_hook(&params.uri, &call.cx) {
        return Err(Error::resource_not_found(&params.uri));
    }
    let session = call.session()?;
    let work = begin(call.cx.clone(), session, hooks, params.uri.into());
    Ok(Served::in_order(work))
}

async fn begin(
    cx: RequestContext,
    session: ServerSession,
    hooks: Option<Arc<Hooks>>,
    uri: Arc<str>,
) -> Result<Body> {
    let role = session.role();
    let _turn = role.watched.lock_requests().await;
    let connection = &cx.parts().connection;
    let reserve = || role.quota().reserve([uri.len()], 0, connection);
    let caller = Caller {
        principal: cx.principal().cloned(),
        ..connection.caller().clone()
    };
    let watch = role.watched.begin(&uri, caller, reserve)?;
    match (watch, hooks) {
        (Some(watch), Some(hooks)) => {
            leave_connection_task().await;
            (hooks.subscribe)(cx, uri.to_string()).await?;
            if let Some(ended) = watch.agreed(hooks) {
                release(session.connection(), vec![ended]);
            }
        }
        (Some(watch), None) => watch.keep(),
        (None, _) => {}
    }
    Ok(Body::of(EmptyResult::default()))
}

/// See [`subscribe`].
pub(crate) fn unsubscribe(call: &Call<'_>) -> Result<Served> {
    let name = method::Unsubscribe::NAME;
    if call.features.subscriptions.is_none() {
        return Err(Error::method_not_found(name));
    }
    let params: SubscribeParams = call.read(name)?;
    Ok(Served::in_order(end(call.session()?, params.uri)))
}

async fn end(session: ServerSession, uri: String) -> Result<Body> {
    let watched = &session.role().watched;
    let _turn = watched.lock_requests().await;
    if let Some(hooks) = watched.end(&uri) {
        leave_connection_task().await;
        (hooks.unsubscribe)(session.connection(), uri).await;
    }
    Ok(Body::of(EmptyResult::default()))
}

/// Continues in a separate task, since the user's code that follows may take long.
pub(crate) async fn leave_connection_task() {
    yield_now().await;
}
