//! Methods of a server to allow subscriptions, report resource updates, and publish events of extensions.

use std::{future::Future, sync::Arc};

use oxmcp_protocol::{JsonObject, Notification};
use serde_json::Value;

use super::{
    Topics,
    open_subscriptions::Event,
    watched::{Hooks, ResourceSubscriptions},
};
use crate::{
    error::{Error, Result},
    extension::registry::notification_params,
    server::{server::Server, session::ServerSession},
    session::{connection::RequestContext, handler::state_scope::StateScope},
};

impl Server {
    /// Lets clients watch resources; [`resource_updated`](Self::resource_updated) notifies them of updates.
    ///
    /// Clients can watch any URI, even one that cannot be read yet. They are not notified of updates of resources that they [cannot
    /// see](crate::Resource::visible_to). A watch ends with the session at the latest.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    #[must_use]
    #[doc(alias = "resources/subscribe")]
    pub fn subscriptions(self) -> Self {
        self.allow_subscriptions(ResourceSubscriptions::default())
    }

    /// Lets clients watch resources, like [`subscriptions`](Self::subscriptions), and sets handlers for the start and the end of a
    /// watch.
    ///
    /// The handlers can, for example, start and stop a file watcher. If `subscribe` fails, the client does not watch the resource:
    /// legacy clients get the error, and for modern ones the acknowledgment lists the accepted resources. Each successful
    /// `subscribe` is followed by one `unsubscribe`, when the client unsubscribes or the session ends. Repeated
    /// `resources/subscribe` requests for the same resource count once; each `subscriptions/listen` counts separately.
    ///
    /// If resources or templates are [visible only to some callers](crate::Resource::visible_to), `subscribe` is called only for
    /// resources that the caller can read, and others cannot be watched. So a hidden resource looks like one that does not exist.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Resource, Server, ServerSession};
    ///
    /// let server = Server::new("files", "1.0.0")
    ///     .resource(Resource::text("app://status", "status", "fine"))
    ///     .on_subscribe(
    ///         |_cx: RequestContext, uri: String| async move {
    ///             // … start watching the file behind the URI …
    ///             println!("subscribed to {uri}");
    ///             Ok(())
    ///         },
    ///         |_session: ServerSession, uri: String| async move {
    ///             println!("unsubscribed from {uri}");
    ///         },
    ///     );
    /// # let _ = server;
    /// ```
    #[must_use]
    #[doc(alias("resources/subscribe", "resources/unsubscribe"))]
    pub fn on_subscribe<S, SF, U, UF>(self, subscribe: S, unsubscribe: U) -> Self
    where
        S: Fn(RequestContext, String) -> SF + Send + Sync + 'static,
        SF: Future<Output = Result<()>> + Send + 'static,
        U: Fn(ServerSession, String) -> UF + Send + Sync + 'static,
        UF: Future<Output = ()> + Send + 'static,
    {
        let unsubscribe = Arc::new(unsubscribe);
        let hooks = Hooks {
            subscribe: Box::new(move |context, uri| Box::pin(subscribe(context, uri))),
            unsubscribe: Box::new(move |connection, uri| {
                let unsubscribe = Arc::clone(&unsubscribe);
                ServerSession::run_hook(connection, move |session| unsubscribe(session, uri))
            }),
        };
        let hooks = Some(Arc::new(hooks));
        self.allow_subscriptions(ResourceSubscriptions { hooks })
    }

    fn allow_subscriptions(self, subscriptions: ResourceSubscriptions) -> Self {
        self.with(|features| {
            features.subscriptions = Some(subscriptions);
            features.resources.declare();
        })
    }

    /// Notifies the clients that watch a resource of an update, in every revision.
    ///
    /// These are the sessions that subscribed to exactly this URI, and the open subscriptions that name it. Updates within 10 ms
    /// are sent once per URI; a slow client gets them as often as it can read them. The method can be called from any thread, and
    /// any number of times. Without [`subscriptions`](Self::subscriptions) it does nothing.
    ///
    /// ```
    /// use oxmcp::{Client, Resource, Server, protocol::SubscriptionFilter, testing};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let server = Server::new("app", "1.0.0")
    ///     .resource(Resource::text("app://status", "status", "fine"))
    ///     .subscriptions();
    /// let session = testing::connect(&server).await?;
    /// let filter = SubscriptionFilter::default().with_resource_subscription("app://status");
    /// let mut subscription = session.listen(filter).await?;
    ///
    /// server.resource_updated("app://status");
    /// assert!(subscription.next().await.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "notifications/resources/updated")]
    pub fn resource_updated(&self, uri: impl AsRef<str>) {
        let uri = uri.as_ref();
        #[cfg(feature = "http-server")]
        let change = if self.features().subscriptions.is_some() {
            self.tell_nodes(|news, number| news.add(&Topics::of_resource(uri), number))
        } else {
            None
        };
        // Collect only watched URIs, so that the same limits apply to the collected set.
        let watched = self.open_subscriptions().watch(uri)
            || self.sessions().any(|session| session.role().watches(uri));
        if watched {
            let topics = Topics::of_resource(uri);
            #[cfg(feature = "http-server")]
            let topics = topics.due_to(change);
            self.tell(topics);
        }
    }

    /// Sends a notification of an extension to subscribed clients.
    ///
    /// It goes to modern clients that have subscribed to `value` under the extension's `key`, and to all clients with a legacy
    /// session, which cannot subscribe. As with [`RequestContext::notify`], legacy clients need not declare the extension: they
    /// ignore unknown notifications.
    ///
    /// A filter matches the value that it has under the key, alone or in a list; `true` matches all values. Notifications to one
    /// client arrive in order. The method can be called from any thread. If a client does not read, and more than
    /// [`Limits::max_queued_events`](crate::Limits::max_queued_events) notifications are queued, its subscription ends with an
    /// error.
    ///
    /// Subscriptions at other nodes are notified if the extension
    /// [republishes its events](crate::Extension::republishes).
    ///
    /// ```
    /// use oxmcp::{Extension, Server, protocol::{Notification, NotificationParams}};
    ///
    /// struct Entered;
    /// impl Notification for Entered {
    ///     const NAME: &'static str = "notifications/com.example/rooms/entered";
    ///     type Params = NotificationParams;
    /// }
    ///
    /// # fn main() -> oxmcp::Result<()> {
    /// let rooms = Extension::new("com.example/rooms").listen_key("com.example/rooms");
    /// let server = Server::new("house", "1.0.0").extension(rooms);
    /// server.publish::<Entered>("com.example/rooms", "kitchen", NotificationParams::default())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If no extension of the server has the key, or the params are not a JSON object.
    pub fn publish<N: Notification>(
        &self,
        key: &str,
        value: impl Into<Value>,
        params: N::Params,
    ) -> Result<()> {
        let features = self.features();
        let extensions = &features.extensions;
        if !extensions.has_listen_key(key) {
            return Err(Error::misuse(format!(
                "unknown subscription key {key:?}; declare it with `Extension::listen_key`"
            )));
        }
        let params = notification_params::<N>(params)?;
        let (value, name) = (value.into(), N::NAME);
        let event = Event::new(name, params);
        #[cfg(feature = "http-server")]
        if extensions.republished(key).is_some() {
            let published = (key.to_owned(), value.to_string());
            self.tell_nodes(|news, number| news.publish(published, number));
        }
        self.publish_to_subscriptions((key, &value), &event);
        for session in self.sessions() {
            let role = session.role();
            let event = event.clone();
            let client = role.legacy_session().initialized_client();
            let may_notify = client.is_some_and(|client| {
                let declared = client.capabilities.extensions.as_ref();
                extensions
                    .may_notify_client(name, client.revision, declared)
                    .is_ok()
            });
            if may_notify {
                let connection = Arc::clone(session.connection());
                let queue = Arc::clone(role.published(&connection));
                let job = Box::pin(async move {
                    event.send(&connection, JsonObject::new()).await;
                });
                // The job counts with 0 bytes in the queue: all sessions share the event.
                queue.push(job, 0);
            }
        }
        Ok(())
    }

    /// Sends a notification of an extension to the subscriptions to `value` under its `key`.
    pub(crate) fn publish_to_subscriptions(&self, of: (&str, &Value), event: &Event) {
        let features = self.features();
        let extensions = &features.extensions;
        let limit = features.limits.max_queued_events;
        self.open_subscriptions()
            .publish(limit, of, event, extensions);
        for session in self.sessions() {
            let limit = session.connection().limits.max_queued_events;
            session
                .role()
                .open_subscriptions
                .publish(limit, of, event, extensions);
        }
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Sets the handlers of [`Server::on_subscribe`], with the state as first argument.
    pub fn on_subscribe<S, SF, U, UF>(&self, subscribe: S, unsubscribe: U) -> &Self
    where
        S: Fn(State, RequestContext, String) -> SF + Send + Sync + 'static,
        SF: Future<Output = Result<()>> + Send + 'static,
        U: Fn(State, ServerSession, String) -> UF + Send + Sync + 'static,
        UF: Future<Output = ()> + Send + 'static,
    {
        let (begun, ended) = (self.state(), self.state());
        self.role().build(|server| {
            server.on_subscribe(
                move |cx, uri| subscribe(begun.clone(), cx, uri),
                move |session, uri| unsubscribe(ended.clone(), session, uri),
            )
        });
        self
    }
}
