//! The contracts of stores: what every implementation of a store's trait must do.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use futures_util::future::try_join_all;
use oxmcp_protocol::{LoggingLevel, Revision};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::contract_rules::{must, unique};
use crate::{
    error::{Error, Result},
    store::{AnyEventStore, AnySessionStore, EventStore, Replay, SessionRecord, SessionStore},
};

/// Holds a store of events against what [`EventStore`] promises. `make` gives the store; each rule asks for one anew,
/// which may be the same database: the names of sessions never come twice.
///
/// ```
/// use oxmcp::{store::MemoryEventStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::event_store_contract(|| async { MemoryEventStore::new() }).await
/// # }
/// ```
///
/// # Errors
/// The first rule that the store breaks, and how; or the store's own error.
///
/// # Cancel safety
/// Dropped before it returns, what it wrote may still be in the store.
pub async fn event_store_contract<S, F>(make: impl Fn() -> F) -> Result<()>
where
    S: EventStore,
    F: Future<Output = S>,
{
    let new = async || Stored {
        store: Arc::new(make().await),
        session: unique(),
    };
    indexes_count_up(&new().await).await?;
    replay_after_index(&new().await).await?;
    unknown_is_lost(&new().await).await?;
    appended_together(&new().await).await?;
    sessions_are_separate(&new().await).await?;
    end_of_stream(&new().await).await?;
    forgotten_session(&new().await).await?;
    events_at_once(&new().await).await
}

/// A store, and a session of a name that is not used twice.
struct Stored {
    store: Arc<dyn AnyEventStore>,
    session: String,
}

impl Stored {
    async fn append(&self, stream: &str, data: &'static str) -> Result<u64> {
        let data = Bytes::from_static(data.as_bytes());
        self.store.append(&self.session, stream, data).await
    }

    async fn append_all(&self, stream: &str, texts: &[&'static str]) -> Result<Vec<u64>> {
        let events = texts.iter().collect();
        self.store.append_all(&self.session, stream, events).await
    }

    async fn after(&self, stream: &str, index: u64, max: usize) -> Result<Replay> {
        self.store.after(&self.session, stream, index, max).await
    }
}

fn found(events: &[&'static str], ended: bool) -> Replay {
    let bytes = |text: &&'static str| Bytes::from_static(text.as_bytes());
    Replay::Events {
        events: events.iter().map(bytes).collect(),
        ended,
    }
}

async fn indexes_count_up(it: &Stored) -> Result<()> {
    let rule = "the events of each stream are counted from 1";
    for index in 1..=3 {
        must(rule, it.append("a", "{}").await?, index)?;
        must(rule, it.append("b", "{}").await?, index)?;
    }
    Ok(())
}

async fn replay_after_index(it: &Stored) -> Result<()> {
    let texts = ["", "{\"text\":\"é\\n\"}", "[]", "{}"];
    for text in texts {
        it.append("a", text).await?;
    }
    let rule = "what follows an index is given in order, and as it was";
    must(rule, it.after("a", 0, 10).await?, found(&texts, false))?;
    let rest = ["[]", "{}"];
    must(rule, it.after("a", 2, 10).await?, found(&rest, false))?;
    let rule = "after the newest event there is nothing, and nothing is lost";
    must(rule, it.after("a", 4, 10).await?, found(&[], false))?;
    let rule = "no more than max events are given at once";
    must(rule, it.after("a", 1, 1).await?, found(&[texts[1]], false))?;
    must(rule, it.after("a", 0, 0).await?, found(&[], false))
}

async fn unknown_is_lost(it: &Stored) -> Result<()> {
    let rule = "what is not known is lost";
    must(rule, it.after("a", 0, 10).await?, Replay::Lost)?;
    it.append("a", "{}").await?;
    must(rule, it.after("b", 0, 10).await?, Replay::Lost)?;
    must(rule, it.after("a", 2, 10).await?, Replay::Lost)?;
    must(rule, it.after("a", u64::MAX, 10).await?, Replay::Lost)
}

async fn appended_together(it: &Stored) -> Result<()> {
    let texts = ["", "1", "2"];
    let rule = "events that are added together are counted like others";
    must(rule, it.append_all("a", &texts).await?, vec![1, 2, 3])?;
    must(rule, it.append("a", "3").await?, 4)?;
    must(rule, it.append_all("b", &["1"]).await?, vec![1])?;
    must(rule, it.append_all("a", &["4", "5"]).await?, vec![5, 6])?;
    let rule = "events that are added together are given in order, and as they were";
    let all = ["", "1", "2", "3", "4", "5"];
    must(rule, it.after("a", 0, 10).await?, found(&all, false))?;
    must(rule, it.after("a", 1, 1).await?, found(&["1"], false))?;
    must(rule, it.after("a", 5, 10).await?, found(&["5"], false))?;
    must(rule, it.after("b", 0, 10).await?, found(&["1"], false))?;
    let rule = "no events at all begin no stream";
    must(rule, it.append_all("c", &[]).await?, Vec::new())?;
    must(rule, it.after("c", 0, 10).await?, Replay::Lost)
}

async fn sessions_are_separate(it: &Stored) -> Result<()> {
    let other = Stored {
        store: Arc::clone(&it.store),
        session: unique(),
    };
    it.append("a", "1").await?;
    let rule = "a session sees nothing of another one's streams";
    must(rule, other.after("a", 0, 10).await?, Replay::Lost)?;
    must(rule, other.append("a", "2").await?, 1)?;
    must(rule, it.after("a", 0, 10).await?, found(&["1"], false))?;
    it.append("ab", "3").await?;
    must(rule, it.after("a", 0, 10).await?, found(&["1"], false))?;
    other.store.end(&other.session, "a").await?;
    must(rule, it.append("a", "4").await.ok(), Some(2))?;
    other.store.forget(&other.session).await?;
    must(rule, it.after("a", 1, 10).await?, found(&["4"], false))
}

async fn end_of_stream(it: &Stored) -> Result<()> {
    it.store.end(&it.session, "a").await?;
    for text in ["1", "2"] {
        it.append("a", text).await?;
    }
    it.append("b", "1").await?;
    it.store.end(&it.session, "a").await?;
    it.store.end(&it.session, "a").await?;
    let rule = "what was in a stream that has ended is still there, and its end is told with the last of it";
    must(rule, it.after("a", 0, 1).await?, found(&["1"], false))?;
    must(rule, it.after("a", 0, 2).await?, found(&["1", "2"], true))?;
    must(rule, it.after("a", 2, 10).await?, found(&[], true))?;
    let rule = "a stream that has ended takes no more events";
    must(rule, it.append("a", "3").await.is_err(), true)?;
    must(rule, it.append_all("a", &["3", "4"]).await.is_err(), true)?;
    must(rule, it.after("a", 1, 10).await?, found(&["2"], true))?;
    let rule = "a stream ends by itself alone";
    must(rule, it.append("b", "2").await.ok(), Some(2))?;
    must(rule, it.after("b", 2, 10).await?, found(&[], false))
}

async fn forgotten_session(it: &Stored) -> Result<()> {
    it.append("a", "1").await?;
    it.append("b", "1").await?;
    let rule = "nothing is left of a session that was forgotten";
    for _ in 0..2 {
        it.store.forget(&it.session).await?;
        must(rule, it.after("a", 0, 10).await?, Replay::Lost)?;
        must(rule, it.after("b", 1, 10).await?, Replay::Lost)?;
    }
    Ok(())
}

async fn events_at_once(it: &Stored) -> Result<()> {
    let mut indexes = try_join_all((0..32).map(|_| it.append("a", "{}"))).await?;
    indexes.sort_unstable();
    let rule = "events that are added at once get an index each";
    must(rule, indexes, (1..=32).collect())?;
    let together = try_join_all((0..8).map(|_| it.append_all("b", &["1", "2"]))).await?;
    let rule = "so do those of several that are added together, in their order";
    must(rule, together.iter().all(|it| it.is_sorted()), true)?;
    let mut indexes = together.concat();
    indexes.sort_unstable();
    must(rule, indexes, (1..=16).collect())
}

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
    unknown_record(&make().await).await?;
    loads_what_was_saved(&make().await).await?;
    replaces_a_record(&make().await).await?;
    removed_record(&make().await).await?;
    records_at_once(&make().await).await
}

async fn unknown_record(store: &dyn AnySessionStore) -> Result<()> {
    let rule = "there is no record of a session that was not saved";
    must(rule, loaded(store, &unique()).await?, None)?;
    store.save(&unique(), small_record("a")?).await?;
    must(rule, loaded(store, &unique()).await?, None)
}

async fn loads_what_was_saved(store: &dyn AnySessionStore) -> Result<()> {
    let rule = "a record is given as it was saved";
    for record in [small_record("a")?, full_record()?] {
        let id = unique();
        let expected = Some(comparable(&record)?);
        store.save(&id, record).await?;
        for _ in 0..2 {
            must(rule, loaded(store, &id).await?, expected.clone())?;
        }
    }
    Ok(())
}

async fn replaces_a_record(store: &dyn AnySessionStore) -> Result<()> {
    let id = unique();
    store.save(&id, full_record()?).await?;
    store.save(&id, small_record("b")?).await?;
    let rule = "a record that is saved again takes the place of the one before, as a whole";
    must(
        rule,
        loaded(store, &id).await?,
        Some(comparable(&small_record("b")?)?),
    )
}

async fn removed_record(store: &dyn AnySessionStore) -> Result<()> {
    let (id, other) = (unique(), unique());
    store.save(&id, small_record("a")?).await?;
    store.save(&other, small_record("b")?).await?;
    for _ in 0..2 {
        store.remove(&id).await?;
        let rule = "nothing is left of a session that was removed";
        must(rule, loaded(store, &id).await?, None)?;
        let rule = "sessions are removed one at a time";
        must(
            rule,
            loaded(store, &other).await?,
            Some(comparable(&small_record("b")?)?),
        )?;
    }
    Ok(())
}

async fn records_at_once(store: &dyn AnySessionStore) -> Result<()> {
    let ids: Vec<_> = (0..32).map(|_| unique()).collect();
    let saved = ids
        .iter()
        .map(async |id| store.save(id, small_record(id)?).await);
    try_join_all(saved).await?;
    for id in &ids {
        let rule = "records that are saved at once are all there";
        must(
            rule,
            loaded(store, id).await?,
            Some(comparable(&small_record(id)?)?),
        )?;
    }
    Ok(())
}

async fn loaded(store: &dyn AnySessionStore, id: &str) -> Result<Option<Value>> {
    store.load(id).await?.as_ref().map(comparable).transpose()
}

/// A record as JSON, to be compared.
fn comparable(record: &SessionRecord) -> Result<Value> {
    serde_json::to_value(record).map_err(|error| Error::internal(error.to_string()))
}

/// A record with nothing in it that it can do without, the same whenever it is made.
fn small_record(name: &str) -> Result<SessionRecord> {
    let mut record = SessionRecord::new(params(name)?, Revision::LATEST_LEGACY);
    record.created = 0;
    Ok(record)
}

/// A record with something in all that it has.
fn full_record() -> Result<SessionRecord> {
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
