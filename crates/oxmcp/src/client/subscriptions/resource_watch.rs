//! [`ResourceWatch`], the stream of changes of a resource, in every revision.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::StreamExt;
use oxmcp_protocol::ResourceUpdatedParams;

use crate::{
    client::{
        session::ClientSession,
        subscriptions::{
            events::{SubscriptionEnd, SubscriptionEvent},
            listener::Listener,
            sync::sync_subscriptions,
        },
    },
    debug::opaque_debug,
    error::{Error, Result},
    session::task::spawn_polled,
};

/// A watch on a resource: a [`Stream`] of its changes. Created by
/// [`ClientSession::watch_resource`](crate::ClientSession::watch_resource).
///
/// A change of a part of the resource counts as a change of the resource. Equal changes are queued once, and beyond
/// [`Limits::max_queued_notifications`](crate::Limits::max_queued_notifications) the oldest is dropped, with a warning in
/// the log. An interruption, in which changes may have been missed, counts as a change.
///
/// The watch ends with the session, and if the server refuses the subscription after an interruption. When the last watch
/// of a resource is dropped, the session unsubscribes.
#[must_use = "dropping it ends the watch"]
pub struct ResourceWatch {
    uri: String,
    listener: Arc<Listener>,
    /// Keeps the session open.
    session: ClientSession,
}

impl ClientSession {
    /// Watches the changes of a resource, in every revision. Returns once the server has agreed: from then on no change is
    /// missed. A session can have any number of watches, also of one resource: a legacy server receives one request for each
    /// resource, and a modern one receives one subscription for all watches and change handlers.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let mut watch = session.watch_resource("file:///todo.md").await?;
    /// while let Some(update) = watch.next().await {
    ///     let now = session.read_resource(update.uri).await?;
    ///     println!("{:?}", now.contents);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the server does not notify of changes of resources, or not of this one. An error if it
    /// refuses, or if the session ends.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watch.
    #[doc(alias("resources/subscribe", "subscriptions/listen"))]
    pub async fn watch_resource(&self, uri: impl Into<String>) -> Result<ResourceWatch> {
        let resources = self.facts().await?.capabilities.resources.as_ref();
        if !resources.is_some_and(|it| it.subscribe) {
            return Err(Error::unsupported(
                "the server does not support resource subscriptions: it does not declare \
                 `resources.subscribe`; nothing was sent",
            ));
        }
        let watch = ResourceWatch {
            uri: uri.into(),
            listener: Listener::new(false, &self.connection().limits),
            session: self.clone(),
        };
        let (connection, state) = (self.connection(), self.state());
        if state.desired.add_watcher(&watch.uri, &watch.listener) {
            spawn_polled(sync_subscriptions(
                Arc::clone(connection),
                Arc::clone(state),
            ));
        }
        watch.listener.acknowledged().await?;
        if !self.revision().is_modern() {
            state.requested.watched(&watch.uri, &watch.listener);
        }
        Ok(watch)
    }
}

impl ResourceWatch {
    /// Returns the URI of the watched resource.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the next change. `None` when the watch has ended and no change is left.
    ///
    /// # Cancel safety
    /// Cancel safe: no change is lost.
    pub async fn next(&mut self) -> Option<ResourceUpdatedParams> {
        StreamExt::next(self).await
    }

    /// Returns how the watch ended. `None` while it is open.
    #[must_use]
    pub fn end(&self) -> Option<SubscriptionEnd> {
        self.listener.end()
    }
}

impl Stream for ResourceWatch {
    type Item = ResourceUpdatedParams;

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<ResourceUpdatedParams>> {
        // Watches get no other events.
        while let Some(event) = ready!(self.listener.poll_event(cx)) {
            if let SubscriptionEvent::ResourceUpdated(update) = event {
                return Poll::Ready(Some(update));
            }
        }
        Poll::Ready(None)
    }
}

impl Drop for ResourceWatch {
    fn drop(&mut self) {
        let state = self.session.state();
        state.desired.remove_watcher(&self.uri, &self.listener);
        state.requested.unwatched(&self.uri, &self.listener);
    }
}

opaque_debug!(ResourceWatch, |it| { uri: it.uri, end: it.end() });
