//! A request for a subscription, from its first message to its last.

use std::{
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{select, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        features::LONGEST_WAIT,
        subscriptions::{
            events::SubscriptionEnd,
            listener::{Listener, Listeners},
        },
    },
    error::Error,
    jsonrpc::ErrorCode,
    protocol::{ListenParams, Method, SubscriptionFilter, method::Listen},
    session::{CallOptions, Connection},
};

/// A request for a subscription that is being made. However that ends, its notifications are no longer taken.
struct Open {
    listeners: Arc<Listeners>,
    listener: Arc<Listener>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.listeners.leave(&self.listener);
    }
}

/// Ends a listener with what makes requests for it. However that ends, and be it by a panic, nobody waits for ever.
pub(crate) struct Finish(pub(super) Arc<Listener>);

impl Finish {
    pub(crate) fn with(self, over: Over) {
        self.0.finish(over.end, over.error);
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish(SubscriptionEnd::Local, None);
    }
}

/// How a request for a subscription ended.
pub(crate) struct Over {
    pub(crate) end: SubscriptionEnd,
    pub(crate) error: Option<Error>,
}

impl Over {
    pub(crate) fn by_this_side() -> Self {
        let error = Error::cancelled("the subscription was ended by this side");
        Self {
            end: SubscriptionEnd::Local,
            error: Some(error),
        }
    }
}

/// Who asks for a subscription.
pub(crate) struct Asking {
    pub(crate) connection: Arc<Connection>,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) stop: CancellationToken,
    /// How long the server may take to acknowledge it.
    pub(crate) patience: Duration,
}

impl Asking {
    /// Makes the request of a subscription, and waits until it ends: by its answer, by `stop`, with the session, or because the
    /// server does not acknowledge it in time. Dropped, it cancels the request on the wire.
    pub(crate) async fn request(&self, filter: SubscriptionFilter) -> Over {
        let Self {
            connection,
            listeners,
            listener,
            stop,
            patience,
        } = self;
        let _open = Open {
            listeners: Arc::clone(listeners),
            listener: Arc::clone(listener),
        };
        let begun = (Arc::clone(listeners), Arc::clone(listener));
        let options = CallOptions {
            timeout: LONGEST_WAIT,
            max_total: LONGEST_WAIT,
            on_begin: Some(Box::new(move |id| {
                let (listeners, listener) = begun;
                listeners.enter(id, listener);
            })),
            ..CallOptions::default()
        };
        let answer = select! {
            biased;
            answer = connection.call(Listen::NAME, ListenParams::new(filter), options) => answer,
            () = stop.cancelled() => return Over::by_this_side(),
            () = connection.closing() => return Over::by_this_side(),
            () = unacknowledged(listener, *patience) => Err(Error::timeout(format!(
                "the server did not acknowledge a subscription within {patience:?}; it was cancelled"
            ))),
        };
        let (end, error) = match answer {
            Ok(_) => (SubscriptionEnd::Graceful, None),
            Err(error) if !connection.is_closing() => (SubscriptionEnd::Remote, Some(error)),
            Err(error) => (SubscriptionEnd::Local, Some(error)),
        };
        Over { end, error }
    }
}

/// Waits until it is too late for the server to acknowledge what it was asked for last.
async fn unacknowledged(listener: &Listener, patience: Duration) {
    select! {
        biased;
        () = listener.opened() => pending().await,
        () = sleep(patience) => {}
    }
}

/// Whether asking for a subscription once more, after this, can help. It cannot where the server does not know how, or
/// where the session is gone.
pub(crate) fn may_help(error: &Error) -> bool {
    const FINAL: [ErrorCode; 3] = [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
    ];
    let refused = error.is_protocol() && FINAL.contains(&error.code());
    !refused && !error.is_closed() && !error.is_unsupported()
}

/// Runs a task that makes a request first: it is sent before this returns, if there is room, so that whatever is asked
/// next is answered later than it.
pub(crate) fn begin(task: impl Future<Output = ()> + Send + 'static) {
    let mut task = Box::pin(task);
    if task.as_mut().now_or_never().is_none() {
        tokio::spawn(task);
    }
}
