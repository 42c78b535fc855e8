//! The contract of event stores: the rules that every [`EventStore`] must follow.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::{join, try_join_all};
use tokio::time::{Instant, sleep, timeout};

use super::contract_rules::{HOSTILE, PATIENCE, must, unique};
use crate::{
    error::{Error, Result},
    store::{
        AnyEventStore, ClaimMode, EventBatch, EventStore, Lease, Replay, StreamWrite,
        any_event_store,
    },
};

/// The durations of a lease that expires during a rule, and of one that does not.
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(600);

/// Checks an event store against the contract of [`EventStore`]. `make` returns two handles to one store, as in two processes.
/// Each rule calls it again, and may get handles to the same store, because session names are never reused. It takes some
/// seconds, because leases must expire.
///
/// ```
/// use std::sync::Arc;
/// use oxmcp::{store::MemoryEventStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::event_store_contract(|| async {
///     let store = Arc::new(MemoryEventStore::new());
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
pub async fn event_store_contract<S, F>(make: impl Fn() -> F) -> Result<()>
where
    S: EventStore,
    F: Future<Output = (S, S)>,
{
    let new = async || {
        let (one, other) = make().await;
        Stored {
            one: any_event_store(one),
            other: any_event_store(other),
            session: unique(),
        }
    };
    indexes_count_up(&new().await).await?;
    replay_after_index(&new().await).await?;
    unknown_is_lost(&new().await).await?;
    appended_together(&new().await).await?;
    sessions_are_separate(&new().await).await?;
    hostile_names(&new().await).await?;
    large_events(&new().await).await?;
    end_of_stream(&new().await).await?;
    ended_streams_make_room(&new().await).await?;
    forgotten_session(&new().await).await?;
    events_at_once(&new().await).await?;
    watched_stream(&new().await).await?;
    waits_end(&new().await).await?;
    leased_stream(&new().await).await?;
    taken_stream(&new().await).await?;
    lapsed_lease(&new().await).await?;
    late_writers_are_refused(&new().await).await?;
    writers_lease(&new().await).await
}

/// Two handles to one store, and a session with a unique name.
struct Stored {
    one: Arc<dyn AnyEventStore>,
    other: Arc<dyn AnyEventStore>,
    session: String,
}

impl Stored {
    /// Adds an event, by one handle.
    async fn append(&self, stream: &str, data: &'static str) -> Result<u64> {
        let indexes = self.append_all(stream, &[data]).await?;
        let index = indexes.first().copied();
        index.ok_or_else(|| Error::misuse("the store breaks a rule: every event gets an index"))
    }

    async fn append_all(&self, stream: &str, texts: &[&'static str]) -> Result<Vec<u64>> {
        let write = StreamWrite::new(texts.iter().collect::<EventBatch>());
        let indexes = self.write(stream, write).await?;
        indexes.ok_or_else(|| {
            Error::misuse("the store breaks a rule: writes without a lease are always allowed")
        })
    }

    async fn write(&self, stream: &str, write: StreamWrite) -> Result<Option<Vec<u64>>> {
        self.one.append(&self.session, stream, write).await
    }

    async fn end(&self, stream: &str) -> Result<()> {
        let ended = self.write(stream, StreamWrite::default().ending()).await?;
        must("a stream can end without events", ended, Some(Vec::new()))
    }

    /// Reads events, by the other handle.
    async fn after(&self, stream: &str, index: u64, max: usize) -> Result<Replay> {
        self.other.after(&self.session, stream, index, max).await
    }

    async fn claim(&self, stream: &str, claim: ClaimMode, lasts: Duration) -> Result<Option<u64>> {
        self.other.claim(&self.session, stream, claim, lasts).await
    }

    async fn renew(&self, stream: &str, epoch: u64) -> Result<bool> {
        self.one.renew(&self.session, stream, epoch, LONG).await
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
    let rule = "the events of each stream are numbered from 1";
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
    let rule = "the events after an index are returned in order and unchanged";
    must(rule, it.after("a", 0, 10).await?, found(&texts, false))?;
    let rest = ["[]", "{}"];
    must(rule, it.after("a", 2, 10).await?, found(&rest, false))?;
    let rule = "after the newest event, nothing is returned and nothing is lost";
    must(rule, it.after("a", 4, 10).await?, found(&[], false))?;
    let rule = "at most max events are returned at once";
    must(rule, it.after("a", 1, 1).await?, found(&[texts[1]], false))?;
    must(rule, it.after("a", 0, 0).await?, found(&[], false))
}

async fn unknown_is_lost(it: &Stored) -> Result<()> {
    let rule = "an unknown stream or index is reported as lost";
    must(rule, it.after("a", 0, 10).await?, Replay::Lost)?;
    it.append("a", "{}").await?;
    must(rule, it.after("b", 0, 10).await?, Replay::Lost)?;
    must(rule, it.after("a", 2, 10).await?, Replay::Lost)?;
    must(rule, it.after("a", u64::MAX, 10).await?, Replay::Lost)
}

async fn appended_together(it: &Stored) -> Result<()> {
    let texts = ["", "1", "2"];
    let rule = "events that are added together are numbered like others";
    must(rule, it.append_all("a", &texts).await?, vec![1, 2, 3])?;
    must(rule, it.append("a", "3").await?, 4)?;
    must(rule, it.append_all("b", &["1"]).await?, vec![1])?;
    must(rule, it.append_all("a", &["4", "5"]).await?, vec![5, 6])?;
    let rule = "events that are added together are returned in order and unchanged";
    let all = ["", "1", "2", "3", "4", "5"];
    must(rule, it.after("a", 0, 10).await?, found(&all, false))?;
    must(rule, it.after("a", 1, 1).await?, found(&["1"], false))?;
    must(rule, it.after("a", 5, 10).await?, found(&["5"], false))?;
    must(rule, it.after("b", 0, 10).await?, found(&["1"], false))?;
    let rule = "a write without events does not begin a stream";
    must(rule, it.append_all("c", &[]).await?, Vec::new())?;
    must(rule, it.after("c", 0, 10).await?, Replay::Lost)
}

async fn sessions_are_separate(it: &Stored) -> Result<()> {
    let other = Stored {
        one: Arc::clone(&it.one),
        other: Arc::clone(&it.other),
        session: unique(),
    };
    it.append("a", "1").await?;
    let rule = "a session cannot see the streams of another session";
    must(rule, other.after("a", 0, 10).await?, Replay::Lost)?;
    must(rule, other.append("a", "2").await?, 1)?;
    must(rule, it.after("a", 0, 10).await?, found(&["1"], false))?;
    it.append("ab", "3").await?;
    must(rule, it.after("a", 0, 10).await?, found(&["1"], false))?;
    other.end("a").await?;
    must(rule, it.append("a", "4").await.ok(), Some(2))?;
    other.other.forget(&other.session).await?;
    must(rule, it.after("a", 1, 10).await?, found(&["4"], false))
}

async fn end_of_stream(it: &Stored) -> Result<()> {
    it.end("a").await?;
    for text in ["1", "2"] {
        it.append("a", text).await?;
    }
    it.append("b", "1").await?;
    it.end("a").await?;
    it.end("a").await?;
    let rule = "an ended stream keeps its events, and reports its end with the last one";
    must(rule, it.after("a", 0, 1).await?, found(&["1"], false))?;
    must(rule, it.after("a", 0, 2).await?, found(&["1", "2"], true))?;
    must(rule, it.after("a", 2, 10).await?, found(&[], true))?;
    let rule = "an ended stream rejects further events";
    must(rule, it.append("a", "3").await.is_err(), true)?;
    must(rule, it.append_all("a", &["3", "4"]).await.is_err(), true)?;
    must(rule, it.after("a", 1, 10).await?, found(&["2"], true))?;
    let rule = "ending a stream does not end others";
    must(rule, it.append("b", "2").await.ok(), Some(2))?;
    must(rule, it.after("b", 2, 10).await?, found(&[], false))
}

/// The number of short requests of a session that works without a pause.
const MANY_STREAMS: usize = 1500;

async fn ended_streams_make_room(it: &Stored) -> Result<()> {
    it.append("a", "1").await?;
    let last = format!("r{}", MANY_STREAMS - 1);
    for number in 0..MANY_STREAMS {
        let write = StreamWrite::new(Bytes::from_static(b"{}")).ending();
        let kept = it.write(&format!("r{number}"), write).await.ok();
        let rule = "ended streams make space for new ones";
        must(rule, kept, Some(Some(vec![1])))?;
    }
    must(
        "the newest stream is kept",
        it.after(&last, 0, 10).await?,
        found(&["{}"], true),
    )?;
    let rule = "an open stream is not evicted for others";
    must(rule, it.append("a", "2").await.ok(), Some(2))
}

async fn forgotten_session(it: &Stored) -> Result<()> {
    it.append("a", "1").await?;
    it.append("b", "1").await?;
    let rule = "nothing is left of a forgotten session";
    for _ in 0..2 {
        it.other.forget(&it.session).await?;
        must(rule, it.after("a", 0, 10).await?, Replay::Lost)?;
        must(rule, it.after("b", 1, 10).await?, Replay::Lost)?;
    }
    Ok(())
}

async fn events_at_once(it: &Stored) -> Result<()> {
    let mut indexes = try_join_all((0..32).map(|_| it.append("a", "{}"))).await?;
    indexes.sort_unstable();
    let rule = "events that are added concurrently get distinct indexes";
    must(rule, indexes, (1..=32).collect())?;
    let together = try_join_all((0..8).map(|_| it.append_all("b", &["1", "2"]))).await?;
    let rule = "concurrent batches get contiguous indexes, in order";
    must(rule, together.iter().all(|it| it.is_sorted()), true)?;
    let mut indexes = together.concat();
    indexes.sort_unstable();
    must(rule, indexes, (1..=16).collect())
}

async fn hostile_names(it: &Stored) -> Result<()> {
    let rule = "names are distinct, whatever they contain";
    let named = |name: &str| Stored {
        one: Arc::clone(&it.one),
        other: Arc::clone(&it.other),
        session: format!("{}{name}", it.session),
    };
    let long = "a".repeat(64);
    let streams = [long.as_str(), "a", "A", "a-"];
    for name in HOSTILE {
        for stream in streams {
            must(rule, named(name).append(stream, name).await?, 1)?;
        }
    }
    for name in HOSTILE {
        for stream in streams {
            let found = named(name).after(stream, 0, 10).await?;
            must(rule, found, self::found(&[name], false))?;
        }
        named(name).other.forget(&named(name).session).await?;
    }
    Ok(())
}

async fn large_events(it: &Stored) -> Result<()> {
    let rule = "an event of 1 MiB is kept unchanged";
    let large = Bytes::from(vec![b'x'; 1 << 20]);
    let write = StreamWrite::new(large.clone());
    must(rule, it.write("a", write).await?, Some(vec![1]))?;
    let expected = Replay::Events {
        events: vec![large],
        ended: false,
    };
    must(rule, it.after("a", 0, 10).await?, expected)
}

/// Whether a wait ends in time.
async fn ends(wait: impl Future<Output = Result<()>>) -> Result<bool> {
    match timeout(PATIENCE, wait).await {
        Ok(ended) => ended.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// All events of a stream until its end, read by the other handle.
async fn follow(it: &Stored, stream: &str) -> Result<Vec<Bytes>> {
    let mut all = Vec::new();
    loop {
        let seen = all.len() as u64;
        match it.after(stream, seen, 2).await? {
            Replay::Events {
                ended: true,
                events,
            } => {
                all.extend(events);
                return Ok(all);
            }
            Replay::Events { events, .. } if events.is_empty() => {
                let rule = "a wait ends when an event is added or the stream ends";
                must(
                    rule,
                    ends(it.other.watch(&it.session, stream, seen)).await?,
                    true,
                )?;
            }
            Replay::Events { events, .. } => all.extend(events),
            Replay::Lost => return must("existing events are not lost", false, true).map(|()| all),
        }
    }
}

async fn watched_stream(it: &Stored) -> Result<()> {
    it.append("a", "0").await?;
    let written = async {
        for texts in [&["1"][..], &["2", "3", "4"], &["5"]] {
            sleep(Duration::from_millis(20)).await;
            it.append_all("a", texts).await?;
        }
        sleep(Duration::from_millis(20)).await;
        it.end("a").await
    };
    let (all, written) = join(follow(it, "a"), written).await;
    written?;
    let rule = "another handle reads the whole stream, in order";
    must(
        rule,
        all?,
        ["0", "1", "2", "3", "4", "5"].map(Bytes::from).to_vec(),
    )
}

async fn waits_end(it: &Stored) -> Result<()> {
    let watch = |stream| ends(it.other.watch(&it.session, stream, 0));
    let rule = "a wait ends at once if there is a later event, or no stream";
    must(rule, watch("a").await?, true)?;
    it.append("a", "1").await?;
    must(rule, watch("a").await?, true)?;
    it.append("b", "1").await?;
    it.end("b").await?;
    must(rule, ends(it.other.watch(&it.session, "b", 1)).await?, true)?;
    let wait = || ends(it.other.watch(&it.session, "a", 1));
    let claim = async {
        sleep(Duration::from_millis(20)).await;
        it.claim("a", ClaimMode::Take, LONG).await
    };
    let (ended, claimed) = join(wait(), claim).await;
    claimed?;
    must("a wait ends when the stream is claimed", ended?, true)?;
    let forget = async {
        sleep(Duration::from_millis(20)).await;
        it.one.forget(&it.session).await
    };
    let (ended, forgotten) = join(wait(), forget).await;
    forgotten?;
    must("a wait ends when the session is forgotten", ended?, true)
}

async fn leased_stream(it: &Stored) -> Result<()> {
    let rule = "a stream has one lease at a time, and a claim creates a missing stream";
    let first = it.claim("a", ClaimMode::IfFree, LONG).await?;
    must(rule, first.is_some(), true)?;
    must(rule, it.after("a", 0, 10).await?, found(&[], false))?;
    must(rule, it.claim("a", ClaimMode::IfFree, LONG).await?, None)?;
    let both = join(
        it.one.claim(&it.session, "b", ClaimMode::IfFree, LONG),
        it.claim("b", ClaimMode::IfFree, LONG),
    );
    let (one, other) = both.await;
    must(rule, one?.is_some(), other?.is_none())?;
    let rule = "a lease is renewed only by its own epoch";
    let first = first.unwrap_or_default();
    must(rule, it.renew("a", first).await?, true)?;
    must(rule, it.renew("a", first + 1).await?, false)?;
    must(rule, it.renew("c", 1).await?, false)?;
    let rule = "an ended stream can be neither leased nor renewed";
    it.end("a").await?;
    must(rule, it.renew("a", first).await?, false)?;
    must(rule, it.claim("a", ClaimMode::Take, LONG).await?, None)
}

async fn taken_stream(it: &Stored) -> Result<()> {
    let rule = "a taken lease is valid, and the previous one is not";
    let first = it
        .claim("a", ClaimMode::IfFree, LONG)
        .await?
        .unwrap_or_default();
    let second = it
        .claim("a", ClaimMode::Take, LONG)
        .await?
        .unwrap_or_default();
    must(rule, second > first, true)?;
    must(rule, it.renew("a", first).await?, false)?;
    must(rule, it.renew("a", second).await?, true)
}

/// Claims a stream as soon as its lease has expired.
async fn claim_next(it: &Stored, stream: &str, rule: &str) -> Result<u64> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(epoch) = it.claim(stream, ClaimMode::IfFree, LONG).await? {
            return Ok(epoch);
        }
        must(rule, Instant::now() < deadline, true)?;
        sleep(Duration::from_millis(20)).await;
    }
}

async fn lapsed_lease(it: &Stored) -> Result<()> {
    let rule = "a lease expires by itself, and then another is granted";
    let first = it.claim("a", ClaimMode::IfFree, SHORT).await?;
    let next = claim_next(it, "a", rule).await?;
    must(rule, Some(next) > first, true)?;
    let rule = "an expired lease can be renewed unless there is a newer one";
    let epoch = it
        .claim("b", ClaimMode::IfFree, SHORT)
        .await?
        .unwrap_or_default();
    sleep(SHORT * 2).await;
    must(rule, it.renew("b", epoch).await?, true)?;
    must(rule, it.claim("b", ClaimMode::IfFree, LONG).await?, None)
}

async fn late_writers_are_refused(it: &Stored) -> Result<()> {
    let under = |epoch, text: &'static str| {
        let events: EventBatch = [text].into_iter().collect();
        StreamWrite::new(events).under(Lease::new(epoch, LONG))
    };
    must(
        "the first lease of a writer has epoch 1",
        it.write("a", under(1, "1")).await?,
        Some(vec![1]),
    )?;
    let next = it
        .claim("a", ClaimMode::Take, LONG)
        .await?
        .unwrap_or_default();
    let rule = "nothing is added under an old lease";
    must(rule, next > 1, true)?;
    must(rule, it.write("a", under(1, "2")).await?, None)?;
    must(rule, it.write("a", under(1, "2").ending()).await?, None)?;
    must(rule, it.after("a", 0, 10).await?, found(&["1"], false))?;
    must(
        rule,
        it.write("a", under(next, "3").ending()).await?,
        Some(vec![2]),
    )?;
    must(rule, it.after("a", 0, 10).await?, found(&["1", "3"], true))?;
    must(rule, it.write("a", under(1, "4")).await?, None)?;
    let rule = "writes without a lease are always allowed";
    must(rule, it.write("b", under(1, "1")).await?, Some(vec![1]))?;
    must(rule, it.append("b", "2").await?, 2)
}

async fn writers_lease(it: &Stored) -> Result<()> {
    let write = |lasts| {
        let events: EventBatch = ["1"].into_iter().collect();
        StreamWrite::new(events).under(Lease::new(1, lasts))
    };
    it.write("a", write(LONG)).await?;
    let rule = "a write under a lease acquires and renews it";
    must(rule, it.claim("a", ClaimMode::IfFree, LONG).await?, None)?;
    it.write("b", write(SHORT)).await?;
    it.write("b", write(LONG)).await?;
    sleep(SHORT * 2).await;
    must(rule, it.claim("b", ClaimMode::IfFree, LONG).await?, None)?;
    it.write("c", write(SHORT)).await?;
    must(rule, claim_next(it, "c", rule).await? > 1, true)
}
