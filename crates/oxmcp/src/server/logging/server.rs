//! Logging of a server: declaring it, the level of a session, and messages outside of requests.

use oxmcp_protocol::{
    EmptyResult, LoggingMessageParams, Method, Notification, SetLevelParams,
    method::{LoggingMessage, SetLevel},
};

use super::{LogOptions, message::Audience};
use crate::{
    error::{Error, Result},
    server::{
        dispatch::{Call, Served},
        server::Server,
        session::ServerSession,
    },
};

impl Server {
    /// Declares that this server logs to its clients. Otherwise, [`RequestContext::log`](crate::RequestContext::log) sends
    /// nothing.
    ///
    /// The declaration is explicit, since the SDK cannot know whether a handler logs, and the specification allows log messages
    /// only from servers that declare them.
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// ```
    /// use oxmcp::{RequestContext, Server, Tool, protocol::LoggingLevel};
    ///
    /// let server = Server::new("library", "1.0.0")
    ///     .logging()
    ///     .tool(Tool::new("index", "Index the books", |cx: RequestContext| async move {
    ///         cx.log(LoggingLevel::Warning, "two books have the same number").logger("index").await;
    ///         "done"
    ///     }));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn logging(self) -> Self {
        self.logging_with(LogOptions::default())
    }

    /// Like [`logging`](Self::logging), with options.
    #[must_use]
    pub fn logging_with(self, options: LogOptions) -> Self {
        self.with(|features| features.logging = Some(options))
    }
}

impl ServerSession {
    /// Logs a message to the client outside any request (up to 2025-11-25). In a handler, use
    /// [`RequestContext::log`](crate::RequestContext::log), which works in every revision.
    ///
    /// Messages are sent only if the client wants them, and the rate is limited.
    /// See [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
    ///
    /// ```no_run
    /// use oxmcp::protocol::{LoggingLevel, LoggingMessageParams};
    /// # async fn run(session: oxmcp::ServerSession) -> Result<(), Box<dyn std::error::Error>> {
    /// let message = LoggingMessageParams::new(LoggingLevel::Notice, &"the library closes at ten")?;
    /// session.log(message.with_logger("doors")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client opened no session with `initialize`: modern clients accept only messages of their
    /// requests. Also if the server does not declare [`logging`](crate::Server::logging), or the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for space in the outbox, nothing has been sent.
    pub async fn log(&self, message: LoggingMessageParams) -> Result<()> {
        if self.revision().is_none() {
            return Err(Error::unsupported(
                "cannot send log messages to this client: it opened no session with `initialize`; use `RequestContext::log`",
            ));
        }
        let audience = Audience::of_session(self.clone()).ok_or_else(|| {
            Error::misuse(
                "cannot send log messages: logging is not declared; use `Server::logging`",
            )
        })?;
        if !audience.hears(message.level) {
            return Ok(());
        }
        let admitted = audience.admit(message);
        for message in admitted.into_iter().flat_map(|it| it.messages) {
            self.connection()
                .notify(LoggingMessage::NAME, message)
                .await?;
        }
        Ok(())
    }
}

/// See [setting the level](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging#setting-log-level).
pub(crate) fn set_level(call: &Call<'_>) -> Result<Served> {
    if call.features.logging.is_none() {
        return Err(Error::method_not_found(SetLevel::NAME));
    }
    let params: SetLevelParams = call.read(SetLevel::NAME)?;
    call.role.log_filter().set_level(params.level);
    call.answer(EmptyResult::default())
}
