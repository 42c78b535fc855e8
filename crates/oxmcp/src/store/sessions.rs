//! Store of legacy sessions: the trait, and the record from which another node makes a session again.

use std::{
    future::Future,
    time::{SystemTime, UNIX_EPOCH},
};

use oxmcp_protocol::{LoggingLevel, Revision};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::{debug::opaque_debug, error::Result};

/// Keeps what legacy sessions are made of, so that another node, or the same program after a restart, can go on with
/// them.
///
/// A record is saved when its session opens, and whenever what it says has changed; it is loaded when a client names a
/// session that a node does not have. Ids of sessions are secrets of their clients: a store must not show them. They are
/// made by the endpoint, 32 hexadecimal digits in lower case; a store is asked for none that is anything else.
/// See [session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
///
/// # Writing one
/// Implement it with plain `async fn`s over JSON, and hold it against [the contract](crate::testing::session_store_contract).
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
/// use oxmcp::{Error, Result, store::{SessionRecord, SessionStore}, testing};
///
/// /// Sessions as text, where a database would be.
/// #[derive(Default)]
/// struct Texts(Mutex<HashMap<String, String>>);
///
/// impl SessionStore for Texts {
///     async fn save(&self, id: &str, record: SessionRecord) -> Result<()> {
///         let text = serde_json::to_string(&record).map_err(|it| Error::internal(it.to_string()))?;
///         self.0.lock().unwrap().insert(id.to_owned(), text);
///         Ok(())
///     }
///
///     async fn load(&self, id: &str) -> Result<Option<SessionRecord>> {
///         // What a newer release has written is no session of this one.
///         Ok(self.0.lock().unwrap().get(id).and_then(|text| serde_json::from_str(text).ok()))
///     }
///
///     async fn remove(&self, id: &str) -> Result<()> {
///         self.0.lock().unwrap().remove(id);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// testing::session_store_contract(|| async { Texts::default() }).await
/// # }
/// ```
pub trait SessionStore: Send + Sync + 'static {
    /// Keeps a record, in place of any that is there for this session.
    ///
    /// # Errors
    /// Where it cannot be kept. The session goes on at the node where it is.
    ///
    /// # Cancel safety
    /// Dropped before it returns, either record may be there, but no mixture of both.
    fn save(&self, id: &str, record: SessionRecord) -> impl Future<Output = Result<()>> + Send;

    /// The record of a session; `None` where there is none.
    ///
    /// # Errors
    /// Where the store cannot be asked. The client is told to try another time, with 503; where there is no record, it is told
    /// that its session is over.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn load(&self, id: &str) -> impl Future<Output = Result<Option<SessionRecord>>> + Send;

    /// Drops the record of a session, which is over. Nothing happens where there is none.
    ///
    /// # Errors
    /// Where the store cannot be told. The record must then go in time by itself.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the record may still be there.
    fn remove(&self, id: &str) -> impl Future<Output = Result<()>> + Send;
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
    /// The resources that the client has subscribed to.
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
