//! The handlers of notifications, and the dispatch of a notification to its handler.

use std::{
    future::Future,
    sync::{Arc, Weak},
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    LoggingMessageParams, Notification, Payload,
    method::{
        ElicitationComplete, LoggingMessage, PromptListChanged, ResourceListChanged,
        ResourceUpdated, ToolListChanged,
    },
};

use crate::{
    client::{
        client::Client,
        features::{NotificationHandler, NotificationHandlers},
        handlers::url_elicitations::UrlElicitations,
        session::ClientSession,
    },
    logged::Logged,
    session::{connection::Connection, task::BoxFuture},
};

impl NotificationHandlers {
    /// The future of the handler for a notification. `None` if there is no handler, if the params cannot be read, or if a
    /// completed elicitation is not known.
    pub(crate) fn begin(
        &self,
        connection: &Arc<Connection>,
        method: &str,
        params: Option<Text<'_>>,
        elicitations: &UrlElicitations,
    ) -> Option<BoxFuture<()>> {
        let peer = connection;
        let connection = Arc::downgrade(connection);
        match method {
            LoggingMessage::NAME => run(&self.log, connection, || {
                read::<LoggingMessage>(peer, params)
            }),
            ResourceUpdated::NAME => run(&self.resource_updated, connection, || {
                Some(read::<ResourceUpdated>(peer, params)?.uri)
            }),
            ToolListChanged::NAME => run(&self.tools_changed, connection, || Some(())),
            PromptListChanged::NAME => run(&self.prompts_changed, connection, || Some(())),
            ResourceListChanged::NAME => run(&self.resources_changed, connection, || Some(())),
            ElicitationComplete::NAME => run(&self.elicitation_complete, connection, || {
                let id = read::<ElicitationComplete>(peer, params)?.elicitation_id;
                elicitations.complete(&id).then_some(id)
            }),
            _ => None,
        }
    }
}

fn run<T>(
    handler: &Option<NotificationHandler<T>>,
    connection: Weak<Connection>,
    params: impl FnOnce() -> Option<T>,
) -> Option<BoxFuture<()>> {
    let handler = handler.as_ref()?;
    Some(handler(params()?, connection))
}

fn read<N: Notification<Params: Payload>>(
    connection: &Connection,
    params: Option<Text<'_>>,
) -> Option<N::Params> {
    match connection.read(N::NAME, params.unwrap_or(Text::EMPTY).get()) {
        Ok(params) => Some(params),
        Err(error) => {
            tracing::debug!(method = N::NAME, error = %Logged(&error), "ignoring a malformed notification");
            None
        }
    }
}

fn erase<T, F, Fut>(handler: F) -> NotificationHandler<T>
where
    T: Send + 'static,
    F: Fn(T, ClientSession) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |params, connection| {
        let handler = Arc::clone(&handler);
        // The user's code runs on the notification queue, which catches its panics, and only while the session has a handle.
        Box::pin(async move {
            let connection = connection.upgrade();
            let session = connection.and_then(|connection| ClientSession::of(&connection));
            if let Some(session) = session {
                handler(params, session).await;
            }
        })
    })
}

impl Client {
    /// Sets the handler that is called when a server notifies the client that its list of tools has changed. The handlers
    /// of one session run one at a time, in the order of the notifications.
    ///
    /// Legacy servers send the notification unasked. Modern servers send it only to subscribers, so a session with a modern
    /// server opens a subscription on connecting, for the handlers that are set by then and whose capability the server has
    /// declared. A refusal is logged. [`ClientSession::listen`] opens your own subscription.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
    ///
    /// ```
    /// use oxmcp::{Client, ClientSession};
    ///
    /// let client = Client::new("my-app", "1.0.0").on_tools_changed(|session: ClientSession| async move {
    ///     match session.tools().all().await {
    ///         Ok(tools) => println!("tools changed: {} available", tools.len()),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias = "notifications/tools/list_changed")]
    pub fn on_tools_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(move |(), session| handler(session));
        self.change(|features| features.notifications.tools_changed = Some(handler));
        self
    }

    /// Sets the handler that is called when a server notifies the client that its list of prompts has changed, as
    /// [`on_tools_changed`](Self::on_tools_changed) does for tools.
    #[must_use]
    #[doc(alias = "notifications/prompts/list_changed")]
    pub fn on_prompts_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(move |(), session| handler(session));
        self.change(|features| features.notifications.prompts_changed = Some(handler));
        self
    }

    /// Sets the handler that is called when a server notifies the client that its list of resources or of resource
    /// templates has changed, as [`on_tools_changed`](Self::on_tools_changed) does for tools.
    #[must_use]
    #[doc(alias = "notifications/resources/list_changed")]
    pub fn on_resources_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(move |(), session| handler(session));
        self.change(|features| features.notifications.resources_changed = Some(handler));
        self
    }

    /// Sets the handler that is called with the URI when a server notifies the client that a subscribed resource has
    /// changed. It runs in order with the other handlers of the session.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    ///
    /// ```
    /// use oxmcp::Client;
    ///
    /// let client = Client::new("my-app", "1.0.0").on_resource_updated(|uri, session| async move {
    ///     match session.read_resource(uri).await {
    ///         Ok(read) => println!("{:?}", read.contents),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias = "notifications/resources/updated")]
    pub fn on_resource_updated<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(String, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(handler);
        self.change(|features| features.notifications.resource_updated = Some(handler));
        self
    }

    /// Sets the handler that is called with the log messages of a server. It runs in order with the other handlers of the
    /// session. [`log_level`](Self::log_level) sets the minimum severity of the messages: modern servers send none without
    /// it.
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// ```
    /// use oxmcp::{Client, protocol::LoggingLevel};
    ///
    /// let client = Client::new("my-app", "1.0.0")
    ///     .log_level(LoggingLevel::Info)
    ///     .on_log(|message, _session| async move {
    ///         eprintln!("{}: {}", message.level, message.data);
    ///     });
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias = "notifications/message")]
    pub fn on_log<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(LoggingMessageParams, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(handler);
        self.change(|features| features.notifications.log = Some(handler));
        self
    }

    /// Sets the handler that is called when the process of a modern server (2026-07-28 and later) has ended and was
    /// [restarted](crate::Command#when-the-server-fails), while its session stays open. Whatever the process kept in memory is
    /// lost; calls that were in flight have failed, and subscriptions are requested again. The handler runs in order with the
    /// other handlers of the session, before the first response of the new process is returned to its caller.
    ///
    /// The session of an older server ends with its process: [`ClientSession::wait`] returns, and
    /// [`recover`](ClientSession::recover) opens another. In that case this handler is not called.
    ///
    /// ```
    /// use oxmcp::{Client, ClientSession};
    ///
    /// let client = Client::new("my-app", "1.0.0").on_restarted(|session: ClientSession| async move {
    ///     eprintln!("{:?} was restarted", session.server_info().map(|info| &info.name));
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn on_restarted<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(move |(), session| handler(session));
        self.change(|features| features.notifications.restarted = Some(handler));
        self
    }

    /// Sets the handler that is called with the id of an elicitation when a server notifies the client that the user has
    /// completed it at its URL (2025-11-25 only). It runs in order with the other handlers of the session. Unknown ids are
    /// ignored: those that came neither with an elicitation request nor with a call that the server refused with
    /// [`URL_ELICITATION_REQUIRED`](crate::ErrorCode::URL_ELICITATION_REQUIRED).
    /// See [completion](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    #[must_use]
    #[doc(alias = "notifications/elicitation/complete")]
    pub fn on_elicitation_complete<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(String, ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = erase(handler);
        self.change(|features| features.notifications.elicitation_complete = Some(handler));
        self
    }
}
