//! Contracts of stores, checked against stores that break them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use oxmcp::{
    Error, Result,
    store::{
        Bus, ClaimMode, CreateOutcome, Delivery, EventStore, Lease, MemoryBus, MemoryEventStore,
        MemorySessionStore, Replay, SessionChange, SessionRecord, SessionStore, StoredSession,
        StreamWrite,
    },
    testing::{bus_contract, event_store_contract, session_store_contract},
};

/// Two handles to the same store or bus.
fn twice<S>(store: S) -> (Arc<S>, Arc<S>) {
    let store = Arc::new(store);
    (Arc::clone(&store), store)
}

#[tokio::test(start_paused = true)]
async fn memory_stores_satisfy_their_contracts() {
    event_store_contract(|| async { twice(MemoryEventStore::new()) })
        .await
        .unwrap();
    session_store_contract(|| async { twice(MemorySessionStore::new()) })
        .await
        .unwrap();
    bus_contract(|| async { twice(MemoryBus::new()) })
        .await
        .unwrap();
}

/// A way in which a store of events breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    CountsFromZero,
    CountsTheSession,
    MixesSessions,
    MatchesPrefixes,
    Reverses,
    IgnoresMax,
    IgnoresTheIndex,
    DropsEmptyOnes,
    NothingIsLost,
    NoEnd,
    EndsTooEarly,
    TakesMoreAfterTheEnd,
    EndsAll,
    ForgetsNothing,
    ForgetsAll,
    Races,
    AddsTheFirstAlone,
    AddsBackwards,
    TellsTheLastIndex,
    AddsAfterTheEnd,
    BeginsWithNothing,
    SeesNoGaps,
    WaitsForEver,
    SleepsThroughClaims,
    LeasesTwice,
    LeasesForEver,
    TakesNothing,
    RenewsAnything,
    TakesLateWriters,
    WritersHoldNothing,
}

struct Broken {
    store: MemoryEventStore,
    fault: Fault,
    sessions: Mutex<Vec<String>>,
    counted: Mutex<u64>,
}

impl Broken {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn session<'a>(&self, session: &'a str) -> &'a str {
        let mut sessions = self.sessions.lock().unwrap();
        if !sessions.iter().any(|it| it == session) {
            sessions.push(session.to_owned());
        }
        if self.has(Fault::MixesSessions) {
            "all"
        } else {
            session
        }
    }

    fn stream<'a>(&self, stream: &'a str) -> &'a str {
        if self.has(Fault::MatchesPrefixes) {
            stream.get(..1).unwrap()
        } else {
            stream
        }
    }
}

impl Broken {
    /// Appends one event. Returns `None` if the lease is not the newest.
    async fn add(
        &self,
        (session, stream): (&str, &str),
        data: Bytes,
        lease: Option<Lease>,
    ) -> Result<Option<u64>> {
        if self.has(Fault::DropsEmptyOnes) && data.is_empty() {
            return Ok(Some(1));
        }
        let mut write = StreamWrite::new(data);
        write.lease = lease.filter(|_| !self.has(Fault::TakesLateWriters));
        if self.has(Fault::WritersHoldNothing) {
            write.lease = lease.map(|it| Lease::new(it.epoch, Duration::ZERO));
        }
        let add = || self.store.append(session, stream, write.clone());
        let first = |indexes: Option<Vec<u64>>| indexes.and_then(|it| it.first().copied());
        if self.has(Fault::Races) {
            let next = *self.counted.lock().unwrap() + 1;
            tokio::task::yield_now().await;
            *self.counted.lock().unwrap() = next;
            let index = first(add().await?);
            return Ok(index.map(|index| if index > 8 { next } else { index }));
        }
        if self.has(Fault::TakesMoreAfterTheEnd) {
            return add()
                .await
                .map_or(Ok(Some(3)), |indexes| Ok(first(indexes)));
        }
        let index = first(add().await?);
        *self.counted.lock().unwrap() += 1;
        Ok(index.map(|index| match self.fault {
            Fault::CountsFromZero => index - 1,
            Fault::CountsTheSession => *self.counted.lock().unwrap(),
            _ => index,
        }))
    }
}

impl EventStore for Broken {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let (session, stream) = (self.session(session), self.stream(stream));
        let mut events: Vec<_> = write.events.iter().collect();
        match self.fault {
            Fault::AddsTheFirstAlone => events.truncate(1),
            Fault::AddsBackwards => events.reverse(),
            Fault::BeginsWithNothing if events.is_empty() => {
                self.add((session, stream), Bytes::new(), None).await?;
            }
            _ => {}
        }
        let mut indexes = Vec::new();
        for data in events {
            match self.add((session, stream), data, write.lease).await {
                Ok(Some(index)) => indexes.push(index),
                Ok(None) => return Ok(None),
                Err(_) if self.has(Fault::AddsAfterTheEnd) => {}
                Err(error) => return Err(error),
            }
            tokio::task::yield_now().await;
        }
        if write.ends {
            let mut end = StreamWrite::default().ending();
            end.lease = write.lease;
            if self.has(Fault::EndsAll) {
                for name in ["a", "b"] {
                    self.store.append(session, name, end.clone()).await?;
                }
            }
            self.store.append(session, stream, end).await?;
        }
        let first = indexes.first().copied().unwrap_or(1);
        let last = indexes.last().copied().unwrap_or(0);
        Ok(Some(match self.fault {
            Fault::TellsTheLastIndex => vec![last; indexes.len()],
            Fault::SeesNoGaps => (first..).take(indexes.len()).collect(),
            _ => indexes,
        }))
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        let (session, stream) = (self.session(session), self.stream(stream));
        let max = if self.has(Fault::IgnoresMax) {
            100
        } else {
            max
        };
        let index = if self.has(Fault::IgnoresTheIndex) {
            0
        } else {
            index
        };
        let found = self.store.after(session, stream, index, max).await?;
        Ok(match (self.fault, found) {
            (Fault::NothingIsLost, Replay::Lost) => Replay::Events {
                events: Vec::new(),
                ended: false,
            },
            (Fault::NoEnd, Replay::Events { events, .. }) => Replay::Events {
                events,
                ended: false,
            },
            (Fault::Reverses, Replay::Events { mut events, ended }) => {
                events.reverse();
                Replay::Events { events, ended }
            }
            (Fault::EndsTooEarly, Replay::Events { events, ended }) => {
                let all = self.store.after(session, stream, 0, 100).await?;
                let is_over = matches!(all, Replay::Events { ended: true, .. });
                Replay::Events {
                    events,
                    ended: ended || is_over,
                }
            }
            (_, found) => found,
        })
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        if self.has(Fault::WaitsForEver) {
            std::future::pending::<()>().await;
        }
        let (session, stream) = (self.session(session), self.stream(stream));
        let watch = self.store.watch(session, stream, index);
        if self.has(Fault::SleepsThroughClaims) {
            while matches!(self.store.after(session, stream, index, 1).await?,
                Replay::Events { events, ended } if events.is_empty() && !ended)
            {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        watch.await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        let claim = match self.fault {
            Fault::LeasesTwice => ClaimMode::Take,
            Fault::TakesNothing => ClaimMode::IfFree,
            _ => claim,
        };
        let lasts = match self.fault {
            Fault::LeasesForEver => Duration::from_secs(1_000_000),
            _ => lasts,
        };
        let (session, stream) = (self.session(session), self.stream(stream));
        self.store.claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        let (session, stream) = (self.session(session), self.stream(stream));
        if self.has(Fault::RenewsAnything) {
            return Ok(true);
        }
        self.store.renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        if self.has(Fault::ForgetsAll) {
            let sessions = self.sessions.lock().unwrap().clone();
            for session in sessions {
                self.store.forget(&session).await?;
            }
        }
        if self.has(Fault::ForgetsNothing) {
            return Ok(());
        }
        self.store.forget(self.session(session)).await
    }
}

#[tokio::test(start_paused = true)]
async fn contract_rejects_broken_event_stores() {
    let faults = [
        (Fault::CountsFromZero, "numbered from 1"),
        (Fault::CountsTheSession, "numbered from 1"),
        (Fault::MixesSessions, "the streams of another session"),
        (Fault::MatchesPrefixes, "the streams of another session"),
        (Fault::Reverses, "in order"),
        (Fault::IgnoresMax, "at most max"),
        (Fault::IgnoresTheIndex, "in order"),
        (Fault::DropsEmptyOnes, "unchanged"),
        (Fault::NothingIsLost, "reported as lost"),
        (Fault::NoEnd, "reports its end"),
        (Fault::EndsTooEarly, "with the last one"),
        (Fault::TakesMoreAfterTheEnd, "rejects further events"),
        (Fault::EndsAll, "does not end others"),
        (Fault::ForgetsNothing, "a forgotten session"),
        (Fault::ForgetsAll, "the streams of another session"),
        (Fault::Races, "distinct indexes"),
        (Fault::AddsTheFirstAlone, "numbered like others"),
        (Fault::AddsBackwards, "added together are returned in order"),
        (Fault::TellsTheLastIndex, "numbered like others"),
        (Fault::AddsAfterTheEnd, "rejects further events"),
        (Fault::BeginsWithNothing, "does not begin a stream"),
        (Fault::SeesNoGaps, "contiguous indexes, in order"),
        (Fault::WaitsForEver, "a wait ends when an event is added"),
        (Fault::SleepsThroughClaims, "when the stream is claimed"),
        (Fault::LeasesTwice, "one lease at a time"),
        (Fault::LeasesForEver, "expires by itself"),
        (Fault::TakesNothing, "a taken lease"),
        (Fault::RenewsAnything, "only by its own epoch"),
        (Fault::TakesLateWriters, "under an old lease"),
        (Fault::WritersHoldNothing, "a write under a lease"),
    ];
    for (fault, rule) in faults {
        let broken = event_store_contract(|| async {
            twice(Broken {
                store: MemoryEventStore::new(),
                fault,
                sessions: Mutex::default(),
                counted: Mutex::default(),
            })
        });
        let error = broken.await.expect_err(&format!("{fault:?} is not seen"));
        assert!(error.message().contains(rule), "{fault:?}: {error}");
    }
}

/// A way in which a store of sessions breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    KnowsAnyId,
    OneForAll,
    NoPrincipal,
    NoLogLevel,
    NoSubscriptions,
    CreatesTwice,
    LastWriterWins,
    NoVersion,
    LoadsOnce,
    RemovesNothing,
    RemovesAll,
    FailsToRemoveTwice,
    NoTombstone,
    KeepsForEver,
    TouchesNothing,
    CountsNothing,
    CountsForEver,
    CountsEveryone,
    CountsTwice,
    CountsLate,
}

struct Lossy {
    store: MemorySessionStore,
    loss: Loss,
    ids: Mutex<Vec<String>>,
    /// The principals of the sessions that were created.
    principals: Mutex<Vec<Option<String>>>,
}

impl Lossy {
    /// The limit of sessions to pass to the inner store, as the fault distorts it.
    async fn max_per_owner(&self, record: &SessionRecord, max_per_owner: usize) -> usize {
        let principals = self.principals.lock().unwrap().clone();
        let is_counted = |it: &&Option<String>| match self.loss {
            Loss::CountsForEver | Loss::CountsTwice | Loss::CountsLate => **it == record.principal,
            Loss::CountsEveryone => true,
            _ => false,
        };
        let has_too_many = principals.iter().filter(is_counted).count() >= max_per_owner;
        match self.loss {
            Loss::CountsNothing => usize::MAX,
            Loss::CountsLate => {
                tokio::task::yield_now().await;
                if has_too_many { 0 } else { usize::MAX }
            }
            _ if has_too_many => 0,
            _ => max_per_owner,
        }
    }

    fn has(&self, loss: Loss) -> bool {
        self.loss == loss
    }

    fn lasts(&self, lasts: Duration) -> Duration {
        if self.has(Loss::KeepsForEver) {
            Duration::MAX
        } else {
            lasts
        }
    }
}

impl SessionStore for Lossy {
    async fn create(
        &self,
        id: &str,
        mut record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        let max_per_owner = self.max_per_owner(&record, max_per_owner).await;
        let principal = record.principal.clone();
        match self.loss {
            Loss::NoPrincipal => record.principal = None,
            Loss::NoLogLevel => record.log_level = None,
            Loss::NoSubscriptions => record.subscribed.clear(),
            _ => {}
        }
        self.ids.lock().unwrap().push(id.to_owned());
        let id = if self.has(Loss::OneForAll) { "x" } else { id };
        let lasts = self.lasts(lasts);
        let created = self.store.create(id, record, lasts, max_per_owner).await?;
        if created == CreateOutcome::Created || self.has(Loss::CountsTwice) {
            self.principals.lock().unwrap().push(principal);
        }
        if created == CreateOutcome::Exists && self.has(Loss::CreatesTwice) {
            return Ok(CreateOutcome::Created);
        }
        Ok(created)
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        let last = self.ids.lock().unwrap().last().cloned();
        let id = match (self.loss, &last) {
            (Loss::KnowsAnyId, Some(last)) => last.as_str(),
            (Loss::OneForAll, _) => "x",
            _ => id,
        };
        let found = self.store.load(id).await?;
        if self.has(Loss::LoadsOnce) {
            self.store.remove(id).await?;
        }
        Ok(found)
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        if self.has(Loss::LastWriterWins) {
            let before = self.store.load(id).await?;
            tokio::task::yield_now().await;
            let version = self.store.set(id, change.clone()).await?;
            let after = self.store.load(id).await?;
            if let (Some(before), Some(after)) = (before, after) {
                let (before, after) = (before.record.subscribed, after.record.subscribed);
                for uri in after.into_iter().filter(|uri| !before.contains(uri)) {
                    let is_own = matches!(&change, SessionChange::Watch(own) if *own == uri);
                    if !is_own {
                        self.store.set(id, SessionChange::Unwatch(uri)).await?;
                    }
                }
            }
            return Ok(version);
        }
        let version = self.store.set(id, change).await?;
        Ok(version.map(|it| if self.has(Loss::NoVersion) { 1 } else { it }))
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        if self.has(Loss::TouchesNothing) {
            return Ok(self.store.load(id).await?.map(|it| it.version));
        }
        self.store.touch(id, self.lasts(lasts)).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        if self.has(Loss::RemovesNothing) {
            return Ok(());
        }
        if self.has(Loss::NoTombstone) {
            // The session expires at once.
            return self.store.touch(id, Duration::ZERO).await.map(drop);
        }
        if self.has(Loss::FailsToRemoveTwice) && self.store.load(id).await?.is_none() {
            return Err(Error::invalid_params("there is no such session to remove"));
        }
        if self.has(Loss::RemovesAll) {
            let ids = self.ids.lock().unwrap().clone();
            for id in ids {
                self.store.remove(&id).await?;
            }
        }
        self.store.remove(id).await
    }
}

#[tokio::test(start_paused = true)]
async fn contract_rejects_broken_session_stores() {
    let losses = [
        (Loss::KnowsAnyId, "was not created"),
        (Loss::OneForAll, "was not created"),
        (Loss::NoPrincipal, "as it was created"),
        (Loss::NoLogLevel, "as it was created"),
        (Loss::NoSubscriptions, "as it was created"),
        (Loss::CreatesTwice, "an ID has one record"),
        (Loss::LastWriterWins, "concurrent settings are all kept"),
        (Loss::NoVersion, "a setting changes its part of the record"),
        (Loss::LoadsOnce, "as it was created"),
        (Loss::RemovesNothing, "a removed session is gone"),
        (Loss::RemovesAll, "one at a time"),
        (Loss::FailsToRemoveTwice, "no such session to remove"),
        (Loss::NoTombstone, "nothing brings it back"),
        (Loss::KeepsForEver, "an expired record is gone"),
        (Loss::TouchesNothing, "an expired record is gone"),
        (Loss::CountsNothing, "cannot exceed its number of sessions"),
        (Loss::CountsForEver, "a removed session is not counted"),
        (Loss::CountsEveryone, "principals are counted separately"),
        (Loss::CountsTwice, "cannot exceed its number of sessions"),
        (Loss::CountsLate, "concurrent creations cannot exceed"),
    ];
    for (loss, rule) in losses {
        let broken = session_store_contract(|| async {
            twice(Lossy {
                store: MemorySessionStore::new(),
                loss,
                ids: Mutex::default(),
                principals: Mutex::default(),
            })
        });
        let error = broken.await.expect_err(&format!("{loss:?} is not seen"));
        assert!(error.message().contains(rule), "{loss:?}: {error}");
    }
}

/// A way in which a bus breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    Silent,
    NotToItself,
    AllTopics,
    Twice,
    Truncates,
}

/// A handle to a faulty bus.
struct Noisy {
    bus: Arc<MemoryBus>,
    noise: Noise,
}

impl Bus for Noisy {
    async fn publish(&self, topic: &str, mut message: Bytes) -> Result<()> {
        match self.noise {
            Noise::Silent => return Ok(()),
            Noise::Twice => self.bus.publish(topic, message.clone()).await?,
            Noise::Truncates => message.truncate(8000),
            Noise::AllTopics => {
                let (short, _) = topic.split_once('.').unwrap_or((topic, ""));
                return self.bus.publish(short, message).await;
            }
            Noise::NotToItself => {}
        }
        self.bus.publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        let all = self.bus.subscribe(topics).await?;
        if self.noise == Noise::NotToItself && topics.len() == 2 {
            return Ok(stream::pending().boxed());
        }
        Ok(all)
    }
}

#[tokio::test(start_paused = true)]
async fn contract_rejects_broken_buses() {
    let noises = [
        (Noise::Silent, "published messages are delivered"),
        (Noise::NotToItself, "published messages are delivered"),
        (
            Noise::AllTopics,
            "messages of other topics are not delivered",
        ),
        (Noise::Twice, "all subscribers get each message"),
        (Noise::Truncates, "a message of 1 MiB"),
    ];
    for (noise, rule) in noises {
        let broken = bus_contract(|| async {
            let bus = Arc::new(MemoryBus::new());
            let handle = || Noisy {
                bus: Arc::clone(&bus),
                noise,
            };
            (handle(), handle())
        });
        let error = broken.await.expect_err(&format!("{noise:?} is not seen"));
        assert!(error.message().contains(rule), "{noise:?}: {error}");
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn bus_drops_unread_messages_and_reports_it() {
    let message = |text: &'static str| Delivery::Message {
        topic: "t".into(),
        message: text.into(),
    };
    for bus in [
        MemoryBus::new().max_waiting(3),
        MemoryBus::new().max_waiting_bytes(6),
    ] {
        let mut slow = bus.subscribe(&["t"]).await.unwrap();
        for text in ["11", "22", "33"] {
            bus.publish("t", text.into()).await.unwrap();
        }
        assert_eq!(slow.next().await, Some(message("11")));
        for text in ["44", "55"] {
            bus.publish("t", text.into()).await.unwrap();
        }
        assert_eq!(slow.next().await, Some(Delivery::Missed));
        bus.publish("t", "66".into()).await.unwrap();
        assert_eq!(slow.next().await, Some(message("66")));
        drop(slow);
        bus.publish("t", "77".into()).await.unwrap();
        assert!(format!("{bus:?}").contains("subscribers: 0"));
    }
}
