//! What a session of a legacy server is on the wire.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use crate::http::client::exchange::message::Outgoing;
use crate::{
    Error, Result,
    http::names::{PROTOCOL_VERSION, SESSION_ID},
    json::Text,
    jsonrpc::{Envelope, Params},
    protocol::method,
};

/// How much of what restores a session is kept, in resources and in bytes: as much as a server takes by default.
const MAX_RESTORED: usize = 10_000;
const MAX_RESTORED_BYTES: usize = 4 << 20;

/// A session of a legacy server. None is open while it has no revision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// Counts the sessions of this connection.
    pub(crate) generation: u64,
    /// Its id, where the server gave it one.
    pub(crate) id: Option<HeaderValue>,
    /// The revision that was agreed on.
    pub(crate) revision: Option<HeaderValue>,
    /// The headers of its messages.
    pub(crate) posted: Arc<HeaderMap>,
}

impl Session {
    /// `posted` are the headers of messages in no session.
    pub(crate) fn new(
        generation: u64,
        id: Option<HeaderValue>,
        revision: Option<HeaderValue>,
        posted: &HeaderMap,
    ) -> Self {
        let mut session = Self {
            generation,
            id,
            revision,
            posted: Arc::default(),
        };
        if let Some(id) = &mut session.id {
            id.set_sensitive(true);
        }
        let mut posted = posted.clone();
        session.add_headers(&mut posted);
        session.posted = Arc::new(posted);
        session
    }

    /// Adds the headers of all that belongs to it.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in [(SESSION_ID, &self.id), (PROTOCOL_VERSION, &self.revision)] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
    }
}

/// What opens the session again, as it is now.
#[derive(Debug, Default)]
pub(crate) struct Restore {
    pub(crate) initialize: Option<Outgoing>,
    pub(crate) initialized: Option<Outgoing>,
    level: Option<Outgoing>,
    /// By URI.
    subscriptions: BTreeMap<String, Outgoing>,
    bytes: usize,
}

impl Restore {
    /// Remembers what changes the state of the session, once the server has agreed to it.
    pub(crate) fn agreed(&mut self, message: &Outgoing) {
        match message.method() {
            Some("initialize") => self.initialize = Some(message.clone()),
            Some("notifications/initialized") => self.initialized = Some(message.clone()),
            Some("logging/setLevel") => self.level = Some(message.clone()),
            Some("resources/subscribe") => self.subscribed(message),
            Some("resources/unsubscribe") => {
                if let Some(uri) = uri(message)
                    && let Some(old) = self.subscriptions.remove(&uri)
                {
                    self.bytes -= old.body.len();
                }
            }
            _ => {}
        }
    }

    fn subscribed(&mut self, message: &Outgoing) {
        let Some(uri) = uri(message) else {
            return;
        };
        let bytes = self.bytes + message.body.len();
        if self.subscriptions.len() >= MAX_RESTORED || bytes > MAX_RESTORED_BYTES {
            tracing::warn!("too many subscriptions: some would not outlive the server's session");
            return;
        }
        self.bytes = bytes;
        if let Some(old) = self.subscriptions.insert(uri, message.clone()) {
            self.bytes -= old.body.len();
        }
    }

    /// What is asked of a new session before anything else.
    pub(crate) fn requests(&self) -> Vec<Outgoing> {
        let level = self.level.iter();
        level.chain(self.subscriptions.values()).cloned().collect()
    }
}

/// Whether a request changes the state of a session, where the server agrees to it.
pub(crate) fn changes_session(message: &Outgoing) -> bool {
    let row = message
        .method()
        .and_then(|name| method::find(method::REQUESTS_TO_SERVER, name));
    message.modern().is_none() && row.is_some_and(|row| row.changes_session)
}

/// Whether an answer brings a result.
///
/// # Errors
/// The one that it brings instead.
pub(crate) fn outcome(answer: &[u8]) -> Result<()> {
    let mut params = Text::UNREAD;
    match Envelope::parse(answer, &mut params) {
        Ok(Envelope::Response(response)) => response.outcome.map(drop).map_err(Error::from),
        _ => Err(Error::decode("the answer is malformed")),
    }
}

fn uri(message: &Outgoing) -> Option<String> {
    let uri = message.param("uri")?;
    uri.as_str().map(String::from)
}

/// The revision in the result of `initialize`.
pub(crate) fn agreed_revision(answer: &Bytes) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    let mut params = Text::UNREAD;
    let Ok(Envelope::Response(response)) = Envelope::parse(answer, &mut params) else {
        return None;
    };
    let agreed: Agreed = response.outcome.ok()?.parse().ok()?;
    HeaderValue::from_str(&agreed.protocol_version).ok()
}
