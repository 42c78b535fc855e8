//! [`Redis`]: the handle to a server, and its settings.

use std::{sync::Arc, time::Duration};

use oxmcp::{Result, keys::StateKey};

use crate::{changes::Changes, connection::Connection, names::Names, values::Values};

/// A handle to the stores of servers in Redis or Valkey.
///
/// Clones share a connection. All handles with the same address and prefix, in any process, use the same store.
///
/// Without [`keys`](Self::keys) or [`plaintext`](Self::plaintext) nothing is stored, and operations that read or write values fail.
///
/// `Redis` is a [`Cluster`](oxmcp::http::Cluster), with all of its parts: a [`TaskStore`](oxmcp::tasks::TaskStore), a
/// [`SessionStore`](oxmcp::store::SessionStore), an [`EventStore`](oxmcp::store::EventStore) and a [`Bus`](oxmcp::store::Bus).
///
/// The number of tasks and sessions is limited, in total and per owner, and so are the streams of a session. `maxmemory` of Redis
/// limits the bytes. Set `maxmemory-policy` to `noeviction` or `volatile-ttl`: `allkeys-lru` evicts tasks that are still needed.
/// Data that Redis loses, in a power cut or a failover, is gone.
#[derive(Clone, Debug)]
pub struct Redis {
    pub(crate) connection: Arc<Connection>,
    pub(crate) values: Values,
    pub(crate) names: Names,
    pub(crate) has_prefix: bool,
    pub(crate) changes: Arc<Changes>,
    pub(crate) max_tasks: usize,
    pub(crate) max_tasks_each: usize,
    pub(crate) max_sessions: usize,
    pub(crate) max_stream_events: usize,
    pub(crate) max_stream_bytes: usize,
    pub(crate) max_event_age: Duration,
}

impl Redis {
    /// Connects to Redis, for at most 100 000 tasks, and 1 000 per owner.
    ///
    /// A lost connection is restored automatically. Each operation has a timeout of 1.5 seconds, including reconnection.
    ///
    /// | Redis | address |
    /// |---|---|
    /// | a standalone server, or the primary | `redis://[user:password@]host[:port][/database]`, `redis+unix:///path` |
    /// | a cluster, by some of its nodes (feature `cluster`) | `redis://[user:password@]host[:port][,host[:port]…]` |
    /// | a primary monitored by sentinels (feature `sentinel`) | `redis-sentinel://[user:password@]host[:port][,…]/name[/database]` |
    ///
    /// With the feature `tls`, use `rediss` instead of `redis`, also for sentinels. User and password are those of Redis. If the
    /// sentinels have their own, add `?sentinel_username=…&sentinel_password=…`, or only the password, URL-encoded.
    ///
    /// # Errors
    /// If the address is invalid, no server responds within 3 seconds, the user or password is wrong, or the server is older than
    /// Redis 7.0.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is written.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(url: impl AsRef<str>) -> Result<Self> {
        let connection = Connection::open(url.as_ref()).await?;
        let names = Names::new("oxmcp");
        let connection = Arc::new(connection);
        let changes = Changes::of(Arc::clone(&connection), names.changes());
        Ok(Self {
            connection,
            values: Values::unknown(),
            names,
            has_prefix: false,
            changes: Arc::new(changes),
            max_tasks: 100_000,
            max_tasks_each: 1_000,
            max_sessions: 100_000,
            max_stream_events: 4096,
            max_stream_bytes: 4 << 20,
            max_event_age: Duration::from_secs(5 * 60),
        })
    }

    /// Seals all values with the first of these keys, and opens them with any of the keys. Each process needs the same keys. Keep
    /// them with your other secrets, and never in Redis.
    ///
    /// To replace a key, add the new one in second place in all processes, then move it to first place, and remove the old one when
    /// the earlier tasks have expired. Keys that are set on one clone apply to all clones at once, so no restart is needed. Bus
    /// messages are not stored: a message sealed with a key that a process does not have yet ends its subscription.
    ///
    /// As a [`Cluster`](oxmcp::http::Cluster), the store also provides the keys to endpoints, for state that clients keep.
    #[must_use]
    pub fn keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        self.values.keys().replace(keys);
        self
    }

    /// Stores values unencrypted: anyone who can read Redis or its files can read arguments, answers, results, and IDs, which are
    /// secrets. Keys that are set as well are only used for state that clients keep.
    #[must_use]
    pub fn plaintext(self) -> Self {
        self.values.leave_plain();
        self
    }

    /// Sets the prefix of all keys and channels. Default: `oxmcp`, and for a [`Cluster`](oxmcp::http::Cluster) the name of the
    /// server.
    ///
    /// Different servers that share a Redis need different prefixes. The prefix is written in braces, as the hash tag of a cluster.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.has_prefix = true;
        self.names = Names::new(prefix.as_ref());
        let connection = Arc::clone(&self.connection);
        self.changes = Arc::new(Changes::of(connection, self.names.changes()));
        self
    }

    /// Sets the maximum number of tasks.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets the maximum number of tasks per owner. All callers without authentication are one owner.
    #[must_use]
    pub fn max_tasks_each(mut self, tasks: usize) -> Self {
        self.max_tasks_each = tasks;
        self
    }

    /// Sets the maximum number of sessions on all nodes; one more is refused. Default: 100 000.
    ///
    /// Sessions count if they may still be used, or were opened within the last minute. The maximum per principal is
    /// [`max_sessions_each`](oxmcp::HttpLimits::max_sessions_each) of the endpoints.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets the maximum number of events per stream; beyond it the oldest are evicted. Default: 4096, which is some minutes of
    /// frequent progress notifications.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.max_stream_events = events;
        self
    }

    /// Sets the maximum number of bytes per stream; beyond it the oldest events are evicted. Default: 4 MiB, enough for most images
    /// and files.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.max_stream_bytes = bytes;
        self
    }

    /// Sets the time for which the events of a stream are kept after the last one was added. Default: 5 minutes, since a client
    /// that lost its connection either returns within seconds, or too late to need them.
    #[must_use]
    pub fn max_event_age(mut self, age: Duration) -> Self {
        self.max_event_age = age;
        self
    }
}
