//! Replays messages of a client, from the record of its session.

use std::sync::Arc;

use oxmcp_protocol::{
    Method,
    method::{SetLevel, Subscribe, Unsubscribe},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    http::server::sessions::Session,
    session::{
        connection::{Caller, Connection},
        driver::stream_output::Reply,
        sealing::random,
        task::spawn,
    },
    store::SessionChange,
    transport::traits::Frame,
};

/// Applies settings from other nodes to a session, without waiting for the results: the server here decides by itself whether it
/// accepts a subscription.
pub(crate) fn take_over(session: &Arc<Session>, caller: &Caller, settings: Vec<SessionChange>) {
    let replay = Replay { session, caller };
    for change in settings {
        // A random ID, which no other request has.
        let id = random::<16>().map(|it| format!("{:032x}", u128::from_be_bytes(it)));
        let id = id.as_deref().ok();
        let branch = match change {
            SessionChange::Initialized => {
                replay.take(None, "notifications/initialized", &json!({}));
                None
            }
            SessionChange::LogLevel(level) => {
                replay.take(id, SetLevel::NAME, &json!({"level": level}))
            }
            SessionChange::Watch(uri) => replay.take(id, Subscribe::NAME, &json!({"uri": uri})),
            SessionChange::Unwatch(uri) => replay.take(id, Unsubscribe::NAME, &json!({"uri": uri})),
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
pub(crate) struct Replay<'a> {
    pub(crate) session: &'a Session,
    pub(crate) caller: &'a Caller,
}

impl Replay<'_> {
    /// Makes a request and waits for its response. The client already has the response, so this only returns whether it succeeded.
    pub(crate) async fn request(&self, method: &str, params: &impl Serialize) -> bool {
        let Some(branch) = self.take(Some("again"), method, params) else {
            return false;
        };
        answered(&branch).await;
        branch.failed_with().is_none()
    }

    /// Passes a message to the session. `None` if its params cannot be serialized.
    pub(crate) fn take(
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
