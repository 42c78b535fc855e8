//! Follows a stream that another node writes: reads it from the store, and ends it if that node is gone.

use std::time::Duration;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use oxmcp_protocol::{
    ErrorObject, RequestId,
    internal::{answered_ids, write_error},
};
use serde_json::json;
use tokio::{
    select,
    time::{Instant, sleep, sleep_until},
};

use super::{
    leased::{LEASE, RETRY, changed},
    records::{Record, find_back},
};
use crate::{
    error::{Error, Result},
    http::server::sessions::{FollowedStream, REPLAYED, StreamKey, encode, log},
    store::{ClaimMode, EventBatch, Lease, Replay, StreamWrite},
};

/// The interval for checking that the node that writes a silent stream still exists.
const LOOK: Duration = Duration::from_millis(800);
/// The time for which a store may fail before the client must reconnect.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a request stream that another node writes.
pub(crate) struct Follower {
    place: StreamKey,
    /// Whether events without data are sent.
    has_empty: bool,
    /// The index of the last event that the client has seen.
    seen: u64,
    /// The epoch of the lease that this node has taken, if that of the writer has expired.
    epoch: Option<u64>,
    has_ended: bool,
    /// The time of the next check for the writer.
    look: Instant,
    /// Whether the last wait reported a change, without an event read since then.
    was_told: bool,
    failing_since: Option<Instant>,
}

impl Follower {
    pub(crate) fn new(place: StreamKey, has_empty: bool, seen: u64) -> Self {
        Self {
            place,
            has_empty,
            seen,
            epoch: None,
            has_ended: false,
            // Immediately: the node may be long gone, and this node may soon shut down.
            look: Instant::now(),
            was_told: false,
            failing_since: None,
        }
    }

    async fn next_events(&mut self) -> Option<Vec<u8>> {
        while !self.has_ended {
            match self.place.after(self.seen, REPLAYED).await {
                Ok(Replay::Events { events, ended }) => {
                    self.failing_since = None;
                    self.has_ended = ended;
                    if !events.is_empty() {
                        self.was_told = false;
                        self.look = Instant::now() + LOOK;
                        let stream = &self.place.stream;
                        let (seen, has_empty) = (self.seen, self.has_empty);
                        self.seen += events.len() as u64;
                        return Some(encode(stream, seen, &events, has_empty, |_, _| true));
                    }
                    if !ended {
                        self.wait_for_events().await?;
                    }
                }
                Ok(Replay::Lost) => return None,
                Err(error) => self.tolerate_store_error(error).await?,
            }
        }
        None
    }

    /// Waits for more events, or ends the stream if its writer is gone.
    async fn wait_for_events(&mut self) -> Option<()> {
        if let Some(epoch) = self.epoch {
            // Events that the writer stored before this node took the lease have been sent by now.
            match self.end_lost(epoch).await {
                Ok(true) => {}
                Ok(false) => self.epoch = None,
                Err(error) => self.tolerate_store_error(error).await?,
            }
            return Some(());
        }
        select! {
            biased;
            () = changed(&self.place, self.seen, self.was_told) => {
                self.was_told = true;
                return Some(());
            }
            () = sleep_until(self.look) => {}
        }
        self.look = Instant::now() + LOOK;
        match self.place.claim(ClaimMode::IfFree, LEASE).await {
            Ok(epoch) => self.epoch = epoch,
            Err(error) => self.tolerate_store_error(error).await?,
        }
        Some(())
    }

    /// Tolerates failures of the store for a while. `None` when they have lasted too long.
    async fn tolerate_store_error(&mut self, error: Error) -> Option<()> {
        log(Err(error));
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= PATIENCE {
            return None;
        }
        sleep(RETRY).await;
        Some(())
    }

    /// Ends the stream, with an error for each request without a response in it. Returns false if another node has taken it.
    async fn end_lost(&self, epoch: u64) -> Result<bool> {
        let mut end = StreamWrite::default().ending();
        end.lease = Some(Lease::new(epoch, LEASE));
        let answered: Vec<_> = match self.event(self.seen).await? {
            Some(last) => answered_ids(&last).collect(),
            None => Vec::new(),
        };
        match self.requests().await? {
            Some(Record::Request(id)) if !answered.contains(&id) => {
                let mut line = Vec::new();
                write_error(&mut line, Some(&id), &lost());
                end.events = EventBatch::of_lines(&line);
            }
            Some(Record::Batch(ids)) if answered.is_empty() && !ids.is_empty() => {
                end.events = EventBatch::of_lines(&batch(&ids));
            }
            Some(_) => {}
            None => tracing::warn!(
                "ending the stream of a lost node without a response: the store has evicted its beginning"
            ),
        }
        tracing::debug!("ending the stream of a lost node");
        Ok(self.place.append(end).await?.is_some())
    }

    /// The requests that the stream answers, from the record that the writer stores first, and repeats.
    async fn requests(&self) -> Result<Option<Record>> {
        if let Some(first) = self.event(1).await? {
            return Ok(Record::read(&first));
        }
        let newest = find_back(&self.place, self.seen, |record| match record {
            Record::Request(_) | Record::Batch(_) => Some(record),
            Record::Opened | Record::Sent(_) => None,
        });
        Ok(newest.await?.0)
    }

    /// The event with this index, if it is stored.
    async fn event(&self, index: u64) -> Result<Option<Bytes>> {
        let before = index.saturating_sub(1);
        Ok(match self.place.after(before, 1).await? {
            Replay::Events { events, .. } => events.into_iter().next(),
            Replay::Lost => None,
        })
    }
}

impl FollowedStream for Follower {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(self.next_events())
    }

    fn restart(&mut self, seen: u64) {
        self.seen = seen;
        self.has_ended = false;
    }
}

/// The error for a client whose request was served by a node that is gone.
fn lost() -> ErrorObject {
    let error = Error::internal(
        "lost the node that served the request; the request may have been processed, so retry only if it is idempotent",
    );
    ErrorObject::from(&error.with_data(json!({"reason": "lost"})))
}

/// The errors for the requests of a batch, as a line.
fn batch(ids: &[RequestId]) -> Vec<u8> {
    let mut line = Vec::new();
    for id in ids {
        line.push(if line.is_empty() { b'[' } else { b',' });
        write_error(&mut line, Some(id), &lost());
        line.pop();
    }
    line.extend_from_slice(b"]\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_errors_form_one_message() {
        let ids = [RequestId::Number(1), RequestId::from("ü\"")];
        let line = batch(&ids);
        let errors: Vec<serde_json::Value> = serde_json::from_slice(&line).unwrap();
        assert_eq!(errors[1]["id"], "ü\"");
        for error in &errors {
            assert_eq!(error["error"]["code"], -32603);
            assert_eq!(error["error"]["data"]["reason"], "lost");
        }
        assert_eq!(answered_ids(&line).collect::<Vec<_>>(), ids);
    }
}
