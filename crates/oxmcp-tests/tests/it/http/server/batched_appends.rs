//! Batched appends: events that are sent together are stored together.

use std::{
    collections::HashSet,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use oxmcp::{
    Error, RequestContext, Result, Tool,
    http::StreamableHttp,
    store::{ClaimMode, EventStore, MemoryEventStore, Replay, StreamWrite},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::http::server::{
    legacy::endpoint,
    peer::{Event, Events, Session},
};
use crate::support::calculator;

/// More events than are kept at once.
const STEPS: u32 = 1000;

/// The events of a call that reports its progress without any pause.
async fn burst(session: &Session) -> Vec<Event> {
    let params = json!({"name": "burst", "arguments": {}, "_meta": {"progressToken": "t"}});
    let response = session.call(1, "tools/call", params).await;
    Events::of(response).rest().await
}

fn bursting() -> StreamableHttp {
    let tool = Tool::new("burst", "Report", |cx: RequestContext| async move {
        for step in 1..=STEPS {
            cx.progress(step).await;
        }
        "done"
    });
    endpoint(&calculator().tool(tool))
}

#[tokio::test]
async fn batched_events_can_be_resumed_individually() {
    let session = Session::open(&bursting()).await;
    let events = burst(&session).await;
    assert_eq!(events.len(), STEPS as usize + 2);
    let expected = (1..).map(|index| Some(format!("r0_{index}")));
    assert!(
        events
            .iter()
            .map(|event| event.id.clone())
            .eq(expected.take(events.len()))
    );
    assert_eq!(events[700].data["params"]["progress"], 700.0);
    for seen in [0, 1, 500, STEPS as usize] {
        let id = events[seen].id.as_ref().unwrap();
        let rest = Events::of(session.resume(id).await).rest().await;
        let data = |events: &[Event]| -> Vec<Value> {
            events.iter().map(|event| event.data.clone()).collect()
        };
        assert_eq!(data(&rest), data(&events[seen + 1..]));
    }
}

#[tokio::test]
async fn refused_events_are_sent_without_an_id() {
    let session = Session::open(&bursting().event_store(Picky::default())).await;
    let events = burst(&session).await;
    assert_eq!(events.len(), STEPS as usize + 2);
    let without: Vec<_> = events.iter().filter(|event| event.id.is_none()).collect();
    assert_eq!(without.len(), 1);
    assert_eq!(without[0].data["params"]["progress"], 300.0);
    let last = events.last().unwrap();
    assert_eq!(
        (last.id.as_deref(), &last.data["id"]),
        (Some("r0_1001"), &json!(1))
    );
}

/// A store that refuses one event, and appends the events of a batch one by one.
#[derive(Default)]
struct Picky(MemoryEventStore);

impl EventStore for Picky {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let mut indexes = Vec::new();
        for data in write.events.iter() {
            let message: Value = serde_json::from_slice(&data).unwrap_or_default();
            if message["params"]["progress"] == 300.0 {
                if indexes.is_empty() {
                    return Err(Error::internal("the store does not like it"));
                }
                return Ok(Some(indexes));
            }
            let mut one = StreamWrite::new(data);
            one.lease = write.lease;
            let index = self.0.append(session, stream, one).await?;
            indexes.extend(index.unwrap_or_default());
        }
        Ok(Some(indexes))
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        self.0.after(session, stream, index, max).await
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        self.0.watch(session, stream, index).await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        self.0.claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        self.0.renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        self.0.forget(session).await
    }
}

#[tokio::test(start_paused = true)]
async fn possibly_stored_events_are_not_appended_again() {
    for (is_silent, waits) in [(true, 2), (false, 0)] {
        let store = Forgetful::new(is_silent);
        let session = Session::open(&bursting().event_store(store.clone())).await;
        let begun = Instant::now();
        let events = burst(&session).await;
        assert_eq!(begun.elapsed().as_secs(), waits);
        assert_eq!(events.len(), STEPS as usize + 2);
        assert!(events.iter().any(|event| event.id.is_none()));
        let kept = store.kept.lock().unwrap();
        let distinct: HashSet<_> = kept.iter().collect();
        assert!(kept.len() > 1 && kept.len() == distinct.len());
    }
}

/// A store that keeps the first batch but does not confirm it: the append fails, or never returns.
#[derive(Clone)]
struct Forgetful {
    store: Arc<MemoryEventStore>,
    kept: Arc<Mutex<Vec<Bytes>>>,
    has_lost: Arc<AtomicBool>,
    is_silent: bool,
}

impl Forgetful {
    fn new(is_silent: bool) -> Self {
        Self {
            store: Arc::default(),
            kept: Arc::default(),
            has_lost: Arc::default(),
            is_silent,
        }
    }
}

impl EventStore for Forgetful {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let is_batch = write.events.len() > 1;
        self.kept.lock().unwrap().extend(write.events.iter());
        let indexes = self.store.append(session, stream, write).await;
        if !is_batch || self.has_lost.swap(true, Ordering::Relaxed) {
            return indexes;
        }
        if self.is_silent {
            pending::<()>().await;
        }
        Err(Error::network("the connection to the database failed"))
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        self.store.after(session, stream, index, max).await
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        self.store.watch(session, stream, index).await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        self.store.claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        self.store.renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        self.store.forget(session).await
    }
}
