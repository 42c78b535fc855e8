//! Reconnecting: a new session with the server of a session that has ended, with the same subscriptions and log level.

use std::sync::Arc;

use oxmcp_protocol::{Method, method::Subscribe};
use tokio::select;

use crate::{
    client::{session::ClientSession, subscriptions::sync::ask_for_each},
    error::{Error, Result},
    logged::Logged,
    session::{connection::Connection, task::run_polled_within},
};

impl ClientSession {
    /// Returns a usable session after a call has failed because the server or the connection ended: this session if it is still
    /// open, otherwise a new one from [`reconnect`](Self::reconnect).
    ///
    /// It works in every revision. A modern session (2026-07-28 and later) outlives the process of its server, which is
    /// restarted with the next call. Over HTTP, a session that the server has lost is replaced with the next call. Both stay
    /// open. An older server's session ends with its process, and every session ends after too many failures. Failed calls are
    /// not repeated, since they may have taken effect.
    ///
    /// ```
    /// # use oxmcp::{Client, Command, Result};
    /// # use serde_json::json;
    /// # async fn run() -> Result<()> {
    /// let mut session = Client::new("app", "1.0.0").connect(Command::new("server")).await?;
    /// let sum = loop {
    ///     match session.call_tool("add", json!({"a": 1, "b": 2})).await {
    ///         // Adding is idempotent.
    ///         Err(error) if error.is_closed() => session = session.recover().await?,
    ///         result => break result?,
    ///     }
    /// };
    /// # let _ = sum;
    /// # Ok(())
    /// # }
    /// ```
    /// [`Client::on_restarted`](crate::Client::on_restarted) reports restarts of a process in an open session.
    ///
    /// # Errors
    /// As for [`reconnect`](Self::reconnect).
    ///
    /// # Cancel safety
    /// As for [`reconnect`](Self::reconnect).
    pub async fn recover(&self) -> Result<Self> {
        if is_open(self.connection()) {
            return Ok(self.clone());
        }
        self.reconnect().await
    }

    /// Opens a new session with the same server, over the same transport and with the settings of the same
    /// [`Client`](crate::Client): it restarts the process, or reconnects to the URL. The new session restores the subscriptions
    /// to resources, including those whose [watches](Self::watch_resource) are still held, and the log level: those of this
    /// session, or of one that was opened after it.
    ///
    /// Use it for a session that has ended, as one of 2025-11-25 or earlier does with its process: its calls fail with
    /// [`Error::is_closed`], and [`wait`](Self::wait) returns. A session that is still open is [closed](Self::close) first.
    /// Calls that were in flight are not repeated, since they may have taken effect. This session stays closed, and its
    /// [watches](Self::watch_resource) and [subscriptions](Self::listen) have ended. Updates of watched resources go to
    /// [`Client::on_resource_updated`](crate::Client::on_resource_updated) until the resources are watched again. Further
    /// calls of `reconnect`, on this session and its clones, return the same new session for as long as it is open.
    ///
    /// It is seldom needed if the server keeps no state that is lost with a connection. A modern session (2026-07-28 and later)
    /// restarts a process that has ended [by itself](crate::Command#when-the-server-fails), and ends if that happens too often.
    /// Over HTTP, requests are made one by one, and a session that the server has lost is replaced with the next request.
    /// [`recover`](Self::recover) reconnects only if the session has ended.
    ///
    /// ```
    /// # use oxmcp::{Client, Command, Result};
    /// # async fn run() -> Result<()> {
    /// let mut session = Client::new("app", "1.0.0").connect(Command::new("server")).await?;
    /// // Make the server reread its configuration.
    /// session = session.reconnect().await?;
    /// # Ok(())
    /// # }
    /// ```
    /// See [shutdown](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#shutdown).
    ///
    /// # Errors
    /// Those of [`Client::connect`](crate::Client::connect), and an error if the transport connects only once, as
    /// [`in_memory`](crate::in_memory()) does. `reconnect` may be called again after an error. A server that refuses a
    /// subscription or the log level does not make it fail: the refusal is logged.
    ///
    /// # Cancel safety
    /// If the future is dropped, a new connection is closed in the background, and `reconnect` may be called again. This
    /// session continues to close.
    pub async fn reconnect(&self) -> Result<Self> {
        let reconnection = self.state().reconnection();
        let reconnection = reconnection.ok_or_else(|| {
            Error::misuse("could not reconnect: the session is still being opened")
        })?;
        let mut latest = reconnection.lock().await;
        if let Some(session) = latest.connection.upgrade().and_then(|it| self.other(&it)) {
            return Ok(session);
        }
        // The outcome is returned to the callers of `wait`.
        let _ = self.close().await;
        let session = latest.connector.connect(&self.client()).await?;
        session.state().set_reconnection(Arc::clone(reconnection));
        latest.connection = Arc::downgrade(session.connection());
        session.subscribe_again().await;
        Ok(session)
    }

    /// The session of a connection, if it is open and is not this session.
    fn other(&self, connection: &Arc<Connection>) -> Option<Self> {
        let is_other = !Arc::ptr_eq(connection, self.connection());
        Self::of(connection).filter(|_| is_open(connection) && is_other)
    }

    /// Subscribes to the resources of the sessions before. Waits at most the timeout of one call; then the requests continue in
    /// the background.
    async fn subscribe_again(&self) {
        let uris = self.state().requested.uris();
        if let Err(error) = self.has_method(Subscribe::NAME) {
            if !uris.is_empty() {
                tracing::warn!(error = %Logged(&error), "could not restore resource subscriptions in the new session");
            }
            return;
        }
        let (connection, state) = (Arc::clone(self.connection()), Arc::clone(self.state()));
        let limit = self.client().features().timeout;
        let answered = async move {
            let asked = select! {
                biased;
                () = connection.closing() => return,
                _ = connection.ended() => return,
                asked = ask_for_each(&connection, &state, Subscribe::NAME, &uris) => asked,
            };
            for (uri, result) in uris.iter().zip(asked) {
                if let Err(error) = result {
                    tracing::warn!(error = %Logged(&error), uri, "could not restore a resource subscription in the new session");
                }
            }
        };
        run_polled_within(limit, answered).await;
    }
}

/// Whether a connection can still be used for calls.
fn is_open(connection: &Connection) -> bool {
    !connection.is_closing() && !connection.is_cut() && !connection.calls().is_closed()
}
