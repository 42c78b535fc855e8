use std::time::Duration;

use crate::{protocol::LoggingLevel, server::Server};

/// How a server logs to its clients; for [`Server::logging_with`].
///
/// ```
/// use oxmcp::{Server, logging::LogOptions, protocol::LoggingLevel};
///
/// let options = LogOptions::default().rate(10, 50).default_level(LoggingLevel::Warning);
/// let server = Server::new("calculator", "1.0.0").logging_with(options);
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    pub(super) per_second: u32,
    pub(super) burst: u32,
    pub(super) default_level: LoggingLevel,
}

impl LogOptions {
    /// How many messages a session hears in a second in the long run, and how many it may hear at once. Beyond that they
    /// are dropped, and the next message comes with one that says how many. Default: 100, and 1000 at once. With 0 at
    /// once there is no limit.
    ///
    /// The specification wants a limit: every message costs the client, and a loop that logs is soon written.
    #[must_use]
    pub fn rate(mut self, per_second: u32, at_once: u32) -> Self {
        self.per_second = per_second;
        self.burst = at_once;
        self
    }

    /// From which level on a legacy client hears messages that never said what it wants to hear, which is up to the
    /// server. Default: [`LoggingLevel::Info`]. A modern client that says nothing hears nothing.
    #[must_use]
    pub fn default_level(mut self, level: LoggingLevel) -> Self {
        self.default_level = level;
        self
    }

    /// In how long there may be one message more.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            per_second: 100,
            burst: 1000,
            default_level: LoggingLevel::Info,
        }
    }
}

impl Server {
    /// Declares that this server logs to its clients: without it, [`RequestContext::log`](crate::RequestContext::log)
    /// sends nothing.
    ///
    /// It has to be said because it cannot be derived: nobody can see from outside whether a handler logs, and the
    /// specification allows messages only to servers that have declared them.
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// ```
    /// use oxmcp::{RequestContext, Server, Tool, protocol::LoggingLevel};
    ///
    /// let server = Server::new("library", "1.0.0")
    ///     .logging()
    ///     .tool(Tool::new("index", "Index the books", |cx: RequestContext| async move {
    ///         cx.log(LoggingLevel::Warning, "two books have the same number").logger("index").await;
    ///         "done"
    ///     }));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn logging(self) -> Self {
        self.logging_with(LogOptions::default())
    }

    /// The same as [`logging`](Self::logging), with settings.
    #[must_use]
    pub fn logging_with(self, options: LogOptions) -> Self {
        self.change(|features| features.logging = Some(options));
        self
    }
}
