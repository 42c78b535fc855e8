//! Store of legacy sessions: the trait, and the record from which another node makes a session again.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use oxmcp_protocol::{LoggingLevel, Revision};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::{debug::opaque_debug, error::Result};

/// For how long a session that was removed is known to be over: none of its id can be created.
pub const TOMBSTONE: Duration = Duration::from_secs(60);

/// Keeps what legacy sessions are made of, so that another node, or the same program after a restart, can go on with
/// them.
///
/// A record is created when its session opens, and then changed by one [`Setting`] at a time, since several nodes may have the
/// session at once; it is loaded when a client names a session that a node does not have. Each change counts its version up, by which
/// a node sees that others have made some. Several handles to one store may be at work at once: what one has returned from, all see.
///
/// A record expires by the store's own clock, unless it is [touched](Self::touch). Ids of sessions are secrets of their
/// clients: keep records under [a hash](super::hashed()) of them. The endpoint asks for none that does not look like one: 32
/// hexadecimal digits, or where it was told to make others, up to 200 visible ASCII characters.
/// See [session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
///
/// # Writing one
/// Implement it with plain `async fn`s, and hold it against [the contract](crate::testing::session_store_contract). The endpoint
/// gives up each call after two seconds. A record is JSON, by serde; [`SessionRecord::apply`] makes a change to one as a whole.
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
    /// Keeps the record of a new session for this time, by the store's own clock, in version 1, unless its principal has `max_each`
    /// sessions, among all nodes, that were not removed and have not expired. Sessions of nobody in particular are not counted so.
    ///
    /// Of what is created at once no more is kept than there may be. A count may go on for a while after its session, where
    /// something failed in between, but expires with the time that was said last; else the sessions of a node that is gone would
    /// count for ever.
    ///
    /// # Errors
    /// Where it cannot be kept. The session goes on at the node where it is, and nowhere else.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the record may be there, whole or not at all.
    fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_each: usize,
    ) -> impl Future<Output = Result<Creation>> + Send;

    /// The record of a session, with all that was set since it was created; `None` where there is none.
    ///
    /// # Errors
    /// Where the store cannot be asked. The client is told to try another time, with 503; where there is no record, it is told
    /// that its session is over.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn load(&self, id: &str) -> impl Future<Output = Result<Option<StoredSession>>> + Send;

    /// Sets one thing in a record, and leaves all else as it is, whatever others set at the same time. Returns the version of the
    /// record from then on, one more than before; `None` where there is no record.
    ///
    /// # Errors
    /// Where it cannot be kept. The session goes on with it at the node where it is.
    ///
    /// # Cancel safety
    /// Dropped before it returns, it may be set or not.
    fn set(&self, id: &str, setting: Setting) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Keeps a record for this time from now on. Returns its version, by which the caller sees whether others have set something;
    /// `None` where the session was removed, or has expired: it is over then, for the caller too.
    ///
    /// # Errors
    /// Where the store cannot be asked. The session goes on at the node where it is.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the record may be kept longer or not.
    fn touch(&self, id: &str, lasts: Duration) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Drops the record of a session, which is over, and keeps in mind for [a minute](TOMBSTONE) that it is, also where there is none.
    ///
    /// # Errors
    /// Where the store cannot be told. The record must then go in time by itself.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the record may still be there.
    fn remove(&self, id: &str) -> impl Future<Output = Result<()>> + Send;
}

impl<S: SessionStore> SessionStore for Arc<S> {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_each: usize,
    ) -> Result<Creation> {
        (**self).create(id, record, lasts, max_each).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        (**self).load(id).await
    }

    async fn set(&self, id: &str, setting: Setting) -> Result<Option<u64>> {
        (**self).set(id, setting).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        (**self).touch(id, lasts).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        (**self).remove(id).await
    }
}

/// What became of a session that was to be [created](SessionStore::create).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an endpoint must know what to tell its client"
)]
pub enum Creation {
    /// Its record is kept.
    Created,
    /// There is one of this id, or was until [a minute](TOMBSTONE) ago one that was removed.
    Exists,
    /// Its principal has as many sessions as it may have.
    PrincipalFull,
    /// There are as many sessions as the store may have. One that makes room for the newest never says so.
    Full,
}

/// What can change in the record of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a store that does not know one would do the wrong thing"
)]
pub enum Setting {
    /// The client has sent `notifications/initialized`.
    Initialized,
    /// The level of `logging/setLevel`.
    LogLevel(LoggingLevel),
    /// The client has subscribed to the resource of this URI. Nothing but the version changes where it had before.
    Watch(String),
    /// The client has given up the resource of this URI. Nothing but the version changes where it had none.
    Unwatch(String),
}

/// A session as a store has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSession {
    /// The record.
    pub record: SessionRecord,
    /// The version, which each change counts up.
    pub version: u64,
}

impl StoredSession {
    /// A record in a version.
    #[must_use]
    pub fn new(record: SessionRecord, version: u64) -> Self {
        Self { record, version }
    }
}

/// All that is needed to go on with a legacy session elsewhere: what the client said of itself, and what it asked for
/// since. Serialize it as JSON.
///
/// It says who writes it, so that a release that does not know how to read a record fails to, instead of going on with
/// half of it.
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
    /// Who opened the session, and alone may use it: the name of the principal. `None` where requests come from nobody in
    /// particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The params of `initialize`, as the client sent them.
    pub initialize: Box<RawValue>,
    /// The revision that was agreed on.
    pub revision: Revision,
    /// Whether the client has sent `notifications/initialized`.
    #[serde(default)]
    pub initialized: bool,
    /// The level that `logging/setLevel` has set last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// The resources that the client has subscribed to, each once, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribed: Vec<String>,
    /// When the session was opened, in milliseconds since 1970.
    pub created: u64,
}

impl SessionRecord {
    /// The record of a session that has just been opened by these params of `initialize`.
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

    /// Makes a change, for stores that keep records as a whole.
    pub fn apply(&mut self, setting: Setting) {
        match setting {
            Setting::Initialized => self.initialized = true,
            Setting::LogLevel(level) => self.log_level = Some(level),
            Setting::Watch(uri) if self.subscribed.contains(&uri) => {}
            Setting::Watch(uri) => self.subscribed.push(uri),
            Setting::Unwatch(uri) => self.subscribed.retain(|it| *it != uri),
        }
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let principal = self.principal.as_ref().map_or(0, String::len);
        let subscribed = self.subscribed.iter().map(|uri| uri.len() + 32);
        256 + principal + self.initialize.get().len() + subscribed.sum::<usize>()
    }
}

// Without what the client says of itself.
opaque_debug!(SessionRecord, |it| {
    revision: it.revision,
    initialized: it.initialized,
    log_level: it.log_level,
    subscribed: it.subscribed.len(),
});

/// The version of the format. It changes when a reader of the old one would go wrong.
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
                "the record is of version {other}, and this release reads version {}",
                Self::NUMBER
            ))),
        }
    }
}
