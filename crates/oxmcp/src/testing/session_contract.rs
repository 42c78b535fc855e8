//! The contract of session stores: the rules that every [`SessionStore`] must follow.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::{join, try_join_all};
use oxmcp_protocol::{LoggingLevel, Revision};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::time::{Instant, sleep};

use super::contract_rules::{HOSTILE, PATIENCE, must, unique};
use crate::{
    error::{Error, Result},
    store::{
        AnySessionStore,
        CreateOutcome::{self, Created, Exists, PrincipalFull},
        SessionChange, SessionRecord, SessionStore, any_session_store,
    },
};

/// The durations of a record that expires during a rule, and of one that does not.
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(600);

/// A maximum number of sessions that no principal reaches.
const MANY: usize = usize::MAX;

/// Checks a session store against the contract of [`SessionStore`]. `make` returns two handles to one store, as in two
/// processes. Each rule calls it again, and may get handles to the same store, because IDs are never reused. It takes some
/// seconds, because records must expire.
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
///
/// # Errors
/// The first broken rule, with the details; or an error of the store.
///
/// # Cancel safety
/// If the future is dropped before it returns, its data may remain in the store.
pub async fn session_store_contract<S, F>(make: impl Fn() -> F) -> Result<()>
where
    S: SessionStore,
    F: Future<Output = (S, S)>,
{
    let new = async || {
        let (one, other) = make().await;
        (any_session_store(one), any_session_store(other))
    };
    unknown_record(&new().await).await?;
    loads_what_was_created(&new().await).await?;
    created_once(&new().await).await?;
    settings_are_set_one_at_a_time(&new().await).await?;
    settings_at_once(&new().await).await?;
    removed_record(&new().await).await?;
    hostile_ids(&new().await).await?;
    records_at_once(&new().await).await?;
    expired_record(&new().await).await?;
    counted_by_principal(&new().await).await?;
    counted_at_once(&new().await).await?;
    no_longer_counted(&new().await).await
}

type Handles = (Arc<dyn AnySessionStore>, Arc<dyn AnySessionStore>);

async fn unknown_record((one, other): &Handles) -> Result<()> {
    let rule = "there is no record of a session that was not created";
    one.create(&unique(), small_record("a")?, LONG, MANY)
        .await?;
    let id = unique();
    must(rule, loaded(other, &id).await?, None)?;
    must(rule, other.touch(&id, LONG).await?, None)?;
    must(
        rule,
        other.set(&id, SessionChange::Initialized).await?,
        None,
    )?;
    must(rule, loaded(one, &id).await?, None)
}

async fn loads_what_was_created((one, other): &Handles) -> Result<()> {
    let rule = "every handle loads a record as it was created";
    for record in [small_record("a")?, full_record()?] {
        let id = unique();
        let expected = Some((comparable(&record)?, 1));
        must(rule, one.create(&id, record, LONG, MANY).await?, Created)?;
        for store in [one, other, one] {
            must(rule, loaded(store, &id).await?, expected.clone())?;
        }
    }
    Ok(())
}

async fn created_once((one, other): &Handles) -> Result<()> {
    let rule = "an ID has one record, the first";
    let id = unique();
    let created = one.create(&id, small_record("a")?, LONG, MANY).await?;
    must(rule, created, Created)?;
    let again = other.create(&id, full_record()?, LONG, MANY).await?;
    must(rule, again, Exists)?;
    let expected = Some((comparable(&small_record("a")?)?, 1));
    must(rule, loaded(other, &id).await?, expected)
}

async fn settings_are_set_one_at_a_time((one, other): &Handles) -> Result<()> {
    let rule = "a setting changes its part of the record, and nothing else";
    let id = unique();
    let mut record = small_record("a")?;
    one.create(&id, record.clone(), LONG, MANY).await?;
    let settings = [
        SessionChange::LogLevel(LoggingLevel::Warning),
        SessionChange::Watch("file:///a".to_owned()),
        SessionChange::Initialized,
        SessionChange::Watch("file:///b".to_owned()),
        SessionChange::Watch("file:///a".to_owned()),
        SessionChange::LogLevel(LoggingLevel::Error),
        SessionChange::Unwatch("file:///a".to_owned()),
        SessionChange::Unwatch("file:///c".to_owned()),
        SessionChange::Watch("{}\0\n é".to_owned()),
    ];
    let mut version = 1;
    for (change, store) in settings.into_iter().zip([one, other].into_iter().cycle()) {
        record.apply(change.clone());
        version += 1;
        must(rule, store.set(&id, change).await?, Some(version))?;
        for store in [one, other] {
            let expected = Some((comparable(&record)?, version));
            must(rule, loaded(store, &id).await?, expected)?;
            let rule = "each change increments the version, and nothing else does";
            must(rule, store.touch(&id, LONG).await?, Some(version))?;
        }
    }
    Ok(())
}

async fn settings_at_once((one, other): &Handles) -> Result<()> {
    let id = unique();
    one.create(&id, small_record("a")?, LONG, MANY).await?;
    let set = |store: &Arc<dyn AnySessionStore>, name: &'static str| {
        let (store, id) = (Arc::clone(store), id.clone());
        async move {
            let uris = (0..16).map(|number| SessionChange::Watch(format!("{name}{number:02}")));
            try_join_all(uris.map(|uri| store.set(&id, uri))).await
        }
    };
    let level = one.set(&id, SessionChange::LogLevel(LoggingLevel::Debug));
    let initialized = other.set(&id, SessionChange::Initialized);
    let both = join(set(one, "a"), set(other, "b"));
    let ((a, b), (level, initialized)) = join(both, join(level, initialized)).await;
    let mut versions = [a?, b?, vec![level?, initialized?]].concat();
    versions.sort_unstable();
    let rule = "concurrent settings are all kept, each with its own version";
    must(rule, versions, (2..=35).map(Some).collect())?;
    let stored = one.load(&id).await?.map(|it| it.record);
    let mut record = stored
        .ok_or_else(|| Error::misuse("the store breaks a rule: a record is found by its ID"))?;
    record.subscribed.sort_unstable();
    let uris = ["a", "b"].map(|name| (0..16).map(move |number| format!("{name}{number:02}")));
    must(
        rule,
        record.subscribed,
        uris.into_iter().flatten().collect(),
    )?;
    let others = (record.initialized, record.log_level);
    must(rule, others, (true, Some(LoggingLevel::Debug)))
}

async fn removed_record((one, other): &Handles) -> Result<()> {
    let (id, still) = (unique(), unique());
    one.create(&id, small_record("a")?, LONG, MANY).await?;
    one.create(&still, small_record("b")?, LONG, MANY).await?;
    for store in [one, other] {
        store.remove(&id).await?;
        let rule = "a removed session is gone, and nothing brings it back";
        must(rule, loaded(other, &id).await?, None)?;
        must(rule, one.set(&id, SessionChange::Initialized).await?, None)?;
        must(rule, other.touch(&id, LONG).await?, None)?;
        must(
            rule,
            other.create(&id, small_record("a")?, LONG, MANY).await?,
            Exists,
        )?;
        must(rule, loaded(one, &id).await?, None)?;
        let rule = "sessions are removed one at a time";
        let expected = Some((comparable(&small_record("b")?)?, 1));
        must(rule, loaded(other, &still).await?, expected)?;
    }
    let rule = "a session that is removed before it is created cannot be created";
    let early = unique();
    one.remove(&early).await?;
    must(
        rule,
        other.create(&early, small_record("a")?, LONG, MANY).await?,
        Exists,
    )
}

async fn hostile_ids((one, other): &Handles) -> Result<()> {
    let rule = "IDs are distinct, whatever they contain";
    let prefix = unique();
    let id = |name| format!("{prefix}{name}");
    for name in HOSTILE {
        let created = one
            .create(&id(name), small_record(name)?, LONG, MANY)
            .await?;
        must(rule, created, Created)?;
    }
    for name in HOSTILE {
        let expected = Some((comparable(&small_record(name)?)?, 1));
        must(rule, loaded(other, &id(name)).await?, expected)?;
        other.remove(&id(name)).await?;
    }
    Ok(())
}

async fn records_at_once((one, other): &Handles) -> Result<()> {
    let ids: Vec<_> = (0..32).map(|_| unique()).collect();
    let created = ids.iter().zip([one, other].into_iter().cycle());
    let created =
        created.map(async |(id, store)| store.create(id, small_record(id)?, LONG, MANY).await);
    try_join_all(created).await?;
    for id in &ids {
        let rule = "records that are created concurrently are all stored";
        let expected = Some((comparable(&small_record(id)?)?, 1));
        must(rule, loaded(one, id).await?, expected)?;
    }
    Ok(())
}

/// Creates a record whose time is short, and touches it before that is over. On a slow machine this takes several attempts.
async fn touched_in_time(
    one: &Arc<dyn AnySessionStore>,
    other: &Arc<dyn AnySessionStore>,
) -> Result<String> {
    let rule = "a record can be touched while its time lasts";
    let deadline = Instant::now() + PATIENCE;
    loop {
        let id = unique();
        one.create(&id, small_record("a")?, SHORT, MANY).await?;
        if other.touch(&id, LONG).await?.is_some() {
            return Ok(id);
        }
        must(rule, Instant::now() < deadline, true)?;
    }
}

async fn expired_record((one, other): &Handles) -> Result<()> {
    let (short, shortened) = (unique(), unique());
    let touched = touched_in_time(one, other).await?;
    one.create(&short, small_record("a")?, SHORT, MANY).await?;
    one.create(&shortened, small_record("a")?, LONG, MANY)
        .await?;
    other.touch(&shortened, SHORT).await?;
    for id in [short, shortened] {
        let rule = "an expired record is gone, and nothing brings it back";
        let deadline = Instant::now() + PATIENCE;
        while loaded(other, &id).await?.is_some() {
            must(rule, Instant::now() < deadline, true)?;
            sleep(Duration::from_millis(20)).await;
        }
        must(
            rule,
            other.set(&id, SessionChange::Initialized).await?,
            None,
        )?;
        must(rule, one.touch(&id, LONG).await?, None)?;
        must(rule, loaded(one, &id).await?, None)?;
    }
    let rule = "a touched record is kept for the time that was set last";
    must(rule, loaded(one, &touched).await?.is_some(), true)
}

/// Creates a session of a principal that may have at most `max_per_owner` sessions.
async fn create_of(
    store: &Arc<dyn AnySessionStore>,
    (principal, max_per_owner): (&str, usize),
    id: &str,
    lasts: Duration,
) -> Result<CreateOutcome> {
    let mut record = small_record("a")?;
    record.principal = Some(principal.to_owned());
    store.create(id, record, lasts, max_per_owner).await
}

async fn counted_by_principal((one, other): &Handles) -> Result<()> {
    let (principal, first) = (unique(), unique());
    let of = (&*principal, 2);
    let rule = "a principal cannot exceed its number of sessions, by any handle";
    for (store, id, created) in [
        (one, &first, Created),
        (other, &first, Exists),
        (other, &unique(), Created),
        (one, &unique(), PrincipalFull),
        (other, &unique(), PrincipalFull),
    ] {
        must(rule, create_of(store, of, id, LONG).await?, created)?;
    }
    let refused = unique();
    create_of(other, of, &refused, LONG).await?;
    let rule = "a refused session leaves nothing behind";
    must(rule, loaded(one, &refused).await?, None)?;
    let rule = "principals are counted separately, and sessions without one are not counted";
    let created = create_of(one, (&unique(), 1), &unique(), LONG).await?;
    must(rule, created, Created)?;
    let of_nobody = one.create(&unique(), small_record("a")?, LONG, 0).await?;
    must(rule, of_nobody, Created)
}

async fn counted_at_once((one, other): &Handles) -> Result<()> {
    let principal = unique();
    let stores = [one, other].into_iter().cycle().take(16);
    let created =
        stores.map(async |store| create_of(store, (&principal, 3), &unique(), LONG).await);
    let created = try_join_all(created).await?;
    let kept = created.iter().filter(|&&it| it == Created).count();
    let rule = "concurrent creations cannot exceed the number of sessions";
    must(rule, kept, 3)
}

async fn no_longer_counted((one, other): &Handles) -> Result<()> {
    let (principal, first) = (unique(), unique());
    let of = (&*principal, 1);
    create_of(one, of, &first, LONG).await?;
    other.remove(&first).await?;
    let rule = "a removed session is not counted";
    let short = unique();
    must(rule, create_of(one, of, &short, SHORT).await?, Created)?;
    let deadline = Instant::now() + PATIENCE;
    let touched = unique();
    // On a slow machine the session may expire before it is touched, and is created again.
    while create_of(other, of, &touched, SHORT).await? != Created
        || one.touch(&touched, LONG).await?.is_none()
    {
        let rule = "an expired session is not counted";
        must(rule, Instant::now() < deadline, true)?;
        sleep(Duration::from_millis(20)).await;
    }
    let rule = "a touched session is counted for the time that was set last";
    sleep(SHORT * 2).await;
    must(
        rule,
        create_of(one, of, &unique(), LONG).await?,
        PrincipalFull,
    )
}

/// The record of a session as JSON, and its version.
async fn loaded(store: &Arc<dyn AnySessionStore>, id: &str) -> Result<Option<(Value, u64)>> {
    let stored = store.load(id).await?;
    let stored = stored.map(|it| Ok((comparable(&it.record)?, it.version)));
    stored.transpose()
}

/// A record as JSON, for comparison: the URIs are sorted, since they have no order.
fn comparable(record: &SessionRecord) -> Result<Value> {
    let mut record = record.clone();
    record.subscribed.sort_unstable();
    serde_json::to_value(record).map_err(|error| Error::internal(error.to_string()))
}

/// A record with only the required members, which is always the same.
fn small_record(name: &str) -> Result<SessionRecord> {
    let mut record = SessionRecord::new(params(name)?, Revision::LATEST_LEGACY);
    record.created = 0;
    Ok(record)
}

/// A record in which every member is set.
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
