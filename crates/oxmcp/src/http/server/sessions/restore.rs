//! Sessions that were opened elsewhere, or before a restart: what is kept of one is what its client has said, and it is
//! made again by saying it again.

use std::sync::Arc;

use http::{Response, StatusCode, request::Parts};
use serde::Serialize;
use serde_json::json;

use crate::{
    Error,
    http::{
        names::SESSION_ID,
        server::{
            Principal, ResponseBody, StreamableHttp, answer,
            kept::Kept,
            respond::{lasting_origin, only},
            session::{self, Session, log},
        },
    },
    protocol::{
        Method,
        method::{self, Initialize, SetLevel, Subscribe},
    },
    session::{Origin, Reply},
    transport::Frame,
};

/// Whether what is kept of a session is another after this.
pub(super) fn changes(name: &str) -> bool {
    let of = |table| method::find(table, name);
    let row = of(method::REQUESTS_TO_SERVER).or_else(|| of(method::NOTIFICATIONS_TO_SERVER));
    row.is_some_and(|row| row.changes_session)
}

/// Makes the session that a request names, if it is kept for whom the request comes from.
///
/// # Errors
/// How a request is refused whose session may be there all the same. Where a client is told that it is not, it gives it up.
pub(super) async fn restore(
    endpoint: &StreamableHttp,
    parts: &Arc<Parts>,
) -> Result<Option<Arc<Session>>, Box<Response<ResponseBody>>> {
    let refuse = |status, why: &Error| Box::new(answer::refuse(status, None, why));
    let id = only(parts, &SESSION_ID).filter(|id| session::is_id(id));
    let (Some(store), Some(id)) = (&endpoint.settings.sessions, id) else {
        return Ok(None);
    };
    let principal = parts.extensions.get().map(Principal::as_str);
    let record = match store.load(id).await {
        Ok(Some(record)) if record.principal.as_deref() == principal => record,
        Ok(_) => return Ok(None),
        Err(error) => {
            log(Err(error));
            let why = Error::internal("the session cannot be looked for now; try another time");
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, &why));
        }
    };
    let server = endpoint.choose(parts)?;
    let origin = lasting_origin(parts);
    let session = Session::unbegun(endpoint, server, id.into(), &origin)?;
    session
        .set_apart()
        .map_err(|why| refuse(StatusCode::INTERNAL_SERVER_ERROR, &why))?;
    let initialize = record.initialize.clone();
    session.keep(Kept::new(
        Arc::clone(store),
        initialize,
        Some(record.created),
    ));
    let is_taken = say(
        &session,
        &origin,
        Initialize::NAME,
        &record.initialize,
        true,
    )
    .await;
    if !is_taken || session.revision() != Some(record.revision) {
        tracing::warn!(
            "a session is not gone on with: it was of another revision, or is refused now"
        );
        return Ok(None);
    }
    if record.initialized {
        say(
            &session,
            &origin,
            "notifications/initialized",
            &json!({}),
            false,
        )
        .await;
    }
    if let Some(level) = record.log_level {
        say(
            &session,
            &origin,
            SetLevel::NAME,
            &json!({"level": level}),
            true,
        )
        .await;
    }
    for uri in record.subscribed {
        say(
            &session,
            &origin,
            Subscribe::NAME,
            &json!({"uri": uri}),
            true,
        )
        .await;
    }
    Ok(Some(session::begin(endpoint, session)))
}

/// Says again what the client has said, and waits until it is done. What is answered is known already, unless it is refused:
/// then this returns false.
async fn say(
    session: &Arc<Session>,
    origin: &Origin,
    method: &str,
    params: &impl Serialize,
    is_request: bool,
) -> bool {
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
        return false;
    };
    let branch = session.branch(origin.clone());
    branch.take(Frame::Message(&message));
    let mut answer = Vec::new();
    while is_request && !matches!(branch.outbox.reply(&mut answer).await, Reply::Last(_)) {
        answer.clear();
    }
    branch.failed_with().is_none()
}
