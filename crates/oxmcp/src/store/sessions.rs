//! What a store of sessions is.

use std::future::Future;

use super::{BoxFuture, SessionRecord, in_time::in_time};
use crate::Result;

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

/// A [`SessionStore`] of whatever type.
pub(crate) trait AnySessionStore: Send + Sync {
    fn save<'a>(&'a self, id: &'a str, record: SessionRecord) -> BoxFuture<'a, Result<()>>;

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<SessionRecord>>>;

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<()>>;
}

impl<S: SessionStore> AnySessionStore for S {
    fn save<'a>(&'a self, id: &'a str, record: SessionRecord) -> BoxFuture<'a, Result<()>> {
        in_time(SessionStore::save(self, id, record))
    }

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<SessionRecord>>> {
        in_time(SessionStore::load(self, id))
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<()>> {
        in_time(SessionStore::remove(self, id))
    }
}
