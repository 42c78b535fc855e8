//! The session of a legacy server, and the messages that set it up.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use oxmcp_json::Text;
use oxmcp_protocol::{
    framing::after_byte_order_mark,
    internal::{Envelope, Params},
    lenient::mend_message,
    method,
};
use serde::Deserialize;

use crate::{
    error::{Error, Result},
    http::{
        client::exchange::message::OutgoingMessage,
        names::{PROTOCOL_VERSION, SESSION_ID},
    },
};

/// The maximum number of restored subscriptions, and of their bytes: as many as a server accepts by default.
const MAX_RESTORED: usize = 10_000;
const MAX_RESTORED_BYTES: usize = 4 << 20;

/// A session of a legacy server. No session is open while the revision is `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// Counts the sessions of this connection.
    pub(crate) generation: u64,
    /// The id of the session, if the server has assigned one.
    pub(crate) id: Option<HeaderValue>,
    /// The negotiated revision.
    pub(crate) revision: Option<HeaderValue>,
}

impl Session {
    pub(crate) fn new(
        generation: u64,
        id: Option<HeaderValue>,
        revision: Option<HeaderValue>,
    ) -> Self {
        // Some servers without sessions send an empty header.
        let mut id = id.filter(|id| !id.as_bytes().trim_ascii().is_empty());
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        Self {
            generation,
            id,
            revision,
        }
    }

    /// Adds the headers of the session's requests.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in [(SESSION_ID, &self.id), (PROTOCOL_VERSION, &self.revision)] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
    }
}

/// The messages that open a session like the present one.
#[derive(Debug, Default)]
pub(crate) struct SessionSetup {
    pub(crate) initialize: Option<OutgoingMessage>,
    pub(crate) initialized: Option<OutgoingMessage>,
    level: Option<OutgoingMessage>,
    /// The subscriptions, by URI.
    subscriptions: BTreeMap<String, OutgoingMessage>,
    bytes: usize,
}

impl SessionSetup {
    /// Records a message that changes the state of the session, once the server has accepted it.
    pub(crate) fn record(&mut self, message: &OutgoingMessage) {
        match message.method() {
            Some("initialize") => self.initialize = Some(message.clone()),
            Some("notifications/initialized") => self.initialized = Some(message.clone()),
            Some("logging/setLevel") => self.level = Some(message.clone()),
            Some("resources/subscribe") => self.record_subscription(message),
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

    fn record_subscription(&mut self, message: &OutgoingMessage) {
        let Some(uri) = uri(message) else {
            return;
        };
        let bytes = self.bytes + message.body.len();
        if self.subscriptions.len() >= MAX_RESTORED || bytes > MAX_RESTORED_BYTES {
            tracing::warn!(
                "too many subscriptions to restore; some will be lost with the server's session"
            );
            return;
        }
        self.bytes = bytes;
        if let Some(old) = self.subscriptions.insert(uri, message.clone()) {
            self.bytes -= old.body.len();
        }
    }

    /// The requests at the beginning of a new session, after its handshake.
    pub(crate) fn requests(&self) -> Vec<OutgoingMessage> {
        let level = self.level.iter();
        level.chain(self.subscriptions.values()).cloned().collect()
    }
}

/// Whether a request changes the state of a session if the server accepts it.
pub(crate) fn changes_session(message: &OutgoingMessage) -> bool {
    let row = message
        .method()
        .and_then(|name| method::find(method::REQUESTS_TO_SERVER, name));
    message.modern.is_none() && row.is_some_and(|row| row.changes_session)
}

/// Checks that an answer has a result.
///
/// # Errors
/// The error that the answer contains instead.
pub(crate) fn result_of(answer: &[u8]) -> Result<()> {
    let mut params = Text::UNREAD;
    let answer = after_byte_order_mark(answer).unwrap_or(answer);
    match Envelope::parse(answer, &mut params) {
        Ok(Envelope::Response(response)) => response.outcome.map(drop).map_err(Error::from),
        _ => Err(Error::decode("malformed response")),
    }
}

fn uri(message: &OutgoingMessage) -> Option<String> {
    let uri = message.param("uri")?;
    uri.as_str().map(String::from)
}

/// The error of a response that does not name its request.
pub(crate) fn error_without_id(message: &[u8]) -> Option<Error> {
    // Most messages are notifications, which are not parsed here.
    memchr::memmem::find(message, br#""error""#)?;
    let mut params = Text::UNREAD;
    let message = after_byte_order_mark(message).unwrap_or(message);
    match Envelope::parse(message, &mut params) {
        Ok(Envelope::Response(response)) if response.id.is_none() => {
            response.outcome.err().map(Error::from)
        }
        _ => None,
    }
}

/// The revision in the answer to `initialize`.
pub(crate) fn negotiated_revision(answer: &Bytes) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Negotiated {
        protocol_version: String,
    }
    let mut params = Text::UNREAD;
    let answer = after_byte_order_mark(answer).unwrap_or(answer);
    let mended;
    let response = match Envelope::parse(answer, &mut params) {
        Ok(envelope) => envelope,
        Err(_) => {
            mended = mend_message(answer)?.0;
            params = Text::UNREAD;
            Envelope::parse(&mended, &mut params).ok()?
        }
    };
    let Envelope::Response(response) = response else {
        return None;
    };
    let negotiated: Negotiated = response.outcome.ok()?.parse().ok()?;
    HeaderValue::from_str(&negotiated.protocol_version).ok()
}
