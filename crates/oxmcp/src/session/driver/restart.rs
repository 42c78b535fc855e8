//! Reconnecting to a peer that has ended, such as a process that is restarted.

use std::{collections::VecDeque, sync::Arc, task::Waker, time::Duration};

use tokio::{
    select,
    time::{Instant, sleep},
};

use crate::{
    error::{Error, Result},
    logged::Logged,
    session::{connection::Connection, driver::outbox::Due},
    transport::traits::WriteHalf,
};

/// The pause before the first restart, which doubles each time, and its maximum. A server that fails at once must not keep a
/// processor busy.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// The maximum number of restarts within `WITHIN`. A server that exits more often is broken.
const MAX_RESTARTS: usize = 5;
const WITHIN: Duration = Duration::from_secs(5 * 60);

/// The times of the recent restarts of a peer.
#[derive(Debug, Default)]
pub(crate) struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// Fails the calls to a peer that has ended, and reconnects once there is output. Returns whether it has reconnected: false
    /// if this side closes the session meanwhile.
    ///
    /// # Errors
    /// The reason for the peer's end, if it has ended too often.
    pub(crate) async fn restart(
        &mut self,
        connection: &Arc<Connection>,
        write: &mut impl WriteHalf,
        ended: Error,
    ) -> Result<bool> {
        let mut ended = ended;
        loop {
            connection.lose_peer(ended.message());
            // The rest of the peer is closed now, because there may be no output for a long time.
            if let Err(error) = write.close().await {
                tracing::debug!(error = %Logged(&error), "could not close the exited server cleanly");
            }
            if !is_wanted(connection).await {
                return Ok(false);
            }
            let Some(pause) = self.next(Instant::now()) else {
                return Err(ended);
            };
            tracing::warn!(?pause, why = %Logged(&ended), "server exited; restarting it");
            if closes_within(connection, pause).await {
                return Ok(false);
            }
            match write.reconnect().await {
                Ok(()) => return Ok(true),
                Err(error) => ended = error,
            }
        }
    }

    /// Counts a restart, and returns the pause before it; `None` if there were too many.
    fn next(&mut self, now: Instant) -> Option<Duration> {
        while self.0.front().is_some_and(|then| now - *then >= WITHIN) {
            self.0.pop_front();
        }
        if self.0.len() >= MAX_RESTARTS {
            return None;
        }
        let doubled = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.push_back(now);
        Some(PAUSES.0.saturating_mul(1 << doubled.min(16)).min(PAUSES.1))
    }
}

impl Connection {
    /// Drops the output for a peer that has ended, and fails the calls to it. Later output is for the next peer.
    fn lose_peer(&self, reason: &str) {
        // Under one lock: an appended call is either dropped and fails, or is sent to the next peer.
        let failed = self.outbox.discard(|| self.calls().fail_all(reason));
        failed.into_iter().for_each(Waker::wake);
    }
}

/// Waits until there is output. Returns `false` if this side closes the session instead.
async fn is_wanted(connection: &Connection) -> bool {
    loop {
        let due = connection.outbox.wanted().await;
        if connection.is_closing() || connection.is_cut() {
            return false;
        }
        if due == Due::Write {
            return true;
        }
    }
}

async fn closes_within(connection: &Connection, pause: Duration) -> bool {
    select! {
        biased;
        () = connection.closing() => true,
        () = sleep(pause) => connection.is_cut(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Wake},
    };

    use oxmcp_protocol::{
        EmptyParams, Revision,
        internal::{RawNotification, RequestParams},
    };

    use super::*;
    use crate::{
        limits::Limits,
        session::{
            connection::{Arrival, Role, Side},
            outbound::options::CallOptions,
            tolerance::Tolerance,
        },
        transport::principal::Principal,
    };

    /// A client whose peer sends no requests and no notifications.
    #[derive(Debug)]
    struct Caller;

    impl Role for Caller {
        fn side(&self) -> Side {
            Side::Client
        }

        fn tolerance(&self) -> Arc<Tolerance> {
            Arc::default()
        }

        fn peer_name(&self) -> Option<String> {
            None
        }

        fn request(&self, _: &Arc<Connection>, _: Arrival<'_>) {}

        fn notification(
            &self,
            _: &Arc<Connection>,
            _: RawNotification<'_, RequestParams<'_>>,
            _: Option<&Principal>,
        ) {
        }

        fn has_meta_key(&self, _: &str) -> bool {
            false
        }

        fn revision(&self) -> Option<Revision> {
            None
        }

        fn closed(&self, _: &Arc<Connection>) {}
    }

    fn connection() -> Arc<Connection> {
        Connection::new(Arc::new(Caller), Limits::default())
    }

    async fn ping(connection: Arc<Connection>, options: CallOptions) -> Result<Box<str>> {
        connection
            .call("ping", &EmptyParams::default(), options)
            .await
    }

    #[tokio::test]
    async fn call_failed_with_its_peer_is_not_resent() {
        let connection = connection();
        // The peer ends after the call was entered, and before it is sent.
        let losing = Arc::clone(&connection);
        let options = CallOptions {
            on_begin: Some(Box::new(move |_| losing.lose_peer("the peer ended"))),
            ..CallOptions::default()
        };
        let called = ping(Arc::clone(&connection), options).await;
        assert!(called.unwrap_err().is_closed());
        assert_eq!(connection.outbox.unsent(), 0, "it was sent");
    }

    #[tokio::test]
    async fn queued_call_is_sent_to_the_next_peer() {
        /// Calls when it is woken.
        struct CallsAgain(Arc<Connection>);

        impl Wake for CallsAgain {
            fn wake(self: Arc<Self>) {
                let mut call = pin!(ping(Arc::clone(&self.0), CallOptions::default()));
                let mut cx = Context::from_waker(Waker::noop());
                assert!(call.as_mut().poll(&mut cx).is_pending());
                assert_ne!(self.0.outbox.unsent(), 0);
            }
        }

        let connection = connection();
        let mut lost = pin!(ping(Arc::clone(&connection), CallOptions::default()));
        let waker = Waker::from(Arc::new(CallsAgain(Arc::clone(&connection))));
        assert!(
            lost.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        connection.lose_peer("the peer ended");
        let sent = connection.outbox.unsent();
        assert_ne!(sent, 0, "the call that came after it was dropped");
        let Poll::Ready(Err(error)) = lost.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("the call to the peer that ended still waits");
        };
        assert!(error.is_closed());
        assert_eq!(
            connection.outbox.unsent(),
            sent,
            "a call that failed is not cancelled"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn restarts_are_delayed_increasingly_and_end() {
        let mut restarts = Restarts::default();
        let start = Instant::now();
        for pause in [100, 200, 400, 800, 1600] {
            assert_eq!(restarts.next(start), Some(Duration::from_millis(pause)));
        }
        assert_eq!(restarts.next(start + WITHIN / 2), None);
        assert_eq!(restarts.next(start + WITHIN), Some(PAUSES.0));
    }
}
