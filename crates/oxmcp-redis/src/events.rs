//! Events in Redis: a Redis stream for each stream, and a hash with the state of all streams of a session.

use std::{pin::pin, time::Duration};

use oxmcp::{
    Error, Result,
    store::{ClaimMode, EventStore, Replay, StreamWrite},
};
use tokio::time::timeout;

use crate::{
    changes::RECHECK,
    scripts::{millis, script},
    store::Redis,
};

script!(APPEND, "events/stream.lua", "events/append.lua");
script!(AFTER, "events/stream.lua", "events/after.lua");
script!(WATCH, "events/stream.lua", "events/watch.lua");
script!(CLAIM, "events/stream.lua", "events/claim.lua");
script!(RENEW, "events/stream.lua", "events/renew.lua");
script!(FORGET, "events/stream.lua", "events/forget.lua");

/// The kind of these values.
const EVENT: &str = "event";

/// The values that scripts return in place of an index or epoch.
const LOST_LEASE: i64 = -1;
const ENDED: i64 = -2;
const TOO_MANY: i64 = -3;

/// The most streams of a session, including those that have ended and can still be replayed. Of the ended ones, the oldest are
/// evicted.
const MAX_STREAMS: usize = 1024;

/// The time for which streams are kept if their session has no record here. Other streams are kept as long as their session.
const STREAM_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The time for which a waiter is notified of changes. A waiter that still waits renews it before.
const WATCHED: Duration = RECHECK.saturating_mul(2);

/// The most events that are read at once, even if the caller asks for more, since each may be large.
const MAX_AFTER: usize = 4096;

fn number(number: i64) -> Result<u64> {
    match number {
        ENDED => Err(Error::internal("cannot add events: the stream has ended")),
        TOO_MANY => Err(Error::limit(format!(
            "too many open streams: the session has {MAX_STREAMS}"
        ))),
        _ => u64::try_from(number).map_err(|_| Error::internal("unexpected number from Redis")),
    }
}

impl EventStore for Redis {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let names = self.names.of_session(session);
        let events = names.events(stream);
        let (epoch, lasts) = match write.lease {
            Some(lease) => (lease.epoch.to_string(), millis(lease.lasts)),
            None => (String::new(), 0),
        };
        let mut script = APPEND.keys(&[&names.streams(), &events, &names.record()]);
        script.arg(stream).arg(epoch).arg(lasts);
        script.arg(u8::from(write.ends));
        script
            .arg(self.max_stream_events)
            .arg(self.max_stream_bytes);
        script.arg(MAX_STREAMS).arg(millis(self.max_event_age));
        script.arg(millis(STREAM_AGE.max(self.max_event_age)));
        script.arg(self.names.changes());
        let count = write.events.len() as u64;
        for data in write.events.iter() {
            let kept = self.values.encode(EVENT, &events, &data)?;
            if kept.len() > self.max_stream_bytes {
                return Err(Error::limit(format!(
                    "event is too large: the limit is {} bytes; raise `max_stream_bytes` of the store",
                    self.max_stream_bytes
                )));
            }
            script.arg(kept);
        }
        let last = match self.connection.invoke::<i64>(&script).await? {
            LOST_LEASE => return Ok(None),
            last => number(last)?,
        };
        let first = last.saturating_sub(count) + 1;
        Ok(Some((first..first + count).collect()))
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        let names = self.names.of_session(session);
        let key = names.events(stream);
        let mut script = AFTER.keys(&[&names.streams(), &key]);
        script.arg(stream).arg(index).arg(max.min(MAX_AFTER));
        let found: Option<Vec<Vec<u8>>> = self.connection.invoke(&script).await?;
        let Some((ended, kept)) = found.as_deref().and_then(<[_]>::split_first) else {
            return Ok(Replay::Lost);
        };
        let events = kept.iter().map(|kept| {
            let data = self.values.decode(EVENT, &key, kept)?;
            Ok(data.into())
        });
        Ok(Replay::Events {
            events: events.collect::<Result<_>>()?,
            ended: ended == b"1",
        })
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        let names = self.names.of_session(session);
        let waiter = self.changes.to(&names.events(stream));
        let mut script = WATCH.keys(&[&names.streams()]);
        script.arg(stream).arg(index).arg(millis(WATCHED));
        let mut known = None;
        loop {
            // Enabled before the query, so that a change in between is not missed.
            let mut change = pin!(waiter.changed());
            change.as_mut().enable();
            let epoch: Option<u64> = self.connection.invoke(&script).await?;
            let is_new = known.is_some_and(|known| epoch != Some(known));
            if epoch.is_none() || is_new {
                return Ok(());
            }
            known = epoch;
            // In either case the query is repeated.
            let _ = timeout(RECHECK, change).await;
        }
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        let names = self.names.of_session(session);
        let events = names.events(stream);
        let mut script = CLAIM.keys(&[&names.streams(), &events, &names.record()]);
        script
            .arg(stream)
            .arg(u8::from(claim == ClaimMode::Take))
            .arg(millis(lasts));
        script.arg(MAX_STREAMS).arg(millis(self.max_event_age));
        script.arg(millis(STREAM_AGE.max(self.max_event_age)));
        script.arg(self.names.changes());
        let epoch: Option<i64> = self.connection.invoke(&script).await?;
        epoch.map(number).transpose()
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        let names = self.names.of_session(session);
        let mut script = RENEW.keys(&[&names.streams(), &names.record()]);
        script.arg(stream).arg(epoch).arg(millis(lasts));
        script.arg(millis(self.max_event_age));
        script.arg(millis(STREAM_AGE.max(self.max_event_age)));
        self.connection.invoke(&script).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        let names = self.names.of_session(session);
        let mut script = FORGET.keys(&[&names.streams()]);
        script.arg(names.events("")).arg(self.names.changes());
        self.connection.invoke(&script).await
    }
}
