//! Restores sessions that were opened on another node or before a restart, by replaying the client's messages from the session
//! record.

use std::sync::Arc;

use http::{StatusCode, request::Parts};
use oxmcp_protocol::{
    Method,
    method::{self, Initialize, SetLevel, Subscribe, Unsubscribe},
};
use serde::Serialize;
use serde_json::json;

use super::{
    lifecycle::UnopenedSession,
    persistence::{Persistence, log},
    session::Session,
};
use crate::{
    error::Error,
    http::{
        names::SESSION_ID,
        server::{
            caller::lasting_caller,
            endpoint::StreamableHttp,
            response::{self, Refused},
            validation::single,
        },
    },
    session::{
        connection::{Caller, Connection},
        driver::stream_output::Reply,
        sealing::random,
        task::spawn,
    },
    store::Setting,
    transport::{principal::Principal, traits::Frame},
};

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
    session
        .set_apart()
        .map_err(|why| refuse(StatusCode::INTERNAL_SERVER_ERROR, &why))?;
    let record = stored.record.clone();
    session.persist(Persistence::new(Arc::clone(store), stored));
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
    endpoint.share(&session);
    let session = session.open(endpoint);
    // Other nodes may have changed the session since the record was loaded.
    if let Some(persistence) = session.persistence() {
        persistence.note_doubt();
    }
    Ok(Some(session))
}

/// Applies settings from other nodes to a session, without waiting for the results: the server here decides by itself whether it
/// accepts a subscription.
pub(crate) fn take_over(session: &Arc<Session>, caller: &Caller, settings: Vec<Setting>) {
    let replay = Replay { session, caller };
    for setting in settings {
        // A random ID, which no other request has.
        let id = random::<16>().map(|it| format!("{:032x}", u128::from_be_bytes(it)));
        let id = id.as_deref().ok();
        let branch = match setting {
            Setting::Initialized => {
                replay.take(None, "notifications/initialized", &json!({}));
                None
            }
            Setting::LogLevel(level) => replay.take(id, SetLevel::NAME, &json!({"level": level})),
            Setting::Watch(uri) => replay.take(id, Subscribe::NAME, &json!({"uri": uri})),
            Setting::Unwatch(uri) => replay.take(id, Unsubscribe::NAME, &json!({"uri": uri})),
        };
        if let Some(branch) = branch {
            spawn(async move { answered(&branch).await });
        }
    }
}

/// Waits until a request is answered.
async fn answered(branch: &Connection) {
    let mut answer = Vec::new();
    while !matches!(branch.outbox.reply(&mut answer).await, Reply::Last(_)) {
        answer.clear();
    }
}

/// Replays messages of a client in a session that is being restored.
struct Replay<'a> {
    session: &'a Session,
    caller: &'a Caller,
}

impl Replay<'_> {
    /// Makes a request and waits for its response. The client already has the response, so this only returns whether it succeeded.
    async fn request(&self, method: &str, params: &impl Serialize) -> bool {
        let Some(branch) = self.take(Some("again"), method, params) else {
            return false;
        };
        answered(&branch).await;
        branch.failed_with().is_none()
    }

    /// Passes a message to the session. `None` if its params cannot be serialized.
    fn take(
        &self,
        id: Option<&str>,
        method: &str,
        params: &impl Serialize,
    ) -> Option<Arc<Connection>> {
        let jsonrpc = "2.0";
        let message = serde_json::to_vec(&Message {
            jsonrpc,
            id,
            method,
            params,
        });
        let branch = self.session.branch(self.caller.clone());
        branch.take(Frame::Message(&message.ok()?));
        Some(branch)
    }
}

#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    method: &'a str,
    params: &'a P,
}
