//! Log message of a handler to its request's client.

use std::{
    future::{self, Future, IntoFuture},
    pin::Pin,
};

use oxmcp_protocol::{LoggingLevel, LoggingMessageParams, Notification, method::LoggingMessage};
use serde::Serialize;
use serde_json::json;

use super::{LogFilter, LogOptions};
use crate::{
    debug::opaque_debug, logged::Logged, server::session::ServerSession,
    session::connection::RequestContext,
};

/// A log message, sent when awaited; made by [`RequestContext::log`].
#[must_use = "the message is sent when this is awaited"]
pub struct Log<'a> {
    context: &'a RequestContext,
    /// `None` if the message is not sent.
    message: Option<(Audience, LoggingMessageParams)>,
}

impl RequestContext {
    /// Logs a message to the client: any JSON value, usually a text or an object. Await it to send the message.
    ///
    /// The message is sent only if the server has declared [`logging`](crate::Server::logging) and the client wants messages of
    /// this level; otherwise the call is cheap. The call waits while the client is slow. Messages beyond
    /// [`LogOptions::rate`](crate::server::logging::LogOptions::rate) are dropped and counted. Messages logged before the
    /// handler returns are sent before its response, and later ones are dropped. Do not log secrets or personal data.
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
    /// Cancel safe: if the future is dropped while it waits, the message has not been sent.
    #[doc(alias = "notifications/message")]
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) -> Log<'_> {
        let audience = Audience::of(self);
        if audience.is_none() {
            tracing::debug!(
                "not sending log messages: the server does not declare logging, or the client set no level"
            );
        }
        let audience = audience.filter(|audience| audience.hears(level));
        let message = audience.and_then(|audience| {
            let message = LoggingMessageParams::new(level, &data);
            let message = message.map_err(
                |error| tracing::warn!(error = %Logged(&error), "could not serialize a log message for the client"),
            );
            Some((audience, message.ok()?))
        });
        Log {
            context: self,
            message,
        }
    }

    /// Returns whether a message of this level would be sent, so that a handler can skip collecting expensive data.
    #[must_use]
    pub fn wants_log(&self, level: LoggingLevel) -> bool {
        Audience::of(self).is_some_and(|audience| audience.hears(level))
    }
}

impl Log<'_> {
    /// Sets the logger: a fixed name for a part of the server.
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
    let admitted = audience.admit(message);
    for message in admitted.into_iter().flat_map(|it| it.messages) {
        if let Err(error) = context
            .send_notification(LoggingMessage::NAME, &message)
            .await
        {
            tracing::debug!(error = %Logged(&error), "could not send a log message to the client");
        }
    }
}

opaque_debug!(Log<'_>, |it| { message: it.message.as_ref().map(|(_, message)| message) });

/// The session that log messages of a request go to, and the least severe level that it wants.
///
/// This code must not emit events of [`tracing`]: the layer uses it before other layers have seen the current event, and a
/// nested event resets the filter results that they have stored for the current one.
pub(crate) struct Audience {
    session: ServerSession,
    options: LogOptions,
    least: LoggingLevel,
}

/// A message to send, after a notice of the messages dropped before it.
pub(crate) struct Admitted {
    pub(crate) messages: Vec<LoggingMessageParams>,
    /// The number of dropped messages in the notice.
    #[cfg(feature = "tracing-subscriber")]
    pub(crate) dropped: u64,
}

impl Audience {
    /// The audience of a request. `None` if no messages are sent for it.
    pub(crate) fn of(cx: &RequestContext) -> Option<Self> {
        let session = cx.server_session()?;
        if !cx.revision().is_modern() {
            return Self::of_session(session);
        }
        Some(Self {
            options: declared(&session)?,
            least: cx.parts().log_level?,
            session,
        })
    }

    /// The audience of the session that `initialize` opened. `None` if the server does not log.
    pub(crate) fn of_session(session: ServerSession) -> Option<Self> {
        let options = declared(&session)?;
        let asked = session.role().log_filter().level();
        Some(Self {
            options: options.clone(),
            least: asked.unwrap_or(options.default_level),
            session,
        })
    }

    pub(crate) fn hears(&self, level: LoggingLevel) -> bool {
        level >= self.least
    }

    /// Admits a message, or counts it as dropped.
    pub(crate) fn admit(&self, message: LoggingMessageParams) -> Option<Admitted> {
        let dropped = self.filter().admit(&self.options)?;
        let notice = (dropped > 0 && self.hears(LoggingLevel::Warning)).then(|| {
            let data =
                json!({"msg": "log messages dropped: rate limit exceeded", "dropped": dropped});
            LoggingMessageParams::new(LoggingLevel::Warning, &data)
                .expect("a JSON value is always JSON")
        });
        let mut messages: Vec<_> = notice.into_iter().chain([message]).collect();
        for message in messages.iter_mut().filter(|it| it.logger.is_none()) {
            message.logger = self.options.logger.as_deref().map(str::to_owned);
        }
        Some(Admitted {
            messages,
            #[cfg(feature = "tracing-subscriber")]
            dropped,
        })
    }

    /// Counts messages as dropped.
    #[cfg(feature = "tracing-subscriber")]
    pub(crate) fn drop(&self, messages: u64) {
        self.filter().drop(messages);
    }

    fn filter(&self) -> &LogFilter {
        self.session.role().log_filter()
    }
}

/// The logging options of the server, if it has declared logging.
fn declared(session: &ServerSession) -> Option<LogOptions> {
    session.role().server().features().logging.clone()
}
