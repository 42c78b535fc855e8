//! One `subscriptions/listen` request, from its first message to its last, and the pauses between requests.

use std::{
    collections::hash_map::RandomState, future::pending, hash::BuildHasher, sync::Arc,
    time::Duration,
};

use oxmcp_protocol::{ErrorCode, ListenParams, Method, SubscriptionFilter, method::Listen};
use tokio::{select, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        features::LONGEST_WAIT,
        session::SessionState,
        subscriptions::{
            events::SubscriptionEnd,
            listener::{Listener, Listeners},
        },
    },
    error::Error,
    session::{connection::Connection, outbound::options::CallOptions},
};

/// The entry of a request's listener. Once it is dropped, notifications are no longer delivered to the listener.
struct Registration {
    listeners: Arc<Listeners>,
    listener: Arc<Listener>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.listeners.remove(&self.listener);
    }
}

/// Ends a listener together with the task that makes its requests, also if the task panics.
pub(crate) struct FinishGuard(pub(crate) Arc<Listener>);

impl FinishGuard {
    pub(crate) fn with(self, outcome: ListenOutcome) {
        self.0.finish(outcome.end, outcome.error);
    }
}

impl Drop for FinishGuard {
    fn drop(&mut self) {
        self.0.finish(SubscriptionEnd::Local, None);
    }
}

/// The end of a request.
pub(crate) struct ListenOutcome {
    pub(crate) end: SubscriptionEnd,
    pub(crate) error: Option<Error>,
}

impl ListenOutcome {
    pub(crate) fn local() -> Self {
        let error = Error::cancelled("the subscription was closed on this side");
        Self {
            end: SubscriptionEnd::Local,
            error: Some(error),
        }
    }
}

/// The data that the requests of a subscription share.
pub(crate) struct ListenRequest {
    pub(crate) connection: Arc<Connection>,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) stop: CancellationToken,
    /// The time in which the server must acknowledge a request.
    pub(crate) timeout: Duration,
}

impl ListenRequest {
    pub(crate) fn new(
        connection: &Arc<Connection>,
        state: &SessionState,
        listener: &Arc<Listener>,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            connection: Arc::clone(connection),
            listeners: Arc::clone(&state.listeners),
            listener: Arc::clone(listener),
            stop: stop.clone(),
            timeout: state.client.features().timeout,
        }
    }

    /// Makes a request, and waits until it ends: by its response, by `stop`, with the session, or because the server does
    /// not acknowledge it in time. Dropping the future cancels the request on the wire.
    pub(crate) async fn run(&self, filter: SubscriptionFilter) -> ListenOutcome {
        let Self {
            connection,
            listeners,
            listener,
            stop,
            timeout,
        } = self;
        let _registration = Registration {
            listeners: Arc::clone(listeners),
            listener: Arc::clone(listener),
        };
        let begun = (Arc::clone(listeners), Arc::clone(listener));
        let options = CallOptions {
            timeout: LONGEST_WAIT,
            max_total: LONGEST_WAIT,
            on_begin: Some(Box::new(move |id| {
                let (listeners, listener) = begun;
                listeners.insert(id, listener);
            })),
            ..CallOptions::default()
        };
        let params = ListenParams::new(filter);
        let answer = select! {
            biased;
            answer = connection.call(Listen::NAME, &params, options) => answer,
            () = stop.cancelled() => return ListenOutcome::local(),
            () = connection.closing() => return ListenOutcome::local(),
            () = unacknowledged(listener, *timeout) => Err(Error::timeout(format!(
                "the server did not acknowledge the subscription within {timeout:?}; set a longer `Client::timeout`"
            ))),
        };
        let (end, error) = match answer {
            Ok(_) => (SubscriptionEnd::Graceful, None),
            Err(error) if !connection.is_closing() => (SubscriptionEnd::Remote, Some(error)),
            Err(error) => (SubscriptionEnd::Local, Some(error)),
        };
        ListenOutcome { end, error }
    }
}

/// Waits until the time to acknowledge a request has passed.
async fn unacknowledged(listener: &Listener, timeout: Duration) {
    select! {
        biased;
        () = listener.opened() => pending().await,
        () = sleep(timeout) => {}
    }
}

/// Whether a new request can succeed after this error. It cannot if the server does not serve the request, or the session
/// has ended.
pub(crate) fn is_retryable(error: &Error, connection: &Connection) -> bool {
    const FINAL: [ErrorCode; 3] = [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
    ];
    let refused = error.is_protocol() && FINAL.contains(&error.code());
    // A server that has ended may be restarted, and the session continues.
    let is_over = error.is_closed() && connection.calls().is_closed();
    !refused && !is_over && !error.is_unsupported()
}

/// The upper bound of the first pause.
const FIRST: Duration = Duration::from_millis(500);
/// The upper bound of the longest pause. After a subscription that was open for as long, the pauses begin again with the
/// first.
const LONGEST: Duration = Duration::from_secs(60);

/// Exponential back-off with jitter.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next pause, after a subscription that was open for a while.
    pub(crate) fn after(&mut self, open: Duration) -> Duration {
        if open >= LONGEST {
            self.next = FIRST;
        }
        // The keys of each new state are random.
        self.pause(RandomState::new().hash_one(FIRST))
    }

    /// The next pause: from a half to the whole of its bound.
    fn pause(&mut self, random: u64) -> Duration {
        let most = self.next;
        self.next = (most * 2).min(LONGEST);
        let half = most / 2;
        let share = u32::try_from(random % 1024).unwrap_or_default();
        half + half / 1024 * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_reset() {
        let mut backoff = Backoff::new();
        let mut most = FIRST;
        for _ in 0..12 {
            let pause = backoff.after(Duration::ZERO);
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
            most = (most * 2).min(LONGEST);
        }
        assert_eq!(most, LONGEST);
        assert!(backoff.after(LONGEST) <= FIRST);
    }

    #[test]
    fn pauses_are_jittered() {
        let pauses: Vec<_> = (0..8).map(|_| Backoff::new().after(LONGEST)).collect();
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
        assert_eq!(Backoff::new().pause(0), FIRST / 2);
    }
}
