//! The limits on what a view can make a host do.

use std::time::{Duration, Instant};

/// The limits of an [`AppBridge`](super::AppBridge). A view that exceeds one loses only its own messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeLimits {
    /// The bytes of a message. The default is 10 MiB, which the specification suggests for the results of an app's tools.
    pub max_message_bytes: usize,
    /// The messages per second, on average; twice as many may come at once. The default is 100: a view that is resized sends
    /// one with each frame.
    pub max_messages_per_second: u32,
    /// The requests of a view in flight, with those that it has [cancelled](Self::cancelled_time) just now. The default is 32.
    pub max_requests: usize,
    /// The bytes of these requests together. The default is 32 MiB.
    pub max_request_bytes: usize,
    /// The time for which a request that the view has cancelled still counts as in flight, unless the host answers it before:
    /// the server may still work on it. The default is one second.
    pub cancelled_time: Duration,
    /// The bytes of the context for the model. The default is 256 KiB.
    pub max_context_bytes: usize,
    /// The bytes of a log message, after which it is cut off. The default is 16 KiB.
    pub max_log_bytes: usize,
    /// The violations that are reported; later ones are only counted. The default is 100.
    pub max_reports: usize,
    /// The tools of a view. The default is 50, which the specification suggests.
    pub max_app_tools: usize,
    /// The time in which a view must answer a request of the host. The default is 30 seconds, which the specification suggests.
    pub answer_timeout: Duration,
    /// The time in which a view must answer before it is unmounted. The default is 3 seconds.
    pub teardown_timeout: Duration,
}

impl Default for BridgeLimits {
    fn default() -> Self {
        Self {
            max_message_bytes: 10 * 1024 * 1024,
            max_messages_per_second: 100,
            max_requests: 32,
            max_request_bytes: 32 * 1024 * 1024,
            cancelled_time: Duration::from_secs(1),
            max_context_bytes: 256 * 1024,
            max_log_bytes: 16 * 1024,
            max_reports: 100,
            max_app_tools: 50,
            answer_timeout: Duration::from_secs(30),
            teardown_timeout: Duration::from_secs(3),
        }
    }
}

/// The messages that a view may send now: a bucket of two seconds' worth, which fills as time passes.
#[derive(Debug, Default)]
pub(crate) struct MessageRate {
    /// The time at which the bucket would be empty if it drained at the permitted rate; `None` before the first message.
    drained: Option<Instant>,
}

impl MessageRate {
    /// Counts a message. Returns whether it is permitted.
    pub(crate) fn count(&mut self, limits: &BridgeLimits, now: Instant) -> bool {
        const BURST: Duration = Duration::from_secs(2);
        let cost = Duration::from_secs(1) / limits.max_messages_per_second.max(1);
        let drained = self.drained.map_or(now, |it| it.max(now)) + cost;
        let is_permitted = drained.saturating_duration_since(now) <= BURST;
        if is_permitted {
            self.drained = Some(drained);
        }
        is_permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "a start for times that pass only in the test"
    )]
    #[test]
    fn rate_allows_a_burst_and_refills() {
        let limits = BridgeLimits {
            max_messages_per_second: 10,
            ..BridgeLimits::default()
        };
        let start = Instant::now();
        let mut rate = MessageRate::default();
        let mut count = |now| (0..1000).filter(|_| rate.count(&limits, now)).count();
        assert_eq!(count(start), 20);
        assert_eq!(count(start), 0);
        assert_eq!(count(start + Duration::from_millis(500)), 5);
        // An hour of silence allows no more than a burst.
        assert_eq!(count(start + Duration::from_secs(3600)), 20);
    }
}
