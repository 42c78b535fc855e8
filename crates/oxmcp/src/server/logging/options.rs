//! Log options of a server, and the filter of a session: its level and a token bucket.

use std::{mem, sync::Arc, time::Duration};

use oxmcp_protocol::LoggingLevel;
use tokio::time::Instant;

use crate::{session::task::after, sync::Mutex};

/// The options for a server's log messages to clients; for [`Server::logging_with`](crate::Server::logging_with).
///
/// ```
/// use oxmcp::{Server, logging::LogOptions, protocol::LoggingLevel};
///
/// let options = LogOptions::default().rate(10, 50).default_level(LoggingLevel::Warning);
/// let server = Server::new("calculator", "1.0.0").logging_with(options);
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The time between two messages at the steady rate.
    interval: Duration,
    burst: u32,
    pub(crate) logger: Option<Arc<str>>,
    pub(crate) default_level: LoggingLevel,
}

impl LogOptions {
    /// Sets the rate limit of a session: messages per second, and the size of a burst. Default: 100, with bursts of 1000. A burst
    /// of 0 means no limit.
    ///
    /// Messages beyond the limit are dropped, and reported with their number before the next message. The specification requires
    /// a limit: every message costs the client, and a handler can easily log in a loop.
    #[must_use]
    pub fn rate(self, per_second: u32, at_once: u32) -> Self {
        self.every(Duration::from_secs(1) / per_second.max(1), at_once)
    }

    /// Like [`rate`](Self::rate), with the time between two messages, which may exceed a second.
    ///
    /// ```
    /// use oxmcp::logging::LogOptions;
    /// use std::time::Duration;
    ///
    /// let ten_a_minute = LogOptions::default().every(Duration::from_secs(6), 10);
    /// # let _ = ten_a_minute;
    /// ```
    #[must_use]
    pub fn every(mut self, interval: Duration, at_once: u32) -> Self {
        self.interval = interval;
        self.burst = at_once;
        self
    }

    /// Sets the default logger of messages. Default: none.
    #[must_use]
    pub fn logger(mut self, name: impl Into<Arc<str>>) -> Self {
        self.logger = Some(name.into());
        self
    }

    /// Sets the least severe level for legacy clients that have not set one, which the specification leaves to the server.
    /// Default: [`LoggingLevel::Info`]. A modern client that sets no level gets no messages.
    #[must_use]
    pub fn default_level(mut self, level: LoggingLevel) -> Self {
        self.default_level = level;
        self
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(10),
            burst: 1000,
            logger: None,
            default_level: LoggingLevel::Info,
        }
    }
}

/// The level and the rate of log messages to one session.
#[derive(Debug, Default)]
pub(crate) struct LogFilter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The level that the client has set with `logging/setLevel`.
    level: Option<LoggingLevel>,
    /// The time at which all messages so far would be sent at the steady rate. If it is too far ahead, messages are dropped: a
    /// token bucket without a timer.
    paid_until: Option<Instant>,
    dropped: u64,
}

impl LogFilter {
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        self.0.lock().level = Some(level);
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        self.0.lock().level
    }

    /// Admits one message, or counts it as dropped. Returns how many were dropped since the last admitted message.
    pub(crate) fn admit(&self, options: &LogOptions) -> Option<u64> {
        let mut state = self.0.lock();
        if options.burst == 0 {
            return Some(mem::take(&mut state.dropped));
        }
        let now = Instant::now();
        let paid_until = state.paid_until.map_or(now, |until| until.max(now));
        let ahead = paid_until.duration_since(now);
        if ahead > options.interval.saturating_mul(options.burst - 1) {
            state.dropped += 1;
            return None;
        }
        state.paid_until = Some(after(paid_until, options.interval));
        Some(mem::take(&mut state.dropped))
    }

    /// Counts messages that were dropped for reasons other than the rate.
    #[cfg(feature = "tracing-subscriber")]
    pub(crate) fn drop(&self, messages: u64) {
        self.0.lock().dropped += messages;
    }
}
