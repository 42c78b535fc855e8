//! POST requests of sessions: `initialize`, which opens a session, and the messages of open sessions.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use http::{HeaderValue, Response, StatusCode};
use oxmcp_protocol::{InitializeParams, RequestId};
use serde_json::value::RawValue;

use super::{
    event_stream::{self, StreamStart},
    lifecycle::UnopenedSession,
    session::{Session, SessionGuard},
    streams::Purpose,
};
use crate::{
    error::Error,
    http::{
        names::SESSION_ID,
        server::{
            caller::{caller, lasting_caller},
            cluster,
            endpoint::{EndpointRequest, StreamableHttp},
            event_encoding::{KEEP_ALIVE, messages},
            response::{self, Refused, ResponseBody},
        },
    },
    session::{
        connection::Connection,
        driver::stream_output::{Last, Reply},
        task::{spawn, within},
    },
    store::StoredSession,
};

/// A message or a batch that was posted in a session.
#[derive(Clone, Copy)]
pub(crate) struct Posted<'a> {
    /// The ID of the request, which a refusal repeats.
    pub(crate) id: Option<&'a RequestId>,
    /// The body, if it is a batch.
    pub(crate) batch: Option<&'a [u8]>,
    pub(crate) is_answered: bool,
    /// Whether the message may change the record of the session.
    pub(crate) changes_session: bool,
}

/// Opens a session. `take` passes the `initialize` request with these params to its connection.
///
/// # Errors
/// The response that refuses the request.
pub(crate) fn open(
    request: EndpointRequest,
    initialize: &str,
    take: impl FnOnce(&Arc<Connection>),
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    let EndpointRequest {
        endpoint,
        server,
        parts,
        ..
    } = request;
    let id = endpoint.new_session_id(&parts)?;
    let caller = caller(parts);
    let session = UnopenedSession::new(&endpoint, server, id, &caller)?;
    // The record keeps no more of the client's data than the session does.
    let is_kept = initialize.len() <= session.connection().limits.max_client_bytes;
    let initialize = (endpoint.settings.sessions.is_some() && is_kept)
        .then(|| serde_json::from_str(initialize).ok())
        .flatten();
    let branch = session.branch(caller);
    take(&branch);
    Ok(Box::pin(opened(endpoint, session, initialize, branch)))
}

/// Shorter `initialize` params that would have the same result.
fn shortened(session: &Session) -> Option<Box<RawValue>> {
    let peer = session.peer().legacy_session().client()?;
    let info = peer.implementation.clone().unwrap_or_default();
    let params = InitializeParams::new(peer.revision, peer.capabilities.clone(), info);
    serde_json::value::to_raw_value(&params).ok()
}

/// The response to `initialize`. If it succeeds, the session is open from here on.
async fn opened(
    endpoint: StreamableHttp,
    mut session: UnopenedSession,
    initialize: Option<Box<RawValue>>,
    branch: Arc<Connection>,
) -> Response<ResponseBody> {
    let mut line = Vec::new();
    let mut answered = Vec::new();
    while !matches!(branch.outbox.reply(&mut line).await, Reply::Last(_)) {
        answered.append(&mut line);
    }
    answered.append(&mut line);
    if branch.outbox.is_exhausted() || !session.charge_client() {
        return *response::exhausted(None);
    }
    // Other messages cannot reach the client before it knows the session ID, so only the last message, the response, is sent.
    let last = messages(&answered).last().unwrap_or_default().to_vec();
    let mut response = response::answer(StatusCode::OK, branch.retry_after(), last);
    // Middleware may have rejected the negotiated result.
    if session.revision().is_none() || branch.failed_with().is_some() {
        return response;
    }
    let record = match keep_record(&endpoint, &mut session, initialize).await {
        Ok(record) => record,
        Err(refused) => return *refused,
    };
    let opened = Arc::clone(&*session);
    let session = session.open(&endpoint);
    if !Arc::ptr_eq(&session, &opened) {
        let why = Error::misuse("duplicate session ID: each session needs its own");
        return *response::misconfigured(&why);
    }
    if let Some(record) = record {
        cluster::share(&endpoint, &session, record);
    }
    endpoint.state.sessions.set_unused(&session);
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Stores the record of a new session, if there is a session store.
///
/// # Errors
/// The response that refuses the request.
async fn keep_record(
    endpoint: &StreamableHttp,
    session: &mut UnopenedSession,
    initialize: Option<Box<RawValue>>,
) -> Result<Option<StoredSession>, Refused> {
    let Some(store) = &endpoint.settings.sessions else {
        return Ok(None);
    };
    let evicted = session.take_evicted();
    match initialize.or_else(|| shortened(session)) {
        Some(params) => cluster::create(endpoint, session, store, params, evicted).await,
        None => Ok(None),
    }
}

/// Answers a message of a session. `take` passes it to its connection.
///
/// # Errors
/// The response that refuses the request.
pub(crate) fn post(
    request: EndpointRequest,
    posted: Posted<'_>,
    take: impl FnOnce(&Arc<Connection>),
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    if !request.names_session {
        let why = Error::invalid_request(
            "missing header `Mcp-Session-Id`: send `initialize` to open a session, or name revision 2026-07-28 in `_meta` to \
             work without one",
        );
        return Err(response::refuse(StatusCode::BAD_REQUEST, posted.id, &why));
    }
    let takes_events = request.accepted.events;
    let session = request.session.ok_or_else(|| no_session(posted.id))?;
    let guard = session.enter();
    // The session keeps the caller of a subscription.
    let caller = if posted.changes_session {
        lasting_caller(&request.parts, &request.endpoint.state.budget)
    } else {
        caller(request.parts)
    };
    let branch = session.branch(caller);
    take(&branch);
    let shared = session.shared();
    let saves = posted.changes_session && shared.is_some();
    let opening = shared.and_then(|it| it.opening(posted.id, posted.batch));
    let answer = PostAnswer {
        endpoint: request.endpoint,
        session: guard,
        saves,
        takes_events,
        opening,
        branch: posted.is_answered.then(|| Branch {
            connection: branch,
            is_streamed: false,
        }),
    };
    Ok(if saves {
        // Continues even if the client disconnects.
        let answering = spawn(answer.saved());
        Box::pin(async move {
            let answered = answering.await;
            answered.unwrap_or_else(|_| response::empty(StatusCode::INTERNAL_SERVER_ERROR))
        })
    } else {
        Box::pin(answer.answer())
    })
}

/// Rejects a request whose session does not exist or belongs to another principal.
pub(crate) fn no_session(id: Option<&RequestId>) -> Refused {
    let why = Error::invalid_request(
        "session not found: it has ended or never existed; send `initialize` to open one",
    );
    response::refuse(StatusCode::NOT_FOUND, id, &why)
}

/// A response that has not started.
struct PostAnswer {
    endpoint: StreamableHttp,
    session: SessionGuard,
    /// Whether the session is saved afterwards.
    saves: bool,
    /// Whether the client accepts events. One that does not gets its response as JSON, and all other messages on its GET stream.
    takes_events: bool,
    /// The first line of its stream, if other nodes may resume it.
    opening: Option<Vec<u8>>,
    /// The branch of the session's connection that the response comes from. `None` if the message is not answered.
    branch: Option<Branch>,
}

impl PostAnswer {
    /// A single message, or a stream if more messages may follow.
    async fn answer(self) -> Response<ResponseBody> {
        let Some(mut branch) = self.branch else {
            return response::empty(StatusCode::ACCEPTED);
        };
        let mut taken = Vec::new();
        if self.endpoint.settings.json_only {
            return only_answer(&branch.connection, |_| {}).await;
        }
        if !self.takes_events {
            let elsewhere = &self.session.connection().outbox;
            let send_elsewhere = |message: &[u8]| {
                elsewhere.append_if_room(|out| {
                    out.extend_from_slice(message);
                    out.push(b'\n');
                });
            };
            return only_answer(&branch.connection, send_elsewhere).await;
        }
        let replying = branch.connection.outbox.reply(&mut taken);
        let reply = match within(KEEP_ALIVE, replying).await {
            Some(Reply::Last(Last::Nothing)) if branch.connection.outbox.is_exhausted() => {
                return response::unanswered(response::DROPPED);
            }
            // A batch of notifications and a cancelled request have no response.
            Some(Reply::Last(Last::Nothing)) => return response::empty(StatusCode::ACCEPTED),
            Some(Reply::Last(Last::Message)) => {
                let retry_after = branch.connection.retry_after();
                return response::answer(StatusCode::OK, retry_after, taken);
            }
            other => other,
        };
        if !branch.connection.outbox.begin_stream() {
            return response::unanswered(response::DROPPED);
        }
        branch.is_streamed = true;
        let start = StreamStart {
            purpose: Purpose::Request,
            resumed: None,
            taken,
            reply,
            counted: None,
            saves: self.saves,
            opening: self.opening,
        };
        let settings = &self.endpoint.settings;
        let connection = Arc::clone(&branch.connection);
        event_stream::begin(&self.session, connection, settings, start)
            .unwrap_or_else(|| response::empty(StatusCode::CONFLICT))
    }

    /// The same response, after the session is saved.
    async fn saved(self) -> Response<ResponseBody> {
        let session = Arc::clone(&*self.session);
        let response = self.answer().await;
        if let Some(shared) = session.shared() {
            let _ = Arc::clone(shared).save().await;
        }
        response
    }
}

/// The response to a request, as JSON. `other` takes all other messages.
async fn only_answer(branch: &Connection, other: impl Fn(&[u8])) -> Response<ResponseBody> {
    let mut taken = Vec::new();
    loop {
        let reply = branch.outbox.reply(&mut taken).await;
        let is_last = matches!(reply, Reply::Last(_));
        let mut others: Vec<_> = messages(&taken).collect();
        let answer = if is_last { others.pop() } else { None };
        others.into_iter().for_each(&other);
        if !is_last {
            taken.clear();
            continue;
        }
        return match answer {
            _ if branch.outbox.is_exhausted() => response::unanswered(response::DROPPED),
            Some(answer) => response::answer(StatusCode::OK, branch.retry_after(), answer.to_vec()),
            None => response::empty(StatusCode::ACCEPTED),
        };
    }
}

/// A branch whose response has not started. If the client disconnects before that, the request is not cancelled, but its response
/// is dropped.
struct Branch {
    connection: Arc<Connection>,
    is_streamed: bool,
}

impl Drop for Branch {
    fn drop(&mut self) {
        if !self.is_streamed {
            self.connection.outbox.close();
        }
    }
}
