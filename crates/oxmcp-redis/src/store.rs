//! [`Redis`]: the handle to a server, and its settings.

use std::{sync::Arc, time::Duration};

use oxmcp::{Result, StateKey};

use crate::{changes::Changes, connection::Connection, names::Names, values::Values};

/// The stores of servers in Redis or Valkey. Clones share a connection; all handles with the same address and prefix, in any
/// process, are handles to one store.
///
/// Without [`keys`](Self::keys) or [`plaintext`](Self::plaintext) nothing is stored, and operations that read or write values fail.
///
/// `Redis` is a [`Cluster`](oxmcp::http::Cluster), with all parts of one: a [`TaskStore`](oxmcp::tasks::TaskStore), a
/// [`SessionStore`](oxmcp::store::SessionStore), an [`EventStore`](oxmcp::store::EventStore) and a [`Bus`](oxmcp::store::Bus).
///
/// The number of tasks and sessions is bounded, in total and for one owner, and so are the streams of a session. The total of bytes
/// is bounded by `maxmemory` of Redis, with a `maxmemory-policy` of `noeviction` or `volatile-ttl`: with `allkeys-lru`, tasks get
/// lost while they are needed. Data that Redis loses, in a power cut or a failover, is gone.
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
    /// Connects to Redis, for at most 100 000 tasks, and 1 000 of one owner. The connection is made again whenever it is lost; each
    /// operation has a deadline of 1.5 seconds, including that.
    ///
    /// | Redis | address |
    /// |---|---|
    /// | a server, or an address leading to the primary | `redis://[user:password@]host[:port][/database]`, `redis+unix:///path` |
    /// | a cluster, by some of its nodes (feature `cluster`) | `redis://[user:password@]host[:port][,host[:port]…]` |
    /// | a primary that sentinels know by a name (feature `sentinel`) | `redis-sentinel://[user:password@]host[:port][,…]/name[/database]` |
    ///
    /// With the feature `tls`, `rediss` takes the place of `redis`, for sentinels, too. User and password are those of Redis. If
    /// the sentinels require their own, these follow as `?sentinel_username=…&sentinel_password=…`, or only the password, escaped
    /// as in any URL.
    ///
    /// # Errors
    /// If the address cannot be parsed, no server answers there within 3 seconds, the user or password is wrong, or the server is
    /// older than Redis 7.0.
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

    /// Seals all values with the first of these keys, and opens them with any of the keys. Each process needs the same keys, which
    /// must be stored with other secrets and never in Redis.
    ///
    /// To replace a key, put the new one second in all processes, then first, and remove the old one when the tasks from before
    /// have expired. Keys that are set on one clone apply to all clones at once, so that no restart is needed. Messages of the bus
    /// are not stored: a message under a key that a process does not have yet ends its subscription.
    ///
    /// As a [`Cluster`](oxmcp::http::Cluster) the store gives the keys to endpoints, too, for data that travels with clients.
    #[must_use]
    pub fn keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        self.values.keys().replace(keys);
        self
    }

    /// Stores values unsealed: everyone who can read Redis or its files can read arguments, answers and results, and ids, which are
    /// secrets. Keys that are set in addition are only for data that travels with clients.
    #[must_use]
    pub fn plaintext(self) -> Self {
        self.values.leave_plain();
        self
    }

    /// Sets the prefix of all keys and channels. Default: `oxmcp`, and for a [`Cluster`](oxmcp::http::Cluster) the name of the
    /// server. Servers with different tasks that share a Redis need different prefixes. The prefix is written in braces, as the
    /// hash tag of a cluster.
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

    /// Sets the maximum number of tasks of one owner. Callers without authentication are one owner.
    #[must_use]
    pub fn max_tasks_each(mut self, tasks: usize) -> Self {
        self.max_tasks_each = tasks;
        self
    }

    /// Sets the maximum number of sessions on all nodes; one more is refused. Sessions count if they may still be used, or were
    /// opened within the last minute. Default: 100 000. The maximum for one principal is among the
    /// [limits](oxmcp::HttpLimits::max_sessions_each) of endpoints.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets the maximum number of events of one stream of a session; beyond it the oldest are evicted. Default: 4096, which is some
    /// minutes of frequent progress notifications.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.max_stream_events = events;
        self
    }

    /// Sets the maximum number of bytes of one stream of a session; beyond it the oldest events are evicted. Default: 4 MiB, so
    /// that most images and files still fit.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.max_stream_bytes = bytes;
        self
    }

    /// Sets the time for which the events of a stream are kept after the last one was added. Default: 5 minutes, since a client
    /// that lost a connection returns within seconds, or has slept too long to need them.
    #[must_use]
    pub fn max_event_age(mut self, age: Duration) -> Self {
        self.max_event_age = age;
        self
    }
}
