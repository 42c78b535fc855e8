//! Sessions that were opened elsewhere, or before a restart: what is kept of one is what its client has said, and it is
//! made again by saying it again.

use std::sync::Arc;

use http::request::Parts;
use serde::Serialize;
use serde_json::json;

use crate::{
    http::{
        names::SESSION_ID,
        server::{
            Principal, StreamableHttp,
            kept::Kept,
            respond::{only, origin},
            session::{self, Session, log},
        },
    },
    protocol::{
        Method,
        method::{Initialize, SetLevel, Subscribe, Unsubscribe},
    },
    session::Reply,
    transport::Frame,
};

/// Whether what is kept of a session is another after this.
pub(super) fn changes(method: &str) -> bool {
    let methods = [SetLevel::NAME, Subscribe::NAME, Unsubscribe::NAME];
    methods.contains(&method) || method == "notifications/initialized"
}

/// Makes the session that a request names, if it is kept for whom the request comes from.
pub(super) async fn restore(endpoint: &StreamableHttp, parts: &Arc<Parts>) -> Option<Arc<Session>> {
    let store = endpoint.settings.sessions.as_ref()?;
    let id = only(parts, &SESSION_ID)?;
    let record = match store.load(id).await {
        Ok(record) => record?,
        Err(error) => {
            log(Err(error));
            return None;
        }
    };
    let principal = parts.extensions.get().map(Principal::as_str);
    if record.principal.as_deref() != principal {
        return None;
    }
    let server = endpoint.choose(parts).ok()?;
    let limit = endpoint.settings.limits.max_http_sessions;
    let entered = endpoint.state.sessions.enter(limit)?;
    let origin = origin(Arc::clone(parts));
    let session = Session::new(server, id.into(), &origin, entered);
    if let Err(error) = session.set_apart() {
        tracing::error!(%error, "a session is not gone on with");
        return None;
    }
    let initialize = record.initialize.clone();
    session.keep(Kept::new(
        Arc::clone(store),
        initialize,
        Some(record.created),
    ));
    say(&session, Initialize::NAME, &record.initialize, true).await;
    if session.revision() != Some(record.revision) {
        tracing::warn!("a session is not gone on with: it was of another revision");
        session.connection().end();
        return None;
    }
    if record.initialized {
        say(&session, "notifications/initialized", &json!({}), false).await;
    }
    if let Some(level) = record.log_level {
        say(&session, SetLevel::NAME, &json!({"level": level}), true).await;
    }
    for uri in record.subscribed {
        say(&session, Subscribe::NAME, &json!({"uri": uri}), true).await;
    }
    Some(session::begin(endpoint, session))
}

/// Says again what the client has said, and waits until it is done. What is answered is known already.
async fn say(session: &Arc<Session>, method: &str, params: &impl Serialize, is_request: bool) {
    #[derive(Serialize)]
    struct Message<'a, P> {
        jsonrpc: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        method: &'a str,
        params: &'a P,
    }

    let message = Message {
        jsonrpc: "2.0",
        id: is_request.then_some("again"),
        method,
        params,
    };
    let Ok(message) = serde_json::to_vec(&message) else {
        return;
    };
    let branch = session.branch(session.origin());
    branch.take(Frame::Message(&message));
    let mut answer = Vec::new();
    while is_request && branch.outbox.reply(&mut answer).await != Reply::Last {
        answer.clear();
    }
}
