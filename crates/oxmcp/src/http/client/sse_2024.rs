//! The transport of 2024-11-05: one stream for all messages of the server, and another URL for the messages to it.
//! See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use oxmcp_protocol::{
    ErrorCode,
    framing::sse::{EventDecoder, StreamItem},
};
use tokio::time::timeout;

use crate::{
    error::{Error, Result},
    http::client::{
        exchange::{
            event_stream::{EventStream, StreamEnd},
            message::OutgoingMessage,
            post::ExchangeError,
            requests::Target,
            response::{Form, refusal},
            session::Session,
            shared::Exchanges,
            sink::MessageSink,
        },
        reconnect::redirect::is_same_origin,
        redaction::redacted_url,
        transport::http_client::HttpBody,
    },
    logged::Logged,
};

/// The time limit for the server to name the URL for messages.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of that URL, in bytes.
const MAX_URL: usize = 16 << 10;

impl Exchanges {
    /// Tries the transport of 2024-11-05, after a refusal of `initialize` that can mean that the server speaks it.
    pub(crate) async fn initialize_2024(
        self: &Arc<Self>,
        initialize: &OutgoingMessage,
        refused: Error,
    ) -> Result<()> {
        if !may_be_2024(&refused) || self.state.lock().messages_2024.is_some() {
            return Err(refused);
        }
        if let Err(error) = self.open_2024().await {
            if error.is_unsupported() {
                // The server speaks that transport, but names a URL that must not be used.
                return Err(error);
            }
            tracing::debug!(error = %Logged(&error), "the server does not speak the 2024-11-05 transport either");
            return Err(no_server(refused));
        }
        match self.attempt(initialize, &Session::default()).await {
            Ok(()) | Err(ExchangeError::SessionLost { .. }) => Ok(()),
            Err(ExchangeError::Failed(error)) => Err(error),
        }
    }

    /// Opens the stream of a server of 2024-11-05.
    pub(crate) async fn open_2024(self: &Arc<Self>) -> Result<()> {
        let opened = timeout(OPEN_TIMEOUT, self.open_stream_2024()).await;
        let (target, body) = opened.unwrap_or_else(|_| {
            Err(Error::timeout(format!(
                "the server sent no `endpoint` event within {OPEN_TIMEOUT:?}"
            )))
        })?;
        self.state.lock().messages_2024 = Some(target);
        let exchanges = Arc::clone(self);
        self.spawner.spawn(async move {
            let mut stream = EventStream::new(MessageSink::without_request());
            let why = match stream.read(&exchanges, body).await {
                StreamEnd::Interrupted { why, .. } | StreamEnd::TooLong(why) => why,
                StreamEnd::Answered => return,
            };
            let text = format!(
                "{}; a session over the 2024-11-05 transport cannot be resumed",
                why.message()
            );
            exchanges.end(Error::closed(text)).await;
        });
        Ok(())
    }

    /// Opens the stream, and reads up to its first event, which names the URL for messages.
    async fn open_stream_2024(&self) -> Result<(Target, HttpBody)> {
        let mut response = self.requests.get(|_| ()).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await.error);
        }
        if Form::of_body(&mut response, &self.mirror).await != Form::Events {
            return Err(Error::decode("the server returned no event stream"));
        }
        let mut body = response.into_body();
        let mut decoder = EventDecoder::new(self.max_message.max(MAX_URL));
        while let Some(chunk) = body.chunk().await? {
            let mut rest = &chunk[..];
            while let Some(item) = decoder
                .next(&mut rest)
                .map_err(|overlong| Error::limit(format!("lost the event stream: {overlong}")))?
            {
                let StreamItem::Event(event) = item else {
                    continue;
                };
                if event.name != "endpoint" {
                    return Err(Error::decode("the server's first event is not `endpoint`"));
                }
                let target = self.messages_target(event.data)?;
                // After an event, a stream can be read as if it began there.
                return Ok((target, body.after(chunk.slice_ref(rest))));
            }
        }
        Err(Error::network(
            "the event stream ended before its `endpoint` event",
        ))
    }

    /// The URL for messages that the server has named. It must have the server's own origin: messages, and the credentials with
    /// them, are meant for no other.
    fn messages_target(&self, said: &[u8]) -> Result<Target> {
        let said = std::str::from_utf8(said).unwrap_or_default();
        let url = self.requests.target.url.join(said.trim());
        let url = url.map_err(|error| {
            Error::decode(format!(
                "invalid URL in the server's `endpoint` event: {error}"
            ))
        })?;
        if said.len() > MAX_URL {
            return Err(Error::limit(format!(
                "the URL in the server's `endpoint` event exceeds the limit of {MAX_URL} bytes"
            )));
        }
        if !is_same_origin(&url, &self.requests.target.url) {
            return Err(Error::unsupported(format!(
                "the server's `endpoint` event names another origin, {}; no messages are sent there",
                redacted_url(&url)
            )));
        }
        Target::new(url)
    }
}

/// The error for a server without any transport of the protocol: usually its URL has the wrong path.
fn no_server(refused: Error) -> Error {
    match refused.http_status() {
        Some(status) if !refused.is_protocol() => {
            let said = refused.message();
            Error::http(status, format!("{said}; is this the URL of an MCP server?"))
        }
        _ => refused,
    }
}

/// Whether the server may be one of 2024-11-05, in view of its refusal of `initialize`.
fn may_be_2024(refused: &Error) -> bool {
    const MODERN: [ErrorCode; 4] = [
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        ErrorCode::HEADER_MISMATCH,
        ErrorCode::MISSING_CLIENT_CAPABILITY,
        ErrorCode::METHOD_NOT_FOUND,
    ];
    let status = refused
        .http_status()
        .and_then(|it| StatusCode::from_u16(it).ok());
    let fits = matches!(
        status,
        Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
    );
    fits && !(refused.is_protocol() && MODERN.contains(&refused.code()))
}
