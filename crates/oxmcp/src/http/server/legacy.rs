//! Requests of sessions: what `initialize` opens, and what is posted to it.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode};
use tokio::time::timeout;

use crate::{
    Error,
    http::{
        names::SESSION_ID,
        server::{
            ResponseBody, StreamableHttp, answer,
            events::{KEEP_ALIVE, is_alone, messages},
            respond::{Asked, origin},
            restore,
            session::{self, InUse, Session},
            streams::{self, Opening, Purpose},
        },
    },
    jsonrpc::RequestId,
    session::{Connection, Reply},
};

/// Opens a session with what `initialize` makes of it.
pub(super) async fn open(
    asked: Asked,
    initialize: &str,
    take: impl FnOnce(&Arc<Connection>),
) -> Response<ResponseBody> {
    let Asked {
        endpoint,
        server,
        parts,
        ..
    } = asked;
    let limit = endpoint.settings.limits.max_http_sessions;
    let Some(entered) = endpoint.state.sessions.enter(limit) else {
        let why = Error::internal(format!(
            "there are {limit} sessions, which is the limit; try another time"
        ));
        return answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, &why);
    };
    let origin = origin(parts);
    let id = match session::new_id() {
        Ok(id) => id,
        Err(why) => return answer::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why),
    };
    let session = Session::new(server, id, &origin, entered);
    if endpoint.settings.sessions.is_some()
        && let Ok(params) = serde_json::from_str(initialize)
    {
        session.keep_initialize(params);
    }
    let branch = session.branch(origin);
    take(&branch);
    let mut line = Vec::new();
    let mut answered = Vec::new();
    while branch.outbox.reply(&mut line).await != Reply::Last {
        answered.append(&mut line);
    }
    answered.append(&mut line);
    // Nobody is asked or told anything before the client knows its session: the last message is the answer.
    let last = messages(&answered).last().unwrap_or_default().to_vec();
    if session.revision().is_none() {
        session.connection().end();
        return answer::json(StatusCode::OK, last);
    }
    let session = session::begin(&endpoint, session);
    restore::save(&endpoint, &session).await;
    let mut response = answer::json(StatusCode::OK, last);
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Answers what was posted in a session.
pub(super) async fn post(
    asked: Asked,
    id: Option<RequestId>,
    posted: Posted,
    take: impl FnOnce(&Arc<Connection>),
) -> Response<ResponseBody> {
    if !asked.names_session() {
        let why = Error::invalid_request(
            "this request belongs to a session, which Mcp-Session-Id must name: initialize opens one; a request of revision \
             2026-07-28 needs none, but says its revision in `_meta`",
        );
        return answer::refuse(StatusCode::BAD_REQUEST, id.as_ref(), &why);
    }
    let Asked {
        endpoint,
        session,
        parts,
        ..
    } = asked;
    let Some(session) = session else {
        return no_session(id.as_ref());
    };
    let in_use = session.enter();
    let branch = session.branch(origin(parts));
    take(&branch);
    let response = if posted.is_answered {
        let waiting = Waiting {
            session: Arc::clone(&session),
            branch,
            is_begun: false,
            _in_use: in_use,
        };
        waiting.answer(&endpoint).await
    } else {
        answer::empty(StatusCode::ACCEPTED)
    };
    if posted.changes_session {
        restore::save(&endpoint, &session).await;
    }
    response
}

/// What was posted.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    pub(super) is_answered: bool,
    /// Whether what is kept of the session is another afterwards.
    pub(super) changes_session: bool,
}

/// What a client is told that names no session, or one that is none of its own.
pub(super) fn no_session(id: Option<&RequestId>) -> Response<ResponseBody> {
    let why = Error::invalid_request(
        "there is no such session: it has ended, or never was; open one with initialize",
    );
    answer::refuse(StatusCode::NOT_FOUND, id, &why)
}

/// A request whose answer has not begun. A client that goes away cancels nothing, but will not get it.
struct Waiting {
    session: Arc<Session>,
    branch: Arc<Connection>,
    /// Whether somebody else sees to the answer.
    is_begun: bool,
    _in_use: InUse,
}

impl Waiting {
    /// The response: one message where there is one, a stream where there are more, or may be.
    async fn answer(mut self, endpoint: &StreamableHttp) -> Response<ResponseBody> {
        let mut taken = Vec::new();
        let reply = timeout(KEEP_ALIVE, self.branch.outbox.reply(&mut taken)).await;
        let reply = reply.ok();
        if reply == Some(Reply::Last) {
            if is_alone(&taken) {
                return answer::json(StatusCode::OK, taken);
            }
            if taken.is_empty() {
                // Nothing is asked in a batch of notifications, and a request that was cancelled has no answer.
                return answer::empty(StatusCode::ACCEPTED);
            }
        }
        let opening = Opening {
            purpose: Purpose::Request,
            resumed: None,
            taken,
            reply,
            counted: None,
        };
        self.is_begun = true;
        let store = endpoint.settings.events.clone();
        streams::begin(&self.session, Arc::clone(&self.branch), store, opening)
            .unwrap_or_else(|| answer::empty(StatusCode::CONFLICT))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_begun {
            self.branch.outbox.close();
        }
    }
}
