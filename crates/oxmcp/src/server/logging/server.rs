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
    /// Declares that this server logs to its clients: without it, [`RequestContext::log`](crate::RequestContext::log)
    /// sends nothing.
    ///
    /// It must be declared, since the server cannot tell from outside whether a handler logs, and the specification allows log
    /// messages only from servers that have declared them.
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
    /// Logs a message to the client outside any request (2025-11-25 and earlier). In a handler,
    /// [`RequestContext::log`](crate::RequestContext::log) does it in every revision.
    ///
    /// As there, messages are sent only if the client wants them, and the rate is limited.
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
    /// [`Error::is_unsupported`] if no session was opened with `initialize`: modern clients take messages of their requests
    /// only. Also if the server has not declared [`logging`](crate::Server::logging), and if the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for room in the output buffer, nothing has been sent.
    pub async fn log(&self, message: LoggingMessageParams) -> Result<()> {
        if self.revision().is_none() {
            return Err(Error::unsupported(
                "no session was opened with initialize, and modern clients hear log messages of their requests only; \
                 use RequestContext::log",
            ));
        }
        let audience = Audience::of_session(self.clone()).ok_or_else(|| {
            Error::misuse("the server has not declared that it logs; say so with Server::logging()")
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
pub(in crate::server) fn set_level(call: &Call<'_>) -> Result<Served> {
    if call.features.logging.is_none() {
        return Err(Error::method_not_found(SetLevel::NAME));
    }
    let params: SetLevelParams = call.read(SetLevel::NAME)?;
    call.role.log_filter().set_level(params.level);
    call.answer(EmptyResult::default())
}
