//! The log level that a client requests from servers: once from a legacy server, with each request from a modern one.

use std::{future::IntoFuture, time::Duration};

use oxmcp_protocol::{LoggingLevel, Meta, Method, method::SetLevel};

use crate::{
    client::{client::Client, requests::call::Call, session::ClientSession},
    error::Result,
    logged::Logged,
    session::task::run_polled_within,
};

/// The longest time that a connection that is being opened waits for the response to `logging/setLevel`: many times the
/// time that a server needs to store a level, and a short delay for a server that never responds.
const LEVEL_ANSWER: Duration = Duration::from_secs(1);

impl Client {
    /// Requests the log messages of this level and above from servers, on later connections;
    /// [`on_log`](Self::on_log) receives them. [`ClientSession::set_log_level`] changes the level for one session, and
    /// [`Call::log_level`] for one call.
    #[must_use]
    pub fn log_level(self, level: LoggingLevel) -> Self {
        self.change(|features| features.log_level = Some(level));
        self
    }
}

impl ClientSession {
    /// Requests the log messages of this level and above from the server. [`Client::on_log`] receives them.
    ///
    /// It works in every revision: a legacy server receives `logging/setLevel` once; a modern server receives the level with
    /// each later request, and this method itself sends nothing.
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// # Errors
    /// Those of a [`Call`]; a modern server cannot refuse here.
    ///
    /// # Cancel safety
    /// As for a [`Call`].
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<()> {
        if self.has_method(SetLevel::NAME).is_ok() {
            return self.set_level(level).await.map(drop);
        }
        *self.state().request_log_level.lock() = Some(level);
        self.state().requested.set_level(level);
        Ok(())
    }

    /// Adds the session's level to the metadata of a modern request, unless it has its own.
    pub(crate) fn add_log_level(&self, meta: &mut Meta) {
        let level = *self.state().request_log_level.lock();
        if let Some(level) = level
            && meta.get(Meta::LOG_LEVEL).is_none()
        {
            meta.insert(Meta::LOG_LEVEL, level.as_str());
        }
    }

    /// Requests the log level of the session that this one replaces, or else that of the client, before anything else is
    /// sent. A legacy server that does not log is not asked. The response is waited for, so that the level is in force, but
    /// only for a short time: it contains nothing that the session needs.
    pub(crate) async fn request_logs(&self) {
        let asked = self.state().requested.level();
        let Some(level) = asked.or(self.client().features().log_level) else {
            return;
        };
        if self.has_method(SetLevel::NAME).is_err() {
            *self.state().request_log_level.lock() = Some(level);
            return;
        }
        if self.server_capabilities().logging.is_none() {
            return;
        }
        let call = self.set_level(level).into_future();
        let answered = async move {
            if let Err(error) = call.await {
                tracing::warn!(error = %Logged(&error), "could not set the log level of the server");
            }
        };
        run_polled_within(LEVEL_ANSWER, answered).await;
    }
}

impl<M: Method> Call<M> {
    /// Requests the log messages of this level and above from a modern server while it serves this call, whatever the level
    /// of the session. In legacy revisions the level belongs to the session, and this method changes nothing.
    pub fn log_level(self, level: LoggingLevel) -> Self {
        if self.session.has_method(SetLevel::NAME).is_ok() {
            return self;
        }
        self.meta(Meta::LOG_LEVEL, level.as_str())
    }
}
