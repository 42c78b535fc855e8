//! [`Subscription`], the handle of a `subscriptions/listen` that the user reads, and the task that renews it.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::StreamExt;
use oxmcp_protocol::{Method, SubscriptionFilter, method};
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::field::display;

use crate::{
    client::{
        session::ClientSession,
        subscriptions::{
            events::{SubscriptionEnd, SubscriptionEvent},
            listen_request::{Backoff, FinishGuard, ListenOutcome, ListenRequest, is_retryable},
            listener::Listener,
        },
    },
    debug::opaque_debug,
    error::Result,
    logged::Logged,
    session::task::spawn_polled,
};

/// A request for a subscription, which is sent when it is awaited. Created by
/// [`ClientSession::listen`](crate::ClientSession::listen).
///
/// # Errors
/// If the server's revision has no subscriptions, if the server refuses the subscription or does not acknowledge it within
/// [`Client::timeout`](crate::Client::timeout), or if the session ends.
///
/// # Cancel safety
/// Dropping the future cancels the subscription on the wire.
#[must_use = "a subscription is made when it is awaited"]
#[derive(Clone, Debug)]
pub struct Listen {
    session: ClientSession,
    filter: SubscriptionFilter,
    once: bool,
}

impl Listen {
    pub(crate) fn new(session: ClientSession, filter: SubscriptionFilter) -> Self {
        Self {
            session,
            filter,
            once: false,
        }
    }

    /// Does not renew the subscription when the server ends it.
    ///
    /// ```
    /// use oxmcp::{SubscriptionEnd, protocol::SubscriptionFilter};
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let filter = SubscriptionFilter::default().with_tools_list_changed(true);
    /// let subscription = session.listen(filter).once().await?;
    /// if subscription.ended().await == SubscriptionEnd::Graceful {
    ///     println!("the server has ended the subscription");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }
}

impl IntoFuture for Listen {
    type Output = Result<Subscription>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Subscription>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(Subscription::open(self))
    }
}

/// An open subscription: a [`Stream`] of the changes that the server reports. Created by
/// [`ClientSession::listen`](crate::ClientSession::listen).
///
/// A server may end a subscription while the session continues. The subscription is then requested again, after a pause that
/// grows from half a second to a minute, and [`SubscriptionEvent::Resumed`] reports that changes may have been missed.
/// [`Listen::once`] switches that off. The stream ends when this side ends it, with the session, and if the server refuses to
/// resume it; [`end`](Self::end) tells which. Dropping it cancels the subscription on the wire. Equal events are queued once,
/// and beyond [`Limits::max_queued_notifications`](crate::Limits::max_queued_notifications) the oldest is dropped, with a
/// warning in the log.
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
    /// Keeps the session open.
    _session: ClientSession,
}

impl Subscription {
    async fn open(listen: Listen) -> Result<Self> {
        let Listen {
            session,
            filter,
            once,
        } = listen;
        session.has_method(method::Listen::NAME)?;
        let connection = session.connection();
        let listener = Listener::new(false, &connection.limits);
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let request = ListenRequest::new(connection, session.state(), &listener, &stop);
        spawn_polled(renew(request, filter, once));
        Ok(Self {
            filter: listener.acknowledged().await?,
            listener,
            stop,
            _stop: guard,
            _session: session,
        })
    }

    /// Returns the part of the filter that the server has agreed to. After [`SubscriptionEvent::Resumed`] the filter may be
    /// another part.
    #[must_use]
    pub fn filter(&self) -> &SubscriptionFilter {
        &self.filter
    }

    /// Returns the next event. `None` when the subscription has ended and no event is left.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<SubscriptionEvent> {
        StreamExt::next(self).await
    }

    /// Returns how the subscription ended. `None` while it is open.
    #[must_use]
    pub fn end(&self) -> Option<SubscriptionEnd> {
        self.listener.end()
    }

    /// Waits until the subscription has ended, on either side.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn ended(&self) -> SubscriptionEnd {
        self.listener.ended().await
    }

    /// Ends the subscription, and returns how it ended: the server may have ended it first. Events that have arrived can still
    /// be read.
    ///
    /// # Cancel safety
    /// Closing continues if the future is dropped.
    pub async fn close(&self) -> SubscriptionEnd {
        self.stop.cancel();
        self.listener.ended().await
    }
}

impl Stream for Subscription {
    type Item = SubscriptionEvent;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<SubscriptionEvent>> {
        let event = self.listener.poll_event(cx);
        if let Poll::Ready(Some(SubscriptionEvent::Resumed(filter))) = &event {
            self.filter.clone_from(filter);
        }
        event
    }
}

/// Makes the request of a subscription, and again whenever it ends and can be resumed, unless `once` is set.
async fn renew(request: ListenRequest, filter: SubscriptionFilter, once: bool) {
    let ListenRequest {
        connection,
        listener,
        stop,
        ..
    } = &request;
    let finish = FinishGuard(Arc::clone(listener));
    let mut backoff = Backoff::new();
    loop {
        let start = Instant::now();
        let outcome = request.run(filter.clone()).await;
        let agreed = listener.interrupt();
        if once || !is_resumable(&request, &outcome, agreed.as_ref()) {
            return finish.with(outcome);
        }
        let pause = backoff.after(start.elapsed());
        let error = outcome.error.as_ref().map(|error| display(Logged(error)));
        tracing::debug!(?pause, end = ?outcome.end, error, "subscription interrupted; renewing it after a pause");
        let ended = select! {
            biased;
            () = stop.cancelled() => ListenOutcome::local(),
            () = connection.closing() => ListenOutcome::local(),
            _ = connection.ended() => outcome,
            () = sleep(pause) => continue,
        };
        return finish.with(ended);
    }
}

/// Whether a new request can resume the subscription.
fn is_resumable(
    request: &ListenRequest,
    outcome: &ListenOutcome,
    agreed: Option<&SubscriptionFilter>,
) -> bool {
    if outcome.end == SubscriptionEnd::Local || !request.listener.was_acknowledged() {
        return false;
    }
    // A server that has agreed to an empty filter sends no events.
    let silent = agreed.is_some_and(SubscriptionFilter::is_empty);
    !silent && {
        let error = outcome.error.as_ref();
        error.is_none_or(|error| is_retryable(error, &request.connection))
    }
}

opaque_debug!(Subscription, |it| { filter: it.filter, end: it.end() });
