//! What a server's author says of subscriptions.

use std::{fmt, future::Future, sync::Arc};

use super::Topics;
use crate::{
    Result,
    server::{Server, session::ServerSession},
    session::{BoxFuture, RequestContext},
};

/// That clients can watch resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscribing {
    pub(super) hooks: Option<Arc<Hooks>>,
}

/// What is called when somebody begins or ends to watch a resource.
pub(crate) struct Hooks {
    pub(super) subscribe:
        Box<dyn Fn(RequestContext, String) -> BoxFuture<Result<()>> + Send + Sync>,
    pub(super) unsubscribe: Box<dyn Fn(ServerSession, String) -> BoxFuture<()> + Send + Sync>,
}

impl Server {
    /// Lets clients watch resources: those who do are told by [`resource_updated`](Self::resource_updated).
    ///
    /// Any URI can be watched, also one that cannot be read yet. Where resources or templates are
    /// [for some callers only](crate::Resource::visible_to), the others are not told of updates of them. Who is told of what is kept track of; that ends with the
    /// session at the latest.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    #[must_use]
    pub fn subscriptions(self) -> Self {
        self.subscribing(Subscribing::default());
        self
    }

    /// Lets clients watch resources, as [`subscriptions`](Self::subscriptions) does, and says what is to be done when one
    /// begins and when it ends to watch one: begin to watch a file, say, and end it again.
    ///
    /// `subscribe` may fail: then the client does not watch the resource. For clients until 2025-11-25 its error is the
    /// answer; others are told what was agreed to. Each time that it succeeds is followed by one call of `unsubscribe`, when
    /// the client has had enough or the session has ended. A client that subscribes twice to the same resource by
    /// `resources/subscribe` counts once; each `subscriptions/listen` counts by itself.
    ///
    /// Where resources or templates are [for some callers only](crate::Resource::visible_to), `subscribe` is asked about what
    /// the caller can read, and nothing else can be watched: so what is hidden looks like what does not exist.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Resource, Server, ServerSession};
    ///
    /// let server = Server::new("files", "1.0.0")
    ///     .resource(Resource::text("app://status", "status", "fine"))
    ///     .on_subscribe(
    ///         |_cx: RequestContext, uri: String| async move {
    ///             // … begin to watch what the URI stands for …
    ///             println!("somebody watches {uri}");
    ///             Ok(())
    ///         },
    ///         |_session: ServerSession, uri: String| async move {
    ///             println!("one less watches {uri}");
    ///         },
    ///     );
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn on_subscribe<S, SF, U, UF>(self, subscribe: S, unsubscribe: U) -> Self
    where
        S: Fn(RequestContext, String) -> SF + Send + Sync + 'static,
        SF: Future<Output = Result<()>> + Send + 'static,
        U: Fn(ServerSession, String) -> UF + Send + Sync + 'static,
        UF: Future<Output = ()> + Send + 'static,
    {
        let hooks = Hooks {
            subscribe: Box::new(move |context, uri| Box::pin(subscribe(context, uri))),
            unsubscribe: Box::new(move |session, uri| Box::pin(unsubscribe(session, uri))),
        };
        let hooks = Some(Arc::new(hooks));
        self.subscribing(Subscribing { hooks });
        self
    }

    fn subscribing(&self, subscribing: Subscribing) {
        self.change(|features| {
            features.subscribing = Some(subscribing);
            features.resources.declare();
        });
    }

    /// Tells those who watch a resource that it was updated, whatever their revision and way of asking: the sessions that
    /// subscribed to this very URI, and the open subscriptions that name it. Nobody else is told.
    ///
    /// What happens within 10 ms is told once for each URI, and to a client that reads slowly as often as it can take.
    /// May be called from any thread, as often as you like. Without [`subscriptions`](Self::subscriptions) it does
    /// nothing.
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
    pub fn resource_updated(&self, uri: impl AsRef<str>) {
        let uri = uri.as_ref();
        // What nobody watches is not collected, so that what is collected has the bounds of what is watched.
        let watched =
            self.listens().watch(uri) || self.sessions().any(|session| session.peer().watches(uri));
        if watched {
            self.changed(Topics::of_resource(uri));
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
