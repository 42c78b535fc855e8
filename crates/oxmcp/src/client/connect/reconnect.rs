//! Reconnecting: another session with the server of one that has ended, which is asked for what that was asked for.

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
    /// Opens another session with the same server, by the same transport and with the settings of the same
    /// [`Client`](crate::Client): a process is started anew, a URL is connected to anew. It subscribes to the resources that were
    /// subscribed to, and to those whose [watches](Self::watch_resource) are still held, and sets the log level that was set: in
    /// this session, or in one that was opened after it.
    ///
    /// It is for a session that has ended, as one of 2025-11-25 or earlier does with its process: its calls fail with
    /// [`Error::is_closed`], and [`wait`](Self::wait) returns. One that is still open is [closed](Self::close) first. The calls that
    /// were in flight are not made again, since what they were to do may have been done. The new session is another one: this one stays
    /// closed, and its [watches](Self::watch_resource) and [subscriptions](Self::listen) have ended. What watched resources have to
    /// say goes to [`Client::on_resource_updated`](crate::Client::on_resource_updated) until they are watched again.
    /// Several calls of it, of this session and its clones, give the same new session, for as long as that is open.
    ///
    /// Seldom is it needed where the server keeps nothing that is lost with a connection. A modern session (2026-07-28 and later) starts
    /// a process that ended anew [by itself](crate::Command#when-the-server-fails), and ends when that happens too often; over HTTP
    /// requests are made one by one, and a session that the server has lost is opened anew where the next one is made.
    ///
    /// ```
    /// # use oxmcp::{Client, Command, Result};
    /// # use serde_json::json;
    /// # async fn run() -> Result<()> {
    /// let mut session = Client::new("app", "1.0.0").connect(Command::new("server")).await?;
    /// let sum = loop {
    ///     match session.call_tool("add", json!({"a": 1, "b": 2})).await {
    ///         // Adding again does no harm.
    ///         Err(error) if error.is_closed() => session = session.reconnect().await?,
    ///         result => break result?,
    ///     }
    /// };
    /// # let _ = sum;
    /// # Ok(())
    /// # }
    /// ```
    /// See [shutdown](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#shutdown).
    ///
    /// # Errors
    /// Those of [`Client::connect`](crate::Client::connect), and where the transport connects only once, as [`in_memory`](crate::in_memory())
    /// does. It may be called again. A server that refuses a subscription or the log level does not make it fail: that is logged.
    ///
    /// # Cancel safety
    /// When the future is dropped, a connection that was begun is closed in the background, and it may be called again. Closing this
    /// session goes on.
    pub async fn reconnect(&self) -> Result<Self> {
        let reconnection = self.state().reconnection();
        let reconnection = reconnection.ok_or_else(|| {
            Error::misuse("the session was not handed out yet: it cannot be opened anew")
        })?;
        let mut latest = reconnection.lock().await;
        if let Some(session) = latest.connection.upgrade().and_then(|it| self.other(&it)) {
            return Ok(session);
        }
        // How it ended is known to those who wait for it.
        let _ = self.close().await;
        let session = latest.connector.connect(&self.client()).await?;
        session.state().set_reconnection(Arc::clone(reconnection));
        latest.connection = Arc::downgrade(session.connection());
        session.subscribe_again().await;
        Ok(session)
    }

    /// The session over a connection, where it is open and another than this.
    fn other(&self, connection: &Arc<Connection>) -> Option<Self> {
        let is_open = !connection.is_closing() && !connection.is_cut();
        let is_other = !Arc::ptr_eq(connection, self.connection());
        Self::of(connection).filter(|_| is_open && is_other)
    }

    /// Subscribes to what was subscribed to in the sessions before. That is waited for as long as for one call, and goes on in the
    /// background then.
    async fn subscribe_again(&self) {
        let uris = self.state().requested.uris();
        if let Err(error) = self.has_method(Subscribe::NAME) {
            if !uris.is_empty() {
                tracing::warn!(error = %Logged(&error), "the new session does not watch what the old one did");
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
                    tracing::warn!(error = %Logged(&error), uri, "the new session does not watch what the old one did");
                }
            }
        };
        run_polled_within(limit, answered).await;
    }
}
