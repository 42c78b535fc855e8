//! The store of legacy sessions: the trait, and the record from which another node restores a session.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use oxmcp_protocol::{LoggingLevel, Revision};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::{debug::opaque_debug, error::Result};

/// The time for which the ID of a removed session cannot be used again.
pub const TOMBSTONE: Duration = Duration::from_secs(60);

/// Stores the records of legacy sessions, so that another node, or the same program after a restart, can continue them.
///
/// A record is created when its session opens. It is then changed by one [`SessionChange`] at a time, because several nodes may have
/// the session at once. A node loads it when a client names a session that the node does not have. Each change increments the
/// version of the record, which shows a node that others have changed it. Several handles to one store may be in use at once:
/// when a call on one has returned, its effect is visible to all.
///
/// A record expires by the store's own clock, unless it is [touched](Self::touch). Session IDs are secrets of their clients:
/// store records under [a hash](super::hashed()) of them. The endpoint only passes well-formed IDs: 32 hexadecimal digits or,
/// if it was configured to create other IDs, up to 200 visible ASCII characters.
/// See [session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
///
/// # Implementing a store
/// Implement the trait with plain `async fn`s, and check it with [the contract](crate::testing::session_store_contract). Each
/// call times out after two seconds. A record serializes to JSON with serde; [`SessionRecord::apply`] applies a change to a
/// whole record.
///
/// ```
/// use std::sync::Arc;
/// use oxmcp::{store::MemorySessionStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::session_store_contract(|| async {
///     let store = Arc::new(MemorySessionStore::new());
///     (Arc::clone(&store), store)
/// })
/// .await
/// # }
/// ```
pub trait SessionStore: Send + Sync + 'static {
    /// Stores the record of a new session for this time, by the store's own clock, with version 1. It is refused if its
    /// principal already has `max_per_owner` sessions on all nodes that were not removed and have not expired. Sessions without a
    /// principal are not counted.
    ///
    /// The limit also holds for concurrent calls. After a failure, a session may be counted for a while after it has ended. But
    /// the count must expire with the time that was set last, or the sessions of a failed node would count forever.
    ///
    /// # Errors
    /// If it cannot be stored. The session then continues only at its current node.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the record may be stored, as a whole, or not.
    fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> impl Future<Output = Result<CreateOutcome>> + Send;

    /// Loads the record of a session, with all changes since it was created. `None` if there is none, or if it is damaged so
    /// that no process will be able to read it.
    ///
    /// # Errors
    /// If the store cannot be reached, or if another process may be able to read the record. The client then gets 503, and
    /// should retry later. Without a record, it learns that its session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn load(&self, id: &str) -> impl Future<Output = Result<Option<StoredSession>>> + Send;

    /// Applies one change to a record, and leaves everything else as it is, even if other changes are applied concurrently.
    /// Returns the new version of the record, one more than before. `None` if there is no record.
    ///
    /// # Errors
    /// If it cannot be stored. The session then continues with the change at its current node.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the change may or may not have been applied.
    fn set(
        &self,
        id: &str,
        change: SessionChange,
    ) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Sets the expiry of a record to this time from now. Returns its version, which shows whether other nodes have changed it.
    /// `None` if the session was removed or has expired: then it has ended for the caller, too.
    ///
    /// # Errors
    /// If the store cannot be reached. The session then continues at its current node.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the expiry may or may not have been changed.
    fn touch(&self, id: &str, lasts: Duration) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Removes the record of a session that has ended. The store remembers for [a minute](TOMBSTONE) that it has ended, even if
    /// there was no record.
    ///
    /// # Errors
    /// If the store cannot be reached. The record must then expire by itself.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the record may still exist.
    fn remove(&self, id: &str) -> impl Future<Output = Result<()>> + Send;
}

impl<S: SessionStore> SessionStore for Arc<S> {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        (**self).create(id, record, lasts, max_per_owner).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        (**self).load(id).await
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        (**self).set(id, change).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        (**self).touch(id, lasts).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        (**self).remove(id).await
    }
}

/// The outcome of [`SessionStore::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an endpoint must handle every variant"
)]
pub enum CreateOutcome {
    /// The record was stored.
    Created,
    /// A session with this ID exists, or was removed less than [a minute](TOMBSTONE) ago.
    Exists,
    /// The principal has the maximum number of sessions.
    PrincipalFull,
    /// The store has the maximum number of sessions. A store that evicts sessions instead never returns this.
    Full,
}

/// A change of the record of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a store must handle every variant")]
pub enum SessionChange {
    /// The client has sent `notifications/initialized`.
    Initialized,
    /// The level of `logging/setLevel`.
    LogLevel(LoggingLevel),
    /// The client has subscribed to the resource of this URI. Only the version changes if it was subscribed already.
    Watch(String),
    /// The client has unsubscribed from the resource of this URI. Only the version changes if it was not subscribed.
    Unwatch(String),
}

/// A stored session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSession {
    /// The record.
    pub record: SessionRecord,
    /// The version, which each change increments.
    pub version: u64,
}

impl StoredSession {
    /// Creates a stored session from a record and its version.
    #[must_use]
    pub fn new(record: SessionRecord, version: u64) -> Self {
        Self { record, version }
    }
}

/// The data from which another node can continue a legacy session: the params of `initialize`, and the client's settings since
/// then. Serialize it as JSON.
///
/// It contains the version of its format, so that a release that does not know the format fails to read it, rather than
/// continue with half of it.
///
/// ```
/// use oxmcp::{Revision, store::SessionRecord};
///
/// let params = serde_json::from_str(r#"{"protocolVersion": "2025-11-25"}"#).unwrap();
/// let record = SessionRecord::new(params, Revision::V2025_11_25);
/// let text = serde_json::to_string(&record).unwrap();
/// let same: SessionRecord = serde_json::from_str(&text).unwrap();
/// assert_eq!(same.revision, Revision::V2025_11_25);
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionRecord {
    version: Version,
    /// The name of the principal that opened the session, and that is the only one to use it. `None` if its requests have no
    /// principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The params of `initialize`, as the client sent them.
    pub initialize: Box<RawValue>,
    /// The negotiated revision.
    pub revision: Revision,
    /// Whether the client has sent `notifications/initialized`.
    #[serde(default)]
    pub initialized: bool,
    /// The level that was last set by `logging/setLevel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// The resources that the client has subscribed to, each once, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribed: Vec<String>,
    /// The time at which the session was opened, in milliseconds since 1970.
    pub created: u64,
}

impl SessionRecord {
    /// Creates the record of a session that has just been opened with these params of `initialize`.
    #[must_use]
    pub fn new(initialize: Box<RawValue>, revision: Revision) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since_1970.unwrap_or_default().as_millis();
        Self {
            version: Version,
            principal: None,
            initialize,
            revision,
            initialized: false,
            log_level: None,
            subscribed: Vec::new(),
            created: u64::try_from(millis).unwrap_or(u64::MAX),
        }
    }

    /// Applies a change, for stores that keep records as a whole.
    pub fn apply(&mut self, change: SessionChange) {
        match change {
            SessionChange::Initialized => self.initialized = true,
            SessionChange::LogLevel(level) => self.log_level = Some(level),
            SessionChange::Watch(uri) if self.subscribed.contains(&uri) => {}
            SessionChange::Watch(uri) => self.subscribed.push(uri),
            SessionChange::Unwatch(uri) => self.subscribed.retain(|it| *it != uri),
        }
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let principal = self.principal.as_ref().map_or(0, String::len);
        let subscribed = self.subscribed.iter().map(|uri| uri.len() + 32);
        256 + principal + self.initialize.get().len() + subscribed.sum::<usize>()
    }
}

// The output omits the client's data.
opaque_debug!(SessionRecord, |it| {
    revision: it.revision,
    initialized: it.initialized,
    log_level: it.log_level,
    subscribed: it.subscribed.len(),
});

/// The version of the format. It changes when readers of the old version would misread the new one.
#[derive(Clone, Copy)]
struct Version;

impl Version {
    const NUMBER: u32 = 1;
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(Self::NUMBER)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            Self::NUMBER => Ok(Self),
            other => Err(de::Error::custom(format!(
                "unsupported record version {other}; this release reads version {}",
                Self::NUMBER
            ))),
        }
    }
}
