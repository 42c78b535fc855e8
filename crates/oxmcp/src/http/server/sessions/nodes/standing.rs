//! Standing stream of a session that several nodes have: the node at which its client has opened it last sends it, and the store
//! knows how much of it was sent.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::sync::OwnedMutexGuard;

use super::{
    super::{
        persistence::log,
        stored_events::Record,
        stream_writer::{Place, StreamWriter},
        streams::REPLAYED,
    },
    forward::Forwarder,
};
use crate::{
    error::Result,
    session::task::BoxFuture,
    store::{Claim, Lease, Replay},
};

/// For how long this node has the stream, unless another takes it: nobody waits for the end of that.
const HELD: Duration = Duration::from_secs(60 * 60);

/// The standing stream, at the node that sends it.
pub(in super::super) struct Standing {
    forwarder: Arc<Forwarder>,
    /// What belongs to no request and waits here. `None` until this is the one that takes it.
    waiting: Option<OwnedMutexGuard<Vec<u8>>>,
    /// Whether the stream was taken from whoever had it.
    is_taken: bool,
    /// A wait for what others add, or for another node to take the stream.
    watching: Option<BoxFuture<()>>,
    /// Up to which event the store knows that all were sent.
    marked: u64,
    /// Whether a change was told last, though there was none.
    was_told: bool,
}

impl Standing {
    pub(in super::super) fn new(forwarder: &Arc<Forwarder>) -> Self {
        Self {
            forwarder: Arc::clone(forwarder),
            waiting: None,
            is_taken: false,
            watching: None,
            marked: 0,
            was_told: false,
        }
    }

    /// Takes what belongs to no request and waits here, and all that follows.
    pub(in super::super) async fn take_waiting(&mut self) -> Vec<u8> {
        let mut waiting = self.forwarder.lock().await;
        let taken = std::mem::take(&mut *waiting);
        self.waiting = Some(waiting);
        taken
    }

    pub(in super::super) fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Takes the stream from whoever has it. Returns the index of the last event that its client has seen, or of the last that any
    /// client has taken; `None` where the store does not say.
    pub(in super::super) async fn take(
        &mut self,
        writer: &mut StreamWriter,
        seen: Option<u64>,
    ) -> Option<u64> {
        let found = async {
            let Some(epoch) = writer.place().claim(Claim::Take, HELD).await? else {
                return Ok(None);
            };
            writer.hold(Lease::new(epoch, HELD));
            if seen.is_some() {
                return Ok(seen);
            }
            let opened = writer.write(&Record::Opened.line(), false).await;
            match opened.kept {
                Some((index, _)) => last_sent(writer.place(), index).await.map(Some),
                None => Ok(None),
            }
        };
        let found = found.await.map_err(|error| log(Err(error))).ok().flatten();
        self.is_taken = found.is_some();
        found
    }

    /// Waits until others may have added something after this event, or taken the stream. Cancel safe.
    pub(in super::super) async fn changed(&mut self, place: Option<&Place>, sent: u64) {
        let Some(place) = place.filter(|_| self.is_taken) else {
            return pending().await;
        };
        let watching = self.watching.get_or_insert_with(|| {
            let (place, was_told) = (place.clone(), self.was_told);
            Box::pin(async move { place.changed(sent, was_told).await })
        });
        watching.as_mut().await;
        self.watching = None;
        self.was_told = true;
    }

    /// The last event that was sent is another one.
    pub(in super::super) fn note_sent(&mut self) {
        self.watching = None;
        self.was_told = false;
    }

    /// Whether the store does not know yet that all up to this event were sent.
    pub(in super::super) fn is_unmarked(&self, sent: u64) -> bool {
        self.is_taken && self.marked < sent
    }

    pub(in super::super) fn note_marked(&mut self, sent: u64) {
        self.marked = sent;
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        // What comes from here on is for whoever sends the stream next.
        self.waiting = None;
        self.forwarder.begin();
    }
}

/// The last event before this one that is known to have been sent, or else the one before all that are there.
async fn last_sent(place: &Place, opened: u64) -> Result<u64> {
    let mut from = opened.saturating_sub(1);
    let (mut step, mut grows) = (1, true);
    while from > 0 {
        let start = from.saturating_sub(step);
        let count = usize::try_from(from - start).unwrap_or(REPLAYED);
        match place.after(start, count).await? {
            Replay::Events { events, .. } => {
                let mut newest_first = events.iter().rev();
                let sent = newest_first.find_map(|event| match Record::read(event) {
                    Some(Record::Sent(index)) => Some(index),
                    _ => None,
                });
                if let Some(sent) = sent {
                    return Ok(sent.min(from));
                }
                from = start;
                if grows {
                    step = (step * 2).min(REPLAYED as u64);
                }
            }
            // What is older is gone.
            Replay::Lost if step == 1 => break,
            Replay::Lost => {
                step /= 2;
                grows = false;
            }
        }
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{EventBatch, MemoryEventStore, StreamWrite, any_event_store};

    async fn found(store: MemoryEventStore, before: usize, sent: Option<u64>, after: usize) -> u64 {
        let place = Place {
            store: any_event_store(store),
            session: "a".into(),
            stream: "s0".into(),
        };
        let messages = |count| vec!["{}\n"; count].concat().into_bytes();
        let mark = sent.map_or_else(Vec::new, |sent| Record::Sent(sent).line());
        for lines in [messages(before), mark, messages(after)] {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                let write = StreamWrite::new(EventBatch::of_lines(line));
                place.append(write).await.unwrap();
            }
        }
        let marks = usize::from(sent.is_some());
        let opened = (before + marks + after + 1) as u64;
        last_sent(&place, opened).await.unwrap()
    }

    #[tokio::test]
    async fn the_newest_mark_says_what_was_sent() {
        let store = MemoryEventStore::new;
        for after in [0, 1, 2, 63, 64, 65, 300] {
            assert_eq!(found(store(), 10, Some(10), after).await, 10);
            assert_eq!(found(store(), after, None, 0).await, 0);
        }
        // The mark itself is gone, and what is left was sent to nobody.
        for left in [1, 2, 3, 7, 64, 100] {
            let bounded = store().max_stream_events(left);
            assert_eq!(found(bounded, 10, Some(10), 150).await, 161 - left as u64);
        }
    }
}
