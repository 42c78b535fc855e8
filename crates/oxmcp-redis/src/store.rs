//! [`Redis`]: the handle to a server, and its settings.

use std::{sync::Arc, time::Duration};

use oxmcp::{Result, StateKey};

use crate::{changes::Changes, connection::Connection, names::Names, values::Values};

/// The stores of servers in Redis or Valkey. Clones share a connection; all handles with the same address and prefix, in any
/// process, are handles to one store.
///
/// Without [`keys`](Self::keys) or [`plaintext`](Self::plaintext) it keeps nothing, and each operation fails.
///
/// It is a [`Cluster`](oxmcp::http::Cluster), with all that belongs to one: a [`TaskStore`](oxmcp::tasks::TaskStore), a
/// [`SessionStore`](oxmcp::store::SessionStore), an [`EventStore`](oxmcp::store::EventStore) and a [`Bus`](oxmcp::store::Bus).
///
/// It is bounded in how many tasks and sessions there are, in all and of one owner, and in the streams of a session. What bounds the bytes of all is `maxmemory` of Redis, where
/// `maxmemory-policy` must be `noeviction` or `volatile-ttl`: with `allkeys-lru` tasks get lost while they are needed. What Redis does not
/// know any more, after a power cut or a failover, is gone.
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
    /// Connects, for at most 100 000 tasks, and 1 000 of one owner. The connection is made again whenever it is lost; each operation
    /// has 1.5 seconds for all of that.
    ///
    /// | Redis | address |
    /// |---|---|
    /// | one that stands alone, or an address that leads to the primary | `redis://[user:password@]host[:port][/database]`, `redis+unix:///path` |
    /// | a cluster, by some of its nodes (feature `cluster`) | `redis://[user:password@]host[:port][,host[:port]…]` |
    /// | a primary that sentinels know by a name (feature `sentinel`) | `redis-sentinel://[user:password@]host[:port][,…]/name[/database]` |
    ///
    /// With the feature `tls`, `rediss` takes the place of `redis`, for sentinels, too. User and password are those of Redis. Where the
    /// sentinels want some, they follow as `?sentinel_username=…&sentinel_password=…`, or the password alone, escaped as in any URL.
    ///
    /// # Errors
    /// Where the address cannot be read, nobody answers there within 3 seconds, the user or password is wrong, or the server is older
    /// than Redis 7.0.
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

    /// Seals all values with the first of these keys, and opens with all of them. Each process needs the same, from where secrets
    /// are kept and never in Redis.
    ///
    /// To replace a key, put the new one second everywhere, then first, and leave the old one out when the tasks of before have
    /// expired. Given to any clone this holds for all of them at once, so that no restart is needed. The bus has no memory: a message
    /// under a key that a process does not have yet ends its subscription.
    ///
    /// As a [`Cluster`](oxmcp::http::Cluster) it gives the keys to endpoints, too, for what travels with clients.
    #[must_use]
    pub fn keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        self.values.keys().replace(keys);
        self
    }

    /// Seals nothing: whoever can read Redis or its files reads arguments, answers and results, and ids, which are secrets. Keys that are
    /// given beside it are for what travels with clients alone.
    #[must_use]
    pub fn plaintext(self) -> Self {
        self.values.leave_plain();
        self
    }

    /// Puts this before all keys and channels. If it is not called that is `oxmcp`, and for a [`Cluster`](oxmcp::http::Cluster) the name of
    /// the server. Servers with different tasks that share a Redis need different ones. It stands in braces.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.has_prefix = true;
        self.names = Names::new(prefix.as_ref());
        let connection = Arc::clone(&self.connection);
        self.changes = Arc::new(Changes::of(connection, self.names.changes()));
        self
    }

    /// How many tasks there are at most.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// How many tasks one owner has at most. Callers without authentication are one owner.
    #[must_use]
    pub fn max_tasks_each(mut self, tasks: usize) -> Self {
        self.max_tasks_each = tasks;
        self
    }

    /// How many sessions there are at most on all nodes; one more is refused. Those count that may still be used, and those that were
    /// opened within the last minute. Default: 100 000. How many one principal has at most is among the
    /// [limits](oxmcp::HttpLimits::max_sessions_each) of endpoints.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// How many events one stream of a session may hold; beyond it the oldest go. Default: 4096, some minutes of quick progress.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.max_stream_events = events;
        self
    }

    /// How many bytes one stream of a session may hold; beyond it the oldest events go. Default: 4 MiB, so that most images and files
    /// still fit.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.max_stream_bytes = bytes;
        self
    }

    /// How long the events of a stream are kept once nothing is added to it. Default: 5 minutes: who lost a connection comes back within
    /// seconds, or has slept too long to be interested.
    #[must_use]
    pub fn max_event_age(mut self, age: Duration) -> Self {
        self.max_event_age = age;
        self
    }
}
