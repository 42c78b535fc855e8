//! A client's end of `subscriptions/listen`.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::StreamExt;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Result,
    client::{ClientSession, listener::Listener},
    json::Text,
    protocol::{
        Method, Notification, RawJson, ResourceUpdatedParams, SubscriptionFilter,
        method::{
            Listen, PromptListChanged, ResourceListChanged, ResourceUpdated, ToolListChanged,
        },
    },
};

/// What a server says within a [`Subscription`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// There are other tools.
    ToolsListChanged,
    /// There are other prompts.
    PromptsListChanged,
    /// There are other resources, or other resource templates.
    ResourcesListChanged,
    /// A resource has changed.
    ResourceUpdated(ResourceUpdatedParams),
    /// What this version of the crate does not know.
    #[non_exhaustive]
    Other {
        /// The name of the notification.
        method: String,
        /// Its params.
        params: Option<RawJson>,
    },
}

impl SubscriptionEvent {
    /// What a notification says. One that cannot be read is kept as it is.
    pub(super) fn read(method: &str, params: Option<Text<'_>>) -> Self {
        let updated = || params.and_then(|params| params.parse().ok());
        let other = || Self::Other {
            method: method.to_owned(),
            params: params.map(|params| params.to_raw().into()),
        };
        match method {
            ToolListChanged::NAME => Self::ToolsListChanged,
            PromptListChanged::NAME => Self::PromptsListChanged,
            ResourceListChanged::NAME => Self::ResourcesListChanged,
            ResourceUpdated::NAME => updated().map_or_else(other, Self::ResourceUpdated),
            _ => other(),
        }
    }
}

/// How a [`Subscription`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionEnd {
    /// The server ended it properly, as it does when it shuts down.
    Graceful,
    /// The server broke it off, or went away.
    Remote,
    /// This side ended it, or closed the session.
    Local,
}

/// An open subscription: a [`Stream`] of what the server says has changed. Made by
/// [`ClientSession::listen`](crate::ClientSession::listen).
///
/// It ends with the subscription, whoever ends it; [`end`](Self::end) says who did. Dropping it cancels the subscription
/// on the wire. What has been said and not been taken yet is said once only, and beyond
/// [`Limits::max_queued_notifications`](crate::Limits::max_queued_notifications) the oldest is dropped, with a warning in
/// the log.
///
/// ```
/// use oxmcp::{Server, SubscriptionEnd, SubscriptionEvent, Tool, protocol::SubscriptionFilter, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// let server = Server::new("clock", "1.0.0").tool(Tool::new("now", "Tell the time", || async { "ten past two" }));
/// let session = testing::connect(&server).await?;
///
/// let wanted = SubscriptionFilter::default().with_tools_list_changed(true).with_prompts_list_changed(true);
/// let mut subscription = session.listen(wanted).await?;
/// assert!(!subscription.filter().prompts_list_changed); // this server has none
///
/// server.remove_tools(["now"]);
/// assert_eq!(subscription.next().await, Some(SubscriptionEvent::ToolsListChanged));
/// assert_eq!(subscription.close().await, SubscriptionEnd::Local);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    listener: Arc<Listener>,
    filter: SubscriptionFilter,
    stop: CancellationToken,
    _stop: DropGuard,
    /// It keeps its session open.
    _session: ClientSession,
}

impl Subscription {
    pub(super) async fn open(session: ClientSession, filter: SubscriptionFilter) -> Result<Self> {
        session.has_method(Listen::NAME)?;
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let listener = session.begin_listen(filter, false, &stop);
        Ok(Self {
            filter: listener.acknowledged().await?,
            listener,
            stop,
            _stop: guard,
            _session: session,
        })
    }

    /// What the server has agreed to tell: a part of what it was asked for.
    #[must_use]
    pub fn filter(&self) -> &SubscriptionFilter {
        &self.filter
    }

    /// The next event. `None` when the subscription has ended and nothing is left.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<SubscriptionEvent> {
        StreamExt::next(self).await
    }

    /// How the subscription ended. `None` while it is open.
    #[must_use]
    pub fn end(&self) -> Option<SubscriptionEnd> {
        self.listener.end()
    }

    /// Waits until the subscription has ended, whoever ends it.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn ended(&self) -> SubscriptionEnd {
        self.listener.ended().await
    }

    /// Ends the subscription, and says how it ended: the server may have been faster. What has arrived can still be
    /// taken.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self) -> SubscriptionEnd {
        self.stop.cancel();
        self.listener.ended().await
    }
}

impl Stream for Subscription {
    type Item = SubscriptionEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SubscriptionEvent>> {
        self.listener.poll_event(cx)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("filter", &self.filter)
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}
