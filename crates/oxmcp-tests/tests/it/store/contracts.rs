//! The contracts of stores, held against stores that break them.

use std::sync::Mutex;

use bytes::Bytes;
use oxmcp::{
    Error, Result,
    store::{
        EventBatch, EventStore, MemoryEventStore, MemorySessionStore, Replay, SessionRecord,
        SessionStore,
    },
    testing::{event_store_contract, session_store_contract},
};

#[tokio::test]
async fn the_stores_in_memory_keep_their_contracts() {
    event_store_contract(|| async { MemoryEventStore::new() })
        .await
        .unwrap();
    session_store_contract(|| async { MemorySessionStore::new() })
        .await
        .unwrap();
}

/// What can be wrong with a store of events.
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

impl EventStore for Broken {
    async fn append(&self, session: &str, stream: &str, data: Bytes) -> Result<u64> {
        let (session, stream) = (self.session(session), self.stream(stream));
        if self.has(Fault::DropsEmptyOnes) && data.is_empty() {
            return Ok(1);
        }
        if self.has(Fault::Races) {
            let next = *self.counted.lock().unwrap() + 1;
            tokio::task::yield_now().await;
            *self.counted.lock().unwrap() = next;
            let index = self.store.append(session, stream, data).await?;
            return Ok(if index > 8 { next } else { index });
        }
        if self.has(Fault::TakesMoreAfterTheEnd) {
            let index = self.store.append(session, stream, data).await;
            return Ok(index.unwrap_or(3));
        }
        let index = self.store.append(session, stream, data).await?;
        *self.counted.lock().unwrap() += 1;
        Ok(match self.fault {
            Fault::CountsFromZero => index - 1,
            Fault::CountsTheSession => *self.counted.lock().unwrap(),
            _ => index,
        })
    }

    async fn append_all(
        &self,
        session: &str,
        stream: &str,
        events: EventBatch,
    ) -> Result<Vec<u64>> {
        let mut events: Vec<_> = events.iter().collect();
        match self.fault {
            Fault::AddsTheFirstAlone => events.truncate(1),
            Fault::AddsBackwards => events.reverse(),
            Fault::BeginsWithNothing if events.is_empty() => {
                self.store.append(session, stream, Bytes::new()).await?;
            }
            _ => {}
        }
        let mut indexes = Vec::new();
        for data in events {
            match self.append(session, stream, data).await {
                Ok(index) => indexes.push(index),
                Err(_) if self.has(Fault::AddsAfterTheEnd) => {}
                Err(error) => return Err(error),
            }
            tokio::task::yield_now().await;
        }
        let first = indexes.first().copied().unwrap_or(1);
        let last = indexes.last().copied().unwrap_or(0);
        Ok(match self.fault {
            Fault::TellsTheLastIndex => vec![last; indexes.len()],
            Fault::SeesNoGaps => (first..).take(indexes.len()).collect(),
            _ => indexes,
        })
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

    async fn end(&self, session: &str, stream: &str) -> Result<()> {
        let session = self.session(session);
        if self.has(Fault::EndsAll) {
            for name in ["a", "b"] {
                self.store.end(session, name).await?;
            }
        }
        self.store.end(session, self.stream(stream)).await
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

#[tokio::test]
async fn broken_stores_of_events_break_the_contract() {
    let faults = [
        (Fault::CountsFromZero, "counted from 1"),
        (Fault::CountsTheSession, "counted from 1"),
        (Fault::MixesSessions, "another one's streams"),
        (Fault::MatchesPrefixes, "another one's streams"),
        (Fault::Reverses, "in order"),
        (Fault::IgnoresMax, "no more than max"),
        (Fault::IgnoresTheIndex, "in order"),
        (Fault::DropsEmptyOnes, "as it was"),
        (Fault::NothingIsLost, "is lost"),
        (Fault::NoEnd, "its end is told"),
        (Fault::EndsTooEarly, "with the last of it"),
        (Fault::TakesMoreAfterTheEnd, "takes no more events"),
        (Fault::EndsAll, "ends by itself alone"),
        (Fault::ForgetsNothing, "was forgotten"),
        (Fault::ForgetsAll, "another one's streams"),
        (Fault::Races, "an index each"),
        (Fault::AddsTheFirstAlone, "counted like others"),
        (Fault::AddsBackwards, "given in order"),
        (Fault::TellsTheLastIndex, "counted like others"),
        (Fault::AddsAfterTheEnd, "takes no more events"),
        (Fault::BeginsWithNothing, "begin no stream"),
        (Fault::SeesNoGaps, "added together, in their order"),
    ];
    for (fault, rule) in faults {
        let broken = event_store_contract(|| async {
            Broken {
                store: MemoryEventStore::new(),
                fault,
                sessions: Mutex::default(),
                counted: Mutex::default(),
            }
        });
        let error = broken.await.expect_err(&format!("{fault:?} is not seen"));
        assert!(error.message().contains(rule), "{fault:?}: {error}");
    }
}

/// What can be wrong with a store of sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    KnowsAnyId,
    OneForAll,
    NoPrincipal,
    NoLogLevel,
    NoSubscriptions,
    KeepsTheFirst,
    Merges,
    LoadsOnce,
    RemovesNothing,
    RemovesAll,
    FailsToRemoveTwice,
}

struct Lossy {
    store: MemorySessionStore,
    loss: Loss,
    ids: Mutex<Vec<String>>,
}

impl Lossy {
    fn has(&self, loss: Loss) -> bool {
        self.loss == loss
    }
}

impl SessionStore for Lossy {
    async fn save(&self, id: &str, mut record: SessionRecord) -> Result<()> {
        let before = self.store.load(id).await?;
        match (self.loss, before) {
            (Loss::NoPrincipal, _) => record.principal = None,
            (Loss::NoLogLevel, _) => record.log_level = None,
            (Loss::NoSubscriptions, _) => record.subscribed.clear(),
            (Loss::KeepsTheFirst, Some(before)) => record = before,
            (Loss::Merges, Some(before)) => record.subscribed.extend(before.subscribed),
            _ => {}
        }
        self.ids.lock().unwrap().push(id.to_owned());
        let id = if self.has(Loss::OneForAll) { "x" } else { id };
        self.store.save(id, record).await
    }

    async fn load(&self, id: &str) -> Result<Option<SessionRecord>> {
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

    async fn remove(&self, id: &str) -> Result<()> {
        if self.has(Loss::RemovesNothing) {
            return Ok(());
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

#[tokio::test]
async fn broken_stores_of_sessions_break_the_contract() {
    let losses = [
        (Loss::KnowsAnyId, "was not saved"),
        (Loss::OneForAll, "was not saved"),
        (Loss::NoPrincipal, "as it was saved"),
        (Loss::NoLogLevel, "as it was saved"),
        (Loss::NoSubscriptions, "as it was saved"),
        (Loss::KeepsTheFirst, "takes the place"),
        (Loss::Merges, "takes the place"),
        (Loss::LoadsOnce, "as it was saved"),
        (Loss::RemovesNothing, "was removed"),
        (Loss::RemovesAll, "one at a time"),
        (Loss::FailsToRemoveTwice, "no such session to remove"),
    ];
    for (loss, rule) in losses {
        let broken = session_store_contract(|| async {
            Lossy {
                store: MemorySessionStore::new(),
                loss,
                ids: Mutex::default(),
            }
        });
        let error = broken.await.expect_err(&format!("{loss:?} is not seen"));
        assert!(error.message().contains(rule), "{loss:?}: {error}");
    }
}
