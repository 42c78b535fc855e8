//! What every store of sessions must do.

use std::future::Future;

use futures_util::future::try_join_all;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::contract::{must, unique};
use crate::{
    Error, Result, Revision,
    protocol::LoggingLevel,
    store::{AnySessionStore, SessionRecord, SessionStore},
};

/// Holds a store of sessions against what [`SessionStore`] promises. `make` gives the store; each rule asks for one anew,
/// which may be the same database: ids never come twice.
///
/// ```
/// use oxmcp::{store::MemorySessionStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::session_store_contract(|| async { MemorySessionStore::new() }).await
/// # }
/// ```
///
/// # Errors
/// The first rule that the store breaks, and how; or the store's own error.
///
/// # Cancel safety
/// Dropped before it returns, what it wrote may still be in the store.
pub async fn session_store_contract<S, F>(make: impl Fn() -> F) -> Result<()>
where
    S: SessionStore,
    F: Future<Output = S>,
{
    unknown(&make().await).await?;
    as_it_was(&make().await).await?;
    saved_again(&make().await).await?;
    removed(&make().await).await?;
    at_once(&make().await).await
}

async fn unknown(store: &dyn AnySessionStore) -> Result<()> {
    let rule = "there is no record of a session that was not saved";
    must(rule, loaded(store, &unique()).await?, None)?;
    store.save(&unique(), small("a")?).await?;
    must(rule, loaded(store, &unique()).await?, None)
}

async fn as_it_was(store: &dyn AnySessionStore) -> Result<()> {
    let rule = "a record is given as it was saved";
    for record in [small("a")?, full()?] {
        let id = unique();
        let expected = Some(seen(&record)?);
        store.save(&id, record).await?;
        for _ in 0..2 {
            must(rule, loaded(store, &id).await?, expected.clone())?;
        }
    }
    Ok(())
}

async fn saved_again(store: &dyn AnySessionStore) -> Result<()> {
    let id = unique();
    store.save(&id, full()?).await?;
    store.save(&id, small("b")?).await?;
    let rule = "a record that is saved again takes the place of the one before, as a whole";
    must(rule, loaded(store, &id).await?, Some(seen(&small("b")?)?))
}

async fn removed(store: &dyn AnySessionStore) -> Result<()> {
    let (id, other) = (unique(), unique());
    store.save(&id, small("a")?).await?;
    store.save(&other, small("b")?).await?;
    for _ in 0..2 {
        store.remove(&id).await?;
        let rule = "nothing is left of a session that was removed";
        must(rule, loaded(store, &id).await?, None)?;
        let rule = "sessions are removed one at a time";
        must(
            rule,
            loaded(store, &other).await?,
            Some(seen(&small("b")?)?),
        )?;
    }
    Ok(())
}

async fn at_once(store: &dyn AnySessionStore) -> Result<()> {
    let ids: Vec<_> = (0..32).map(|_| unique()).collect();
    let saved = ids.iter().map(async |id| store.save(id, small(id)?).await);
    try_join_all(saved).await?;
    for id in &ids {
        let rule = "records that are saved at once are all there";
        must(rule, loaded(store, id).await?, Some(seen(&small(id)?)?))?;
    }
    Ok(())
}

async fn loaded(store: &dyn AnySessionStore, id: &str) -> Result<Option<Value>> {
    store.load(id).await?.as_ref().map(seen).transpose()
}

/// All that a record says, to be compared.
fn seen(record: &SessionRecord) -> Result<Value> {
    serde_json::to_value(record).map_err(|error| Error::internal(error.to_string()))
}

/// A record with nothing in it that it can do without, the same whenever it is made.
fn small(name: &str) -> Result<SessionRecord> {
    let mut record = SessionRecord::new(params(name)?, Revision::LATEST_LEGACY);
    record.created = 0;
    Ok(record)
}

/// A record with something in all that it has.
fn full() -> Result<SessionRecord> {
    let [oldest, ..] = Revision::ALL;
    let mut record = SessionRecord::new(params("é \u{1f980} \"\n")?, oldest);
    record.principal = Some("https://login.example.com|alice".to_owned());
    record.initialized = true;
    record.log_level = Some(LoggingLevel::Warning);
    record.subscribed = vec!["file:///a".to_owned(), "file:///b".to_owned()];
    record.created = 1_795_334_400_123;
    Ok(record)
}

fn params(name: &str) -> Result<Box<RawValue>> {
    let params =
        json!({"clientInfo": {"name": name, "version": "1"}, "capabilities": {"x": 1.5e300}});
    to_raw_value(&params).map_err(|error| Error::internal(error.to_string()))
}
