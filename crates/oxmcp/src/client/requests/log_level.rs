//! What a client wants to hear of a server's log.

use std::{
    future::IntoFuture,
    sync::atomic::{AtomicU8, Ordering},
};

use futures_util::FutureExt;

use crate::{
    client::{client::Client, requests::call::Call, session::ClientSession},
    error::Result,
    json::Logged,
    protocol::{LoggingLevel, Meta, Method, method::SetLevel},
};

/// The least severe level that the requests of a session want to hear of, where each says so by itself.
#[derive(Debug, Default)]
pub(crate) struct RequestLevel(AtomicU8);

/// All levels, at the place after their number: nothing is said by 0.
const LEVELS: [LoggingLevel; 8] = [
    LoggingLevel::Debug,
    LoggingLevel::Info,
    LoggingLevel::Notice,
    LoggingLevel::Warning,
    LoggingLevel::Error,
    LoggingLevel::Critical,
    LoggingLevel::Alert,
    LoggingLevel::Emergency,
];

impl RequestLevel {
    pub(crate) fn get(&self) -> Option<LoggingLevel> {
        let number = self.0.load(Ordering::Relaxed).checked_sub(1)?;
        LEVELS.get(usize::from(number)).copied()
    }

    fn set(&self, level: LoggingLevel) {
        self.0.store(level as u8 + 1, Ordering::Relaxed);
    }
}

impl Client {
    /// Asks the servers that are connected to from now on for what they log, from this level on;
    /// [`on_log`](Self::on_log) gets it. [`ClientSession::set_log_level`] changes it for one session, and
    /// [`Call::log_level`] for one call.
    #[must_use]
    pub fn log_level(self, level: LoggingLevel) -> Self {
        self.change(|features| features.log_level = Some(level));
        self
    }
}

impl ClientSession {
    /// Asks the server for what it logs, from this level on. [`Client::on_log`] gets it.
    ///
    /// It works in every revision: a legacy server is told once, with `logging/setLevel`; modern ones are told with
    /// each request that is made from now on, and nothing is sent by this alone.
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
        self.peer().request_level().set(level);
        Ok(())
    }

    /// Has a request say what the session wants to hear of, unless it says so itself.
    pub(crate) fn want_log(&self, meta: &mut Meta) {
        if let Some(level) = self.peer().request_level().get()
            && meta.get(Meta::LOG_LEVEL).is_none()
        {
            meta.insert(Meta::LOG_LEVEL, level.as_str());
        }
    }

    /// Asks for what the client wants to hear of, before anything else is asked: a legacy server that does not log is
    /// not asked, and nobody waits for its answer.
    pub(crate) fn begin_logging(&self) {
        let Some(level) = self.client().features().log_level else {
            return;
        };
        if self.has_method(SetLevel::NAME).is_err() {
            return self.peer().request_level().set(level);
        }
        if self.server_capabilities().logging.is_none() {
            return;
        }
        let call = self.set_level(level).into_future();
        let mut call = call.map(|answer| {
            if let Err(error) = answer {
                tracing::warn!(error = %Logged(&error), "the server does not take the level from which it is to log");
            }
        });
        if (&mut call).now_or_never().is_none() {
            tokio::spawn(call);
        }
    }
}

impl<M: Method> Call<M> {
    /// Asks a modern server for what it logs while it serves this call, from this level on, whatever the session wants to
    /// hear. In legacy revisions the level is the session's: this changes nothing there.
    pub fn log_level(self, level: LoggingLevel) -> Self {
        if self.session().has_method(SetLevel::NAME).is_ok() {
            return self;
        }
        self.meta(Meta::LOG_LEVEL, level.as_str())
    }
}
