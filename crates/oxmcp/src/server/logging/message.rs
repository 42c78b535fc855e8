use std::{
    fmt,
    future::{self, Future, IntoFuture},
    pin::Pin,
};

use serde::Serialize;

use super::gate::Audience;
use crate::{
    json::Logged,
    protocol::{LoggingLevel, LoggingMessageParams, Notification, method::LoggingMessage},
    session::RequestContext,
};

/// A log message that is about to be sent; made by [`RequestContext::log`]. Await it.
#[must_use = "a message is sent when this is awaited"]
pub struct Log<'a> {
    context: &'a RequestContext,
    /// `None` where nobody hears it.
    message: Option<(Audience, LoggingMessageParams)>,
}

impl RequestContext {
    /// Logs a message to the client: any JSON, most often a text or an object. Say who says it, then await it.
    ///
    /// It is sent only if the server has declared [`logging`](crate::Server::logging) and the client wants to hear messages
    /// of this level; it costs little if not. It waits while the caller reads slower than this writes. Beyond
    /// [`LogOptions::rate`](crate::logging::LogOptions::rate) messages are dropped and counted. What is logged before the handler
    /// returns is sent before its answer, and what is logged later is dropped. Do not log secrets, nor who people are.
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// ```
    /// use oxmcp::{RequestContext, protocol::LoggingLevel};
    /// use serde_json::json;
    ///
    /// async fn handler(cx: RequestContext) {
    ///     cx.log(LoggingLevel::Info, "reading the third file").await;
    ///     cx.log(LoggingLevel::Error, json!({"msg": "it is gone", "file": 3})).logger("files").await;
    /// }
    /// # let _ = oxmcp::Tool::new("read", "Read files", handler);
    /// ```
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits, the message has not been sent.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) -> Log<'_> {
        let audience = Audience::of(self);
        if audience.is_none() {
            tracing::debug!(
                "nobody hears log messages: the server has to declare them with Server::logging(), and a modern client to \
                 ask for them"
            );
        }
        let audience = audience.filter(|audience| audience.hears(level));
        let message = audience.and_then(|audience| {
            let message = LoggingMessageParams::new(level, &data);
            let message = message.map_err(
                |error| tracing::warn!(error = %Logged(&error), "what was to be logged to the client is no JSON"),
            );
            Some((audience, message.ok()?))
        });
        Log {
            context: self,
            message,
        }
    }

    /// Whether a message of this level would be sent, so that what is costly to find out need not be found out for
    /// nobody.
    #[must_use]
    pub fn wants_log(&self, level: LoggingLevel) -> bool {
        Audience::of(self).is_some_and(|audience| audience.hears(level))
    }
}

impl Log<'_> {
    /// Who says it: a part of the server, by a name that is always the same.
    pub fn logger(mut self, name: impl Into<String>) -> Self {
        if let Some((_, message)) = &mut self.message {
            message.logger = Some(name.into());
        }
        self
    }
}

impl<'a> IntoFuture for Log<'a> {
    type Output = ();
    type IntoFuture = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Some((audience, message)) = self.message else {
            return Box::pin(future::ready(()));
        };
        Box::pin(send(self.context, audience, message))
    }
}

async fn send(context: &RequestContext, audience: Audience, message: LoggingMessageParams) {
    let Some(dropped) = audience.admit() else {
        return;
    };
    let notice = audience.notice(dropped);
    for message in notice.into_iter().chain([message]) {
        if let Err(error) = context.tell(LoggingMessage::NAME, &message).await {
            tracing::debug!(error = %Logged(&error), "a log message was not sent");
        }
    }
}

impl fmt::Debug for Log<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field(
                "message",
                &self.message.as_ref().map(|(_, message)| message),
            )
            .finish_non_exhaustive()
    }
}
