//! The events for the pages: a bounded record, which each page reads from where it is.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

/// The number of events that are kept.
const MAX_EVENTS: usize = 8_000;

/// The bytes of the events that are kept.
const MAX_BYTES: usize = 64 << 20;

/// The number of events that a page gets at once.
const MAX_BATCH: usize = 256;

/// The bytes of events that a page gets at once. A single event may have more.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// The events of all servers, in order. The oldest are dropped; a page that has not read them by then is told so.
pub(crate) struct Events {
    record: Mutex<Record>,
    max_bytes: usize,
    next: watch::Sender<u64>,
    start: Instant,
}

#[derive(Default)]
struct Record {
    /// The number of the first event that is kept.
    first: u64,
    kept: VecDeque<Arc<str>>,
    bytes: usize,
}

/// Events that follow each other.
pub(crate) struct Batch {
    /// The events, each a JSON object.
    pub events: Vec<Arc<str>>,
    /// The number after the last of them.
    pub next: u64,
    /// Whether events before them were dropped unread.
    pub is_gap: bool,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self::bounded(MAX_BYTES)
    }

    fn bounded(max_bytes: usize) -> Self {
        Self {
            record: Mutex::default(),
            max_bytes,
            next: watch::Sender::new(0),
            start: Instant::now(),
        }
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Adds an event of a server, or of none.
    pub(crate) fn push(&self, kind: &str, server: Option<usize>, body: impl Serialize) {
        let at = u64::try_from(self.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut event = json!({"kind": kind, "server": server, "at": at});
        if let (Some(event), Ok(Value::Object(body))) =
            (event.as_object_mut(), serde_json::to_value(body))
        {
            event.extend(body);
        }
        let text: Arc<str> = event.to_string().into();
        let mut record = self.record();
        record.bytes += text.len();
        record.kept.push_back(text);
        while record.kept.len() > MAX_EVENTS || record.bytes > self.max_bytes {
            let Some(oldest) = record.kept.pop_front() else {
                break;
            };
            record.bytes -= oldest.len();
            record.first += 1;
        }
        let next = record.first + record.kept.len() as u64;
        drop(record);
        self.next.send_replace(next);
    }

    /// Waits for events from this number on.
    pub(crate) async fn from(&self, number: u64) -> Batch {
        let mut next = self.next.subscribe();
        // The sender lives as long as this.
        let _ = next.wait_for(|next| *next > number).await;
        let record = self.record();
        let from = number.max(record.first);
        let skipped = usize::try_from(from - record.first).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let fits = |event: &&Arc<str>| {
            let is_first = bytes == 0;
            bytes += event.len();
            is_first || bytes <= MAX_BATCH_BYTES
        };
        let waiting = record.kept.iter().skip(skipped).take(MAX_BATCH);
        let events: Vec<_> = waiting.take_while(fits).cloned().collect();
        Batch {
            next: from + events.len() as u64,
            events,
            is_gap: from > number,
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_bounded_by_number_and_bytes() {
        let events = Events::bounded(4 << 20);
        for number in 0..MAX_EVENTS + 10 {
            events.push("log", Some(0), json!({"number": number}));
        }
        let batch = events.from(0).await;
        assert!(batch.is_gap && batch.events.len() == MAX_BATCH);
        assert_eq!(batch.next, 10 + MAX_BATCH as u64);
        assert!(batch.events[0].contains("\"number\":10"));
        let batch = events.from(batch.next).await;
        assert!(!batch.is_gap);

        let large = "x".repeat(1 << 20);
        for _ in 0..8 {
            events.push("wire", None, json!({"text": large}));
        }
        assert!(events.record().bytes <= 4 << 20);
        assert_eq!(events.record().kept.len(), 3);
        assert_eq!(events.from(0).await.events.len(), 1);
    }

    #[tokio::test]
    async fn readers_wait_for_the_next_event() {
        let events = Arc::new(Events::new());
        let reader = tokio::spawn({
            let events = Arc::clone(&events);
            async move { events.from(0).await.events.len() }
        });
        tokio::task::yield_now().await;
        events.push("log", None, json!({}));
        assert_eq!(reader.await.unwrap(), 1);
    }
}
