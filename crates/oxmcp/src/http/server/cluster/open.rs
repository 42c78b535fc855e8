//! The opening of sessions that nodes share: a new one gets a record, and one that was opened on another node or before a restart is
//! restored from its record.

use std::sync::Arc;

use http::{StatusCode, request::Parts};
use oxmcp_protocol::{
    Method,
    method::{self, Initialize, SetLevel, Subscribe},
};
use serde_json::{json, value::RawValue};
use tokio::task::JoinError;

use super::{
    forward::Forwarder,
    persistence::{Persistence, UNUSED},
    questions::look_for_answers,
    replay::Replay,
    session_bus::BusListener,
    shared_session::ClusterSession,
};
use crate::{
    error::{Error, Result},
    http::{
        names::SESSION_ID,
        server::{
            caller::lasting_caller,
            endpoint::StreamableHttp,
            response::{self, Refused},
            sessions::{GET_STREAM, QuotaExceeded, Session, StreamKey, UnopenedSession, log},
            validation::single,
        },
    },
    session::{sealing::random, task::spawn},
    store::{AnySessionStore, CreateOutcome, SessionRecord, StoredSession},
    transport::principal::Principal,
};

/// Creates the record of a new session in a store, for other nodes. If there are too many sessions, removes the records of sessions
/// that were evicted for it on this node, or else evicts the oldest unused session. Unused sessions of other nodes expire soon.
/// `None` if the session stays local.
///
/// # Errors
/// The response that refuses the request, if there are still too many sessions, or the store fails: other nodes would not know a
/// session without a record.
pub(crate) async fn create(
    endpoint: &StreamableHttp,
    session: &Session,
    store: &Arc<dyn AnySessionStore>,
    initialize: Box<RawValue>,
    mut evicted: Vec<Arc<Session>>,
) -> Result<Option<StoredSession>, Refused> {
    let Some(record) = record(session, initialize) else {
        return Ok(None);
    };
    let limits = &endpoint.settings.limits;
    let max_per_owner = limits.http.max_sessions_each;
    let create = || {
        let (store, id, record) = (Arc::clone(store), Arc::clone(session.id()), record.clone());
        // The task fails if the store panics.
        spawn(async move { store.create(&id, record, UNUSED, max_per_owner).await })
    };
    let mut created = create().await;
    if let Some(exceeded) = exceeded(&created) {
        if evicted.is_empty() {
            let sessions = &endpoint.state.sessions;
            evicted.extend(sessions.evict(exceeded, session.principal()));
        }
        for evicted in evicted.iter().filter_map(|it| it.shared()) {
            evicted.remove(false).await;
        }
        if !evicted.is_empty() {
            created = create().await;
        }
    }
    if let Some(exceeded) = exceeded(&created) {
        let (status, why) = exceeded.why(limits);
        return Err(response::refuse(status, None, &Error::internal(why)));
    }
    let error = match created {
        Ok(Ok(CreateOutcome::Created)) => return Ok(Some(StoredSession::new(record, 1))),
        Ok(Ok(_)) => {
            tracing::warn!("session ID already in use; session is local to this node");
            return Ok(None);
        }
        Ok(Err(error)) => error,
        Err(_) => Error::internal("the session store panicked"),
    };
    tracing::warn!(%error, "could not store a new session; rejecting it");
    let why =
        Error::internal("could not open a session: the session store failed; try again later");
    Err(response::unserved(None, &why))
}

/// The record of a new session that was opened with these `initialize` params.
fn record(session: &Session, initialize: Box<RawValue>) -> Option<SessionRecord> {
    let mut record = SessionRecord::new(initialize, session.revision()?);
    record.principal = session.principal().map(|it| it.as_ref().to_owned());
    Some(record)
}

/// The limit that a store reported as exceeded.
fn exceeded(created: &Result<Result<CreateOutcome>, JoinError>) -> Option<QuotaExceeded> {
    match created {
        Ok(Ok(CreateOutcome::PrincipalFull)) => Some(QuotaExceeded::Principal),
        Ok(Ok(CreateOutcome::Full)) => Some(QuotaExceeded::Nodes),
        _ => None,
    }
}

/// Shares a new session whose record is stored with other nodes from now on.
pub(crate) fn share(endpoint: &StreamableHttp, session: &Arc<Session>, stored: StoredSession) {
    if let Some(shared) = make_shared(endpoint, session, stored) {
        listen(endpoint, session, &shared);
    }
}

/// Makes a session one that other nodes know, without listening to them yet.
fn make_shared(
    endpoint: &StreamableHttp,
    session: &Arc<Session>,
    stored: StoredSession,
) -> Option<Arc<ClusterSession>> {
    let settings = &endpoint.settings;
    let record = Persistence::new(Arc::clone(settings.sessions.as_ref()?), stored);
    let forwarder = settings.events.as_ref().map(|store| {
        let get_stream = StreamKey {
            store: Arc::clone(store),
            session: Arc::clone(session.id()),
            stream: GET_STREAM.into(),
        };
        Forwarder::new(session.connection(), get_stream)
    });
    let shared = ClusterSession::new(endpoint, session, record, forwarder.clone());
    let shared = Arc::new(shared);
    session.share(Arc::clone(&shared) as _);
    if let (Some(store), Some(forwarder)) = (&settings.events, forwarder) {
        session.connection().note_shared();
        look_for_answers(session, store);
        forwarder.begin();
    }
    Some(shared)
}

/// Listens for messages of other nodes about a session that is registered.
fn listen(endpoint: &StreamableHttp, session: &Session, shared: &Arc<ClusterSession>) {
    if let Some(bus) = &endpoint.settings.bus {
        let weak = Arc::downgrade(shared);
        endpoint
            .state
            .session_bus
            .subscribe(session.id(), weak, bus);
    }
}

/// Whether this method may change the record of the session.
pub(crate) fn changes(name: &str) -> bool {
    let of = |table| method::find(table, name);
    let row = of(method::REQUESTS_TO_SERVER).or_else(|| of(method::NOTIFICATIONS_TO_SERVER));
    row.is_some_and(|row| row.changes_session)
}

/// Restores the session that a request names, if its record belongs to the principal of the request.
///
/// # Errors
/// The response that refuses the request, if it is unknown whether the record exists. A client that hears its session has ended
/// would abandon it.
pub(crate) async fn restore(
    endpoint: &StreamableHttp,
    parts: &Arc<Parts>,
) -> Result<Option<Arc<Session>>, Refused> {
    let refuse = |status, why: &Error| response::refuse(status, None, why);
    let id = single(&parts.headers, &SESSION_ID).filter(|id| endpoint.is_session_id(id));
    let (Some(store), Some(id)) = (&endpoint.settings.sessions, id) else {
        return Ok(None);
    };
    let principal = parts.extensions.get().map(Principal::as_str);
    let stored = match store.load(id).await {
        Ok(Some(stored)) if stored.record.principal.as_deref() == principal => stored,
        Ok(_) => return Ok(None),
        Err(error) => {
            log(Err(error));
            let why = Error::internal(
                "could not look up the session: the session store failed; try again later",
            );
            return Err(response::unserved(None, &why));
        }
    };
    let server = endpoint.choose(parts)?;
    let caller = lasting_caller(parts, &endpoint.state.budget);
    let session = UnopenedSession::new(endpoint, server, id.into(), &caller)?;
    set_apart(&session).map_err(|why| refuse(StatusCode::INTERNAL_SERVER_ERROR, &why))?;
    let record = stored.record.clone();
    let replay = Replay {
        session: &session,
        caller: &caller,
    };
    let is_taken = replay.request(Initialize::NAME, &record.initialize).await;
    if !is_taken || session.revision() != Some(record.revision) {
        tracing::warn!(
            "not restoring a session: its revision has changed, or `initialize` now fails"
        );
        return Ok(None);
    }
    if !session.charge_client() {
        return Err(response::exhausted(None));
    }
    if record.initialized {
        replay.take(None, "notifications/initialized", &json!({}));
    }
    if let Some(level) = record.log_level {
        let params = json!({"level": level});
        replay.request(SetLevel::NAME, &params).await;
    }
    for uri in record.subscribed {
        let params = json!({"uri": uri});
        replay.request(Subscribe::NAME, &params).await;
    }
    let shared = make_shared(endpoint, &session, stored);
    let restored = Arc::clone(&*session);
    let session = session.open(endpoint);
    if let Some(shared) = shared.filter(|_| Arc::ptr_eq(&restored, &session)) {
        listen(endpoint, &session, &shared);
        // Other nodes may have changed the session since the record was loaded.
        shared.on_gap();
    }
    Ok(Some(session))
}

/// Makes stream names and request IDs differ from those of nodes that had the session before. A client may resume a stream, or
/// answer a request, of such a node.
fn set_apart(session: &Session) -> Result<()> {
    let (name, number) = (random::<4>()?, random::<4>()?);
    let prefix = format!("{:08x}", u32::from_be_bytes(name));
    session.streams.set_prefix(&prefix);
    // Far from each other, and below 2^53, the limit of integers in some clients.
    let first = (i64::from(u32::from_le_bytes(number)) + 1) << 20;
    session.connection().calls().count_from(first);
    Ok(())
}
