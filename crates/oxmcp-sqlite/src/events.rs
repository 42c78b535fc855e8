//! Events in SQLite: a row for each stream, under a hash of its session, and one for each event. Triggers count the events and
//! bytes of a stream.

use std::{pin::pin, time::Duration};

use oxmcp::{
    Error, Result,
    store::{ClaimMode, EventStore, Lease, Replay, StreamWrite, hashed},
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    database::millis,
    failure::Failure,
    store::{Bounds, Sqlite},
};

/// The time for which an open stream is kept without activity, for example while the client's machine sleeps.
const STREAM_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The most streams of a session, including those that have ended and can still be replayed.
const MAX_STREAMS: i64 = 1024;

/// A row of a stream.
struct Stream {
    id: i64,
    last: i64,
    ended: bool,
    epoch: u64,
    leased_until: i64,
}

impl Stream {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            last: row.get(1)?,
            ended: row.get(2)?,
            epoch: row.get(3)?,
            leased_until: row.get(4)?,
        })
    }

    fn find(db: &Connection, session: &str, name: &str) -> rusqlite::Result<Option<Self>> {
        db.prepare_cached(
            "SELECT id, last, ended, epoch, leased_until FROM streams WHERE session = ?1 AND name = ?2",
        )?
        .query_row([session, name], Self::of)
        .optional()
    }

    /// The stream with this name, which is created if there is none.
    fn open(db: &Connection, session: &str, name: &str, now: i64) -> Result<Self, Failure> {
        if let Some(found) = Self::find(db, session, name)? {
            return Ok(found);
        }
        let count: i64 = db
            .prepare_cached("SELECT count(*) FROM streams WHERE session = ?1")?
            .query_row([session], |row| row.get(0))?;
        if count >= MAX_STREAMS && !Self::forget_ended(db, session)? {
            return Err(Error::limit(format!(
                "too many open streams: the session has {MAX_STREAMS}"
            ))
            .into());
        }
        let new = db
            .prepare_cached(
                "INSERT INTO streams (session, name, touched) VALUES (?1, ?2, ?3)
                 RETURNING id, last, ended, epoch, leased_until",
            )?
            .query_row(params![session, name, now], Self::of)?;
        Ok(new)
    }

    /// Removes the oldest stream of a session that has ended. Returns whether there was one.
    fn forget_ended(db: &Connection, session: &str) -> rusqlite::Result<bool> {
        let oldest: Option<i64> = db
            .prepare_cached(
                "DELETE FROM streams WHERE id =
                 (SELECT id FROM streams WHERE session = ?1 AND ended ORDER BY touched, id LIMIT 1)
                 RETURNING id",
            )?
            .query_row([session], |row| row.get(0))
            .optional()?;
        db.prepare_cached("DELETE FROM events WHERE stream = ?1")?
            .execute([oldest])?;
        Ok(oldest.is_some())
    }

    fn save(&self, db: &Connection, now: i64) -> rusqlite::Result<()> {
        db.prepare_cached(
            "UPDATE streams SET last = ?2, ended = ?3, epoch = ?4, leased_until = ?5, touched = ?6
             WHERE id = ?1",
        )?
        .execute(params![
            self.id,
            self.last,
            self.ended,
            self.epoch,
            self.leased_until,
            now
        ])
        .map(drop)
    }
}

/// Removes events that are too old, and streams that are no longer needed.
fn purge(db: &Connection, age: Duration, now: i64) -> rusqlite::Result<()> {
    let oldest = now.saturating_sub(millis(age));
    db.prepare_cached("DELETE FROM events WHERE added <= ?1")?
        .execute([oldest])?;
    let idle = now.saturating_sub(millis(STREAM_AGE.max(age)));
    let sql = "DELETE FROM streams WHERE bytes = 0 AND touched <= iif(ended, ?1, ?2)";
    db.prepare_cached(sql)?.execute([oldest, idle]).map(drop)
}

/// Removes the oldest events of a stream until it is within its bounds, and then those of the largest streams, until all events are
/// within theirs.
fn make_room(db: &Connection, stream: i64, bounds: &Bounds) -> rusqlite::Result<()> {
    let most = |bound: usize| i64::try_from(bound).unwrap_or(i64::MAX);
    let drop_oldest = |stream: i64| {
        db.prepare_cached(
            "DELETE FROM events WHERE stream = ?1
             AND number = (SELECT min(number) FROM events WHERE stream = ?1)",
        )?
        .execute([stream])
    };
    loop {
        let (events, bytes): (i64, i64) = db
            .prepare_cached("SELECT events, bytes FROM streams WHERE id = ?1")?
            .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let fits = events <= most(bounds.stream_events) && bytes <= most(bounds.stream_bytes);
        if fits || drop_oldest(stream)? == 0 {
            break;
        }
    }
    loop {
        let all: i64 = db
            .prepare_cached("SELECT bytes FROM event_totals")?
            .query_row([], |row| row.get(0))?;
        if all <= most(bounds.event_bytes) {
            return Ok(());
        }
        let largest: i64 = db
            .prepare_cached("SELECT id FROM streams ORDER BY bytes DESC LIMIT 1")?
            .query_row([], |row| row.get(0))?;
        if drop_oldest(largest)? == 0 {
            return Ok(());
        }
    }
}

/// Adds events. Returns the index of the last one; `None` if the lease was lost.
fn append(
    db: &Connection,
    (session, name): (&str, &str),
    write: &StreamWrite,
    (bounds, now): (&Bounds, i64),
) -> Result<Option<i64>, Failure> {
    let is_empty = write.events.is_empty();
    purge(db, bounds.event_age, now)?;
    if is_empty && !(write.ends && Stream::find(db, session, name)?.is_some()) {
        return Ok(Some(0));
    }
    let mut stream = Stream::open(db, session, name, now)?;
    if write.lease.is_some_and(|lease| lease.epoch < stream.epoch) {
        return Ok(None);
    }
    if stream.ended && !is_empty {
        return Err(Error::internal("cannot add events: the stream has ended").into());
    }
    for data in write.events.iter() {
        if data.len() > bounds.stream_bytes {
            return Err(Error::limit(format!(
                "event is too large: the limit is {} bytes; raise `max_stream_bytes` of the store",
                bounds.stream_bytes
            ))
            .into());
        }
        stream.last += 1;
        db.prepare_cached(
            "INSERT INTO events (stream, number, data, added) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![stream.id, stream.last, &data[..], now])?;
    }
    if let Some(Lease { epoch, lasts, .. }) = write.lease {
        stream.epoch = epoch;
        stream.leased_until = now.saturating_add(millis(lasts));
    }
    stream.ended |= write.ends;
    stream.save(db, now)?;
    make_room(db, stream.id, bounds)?;
    Ok(Some(stream.last))
}

/// The events after an index, and whether the stream has ended with them; `None` if some are lost.
fn after(
    db: &Connection,
    (session, name): (&str, &str),
    index: i64,
    max: i64,
) -> rusqlite::Result<Option<(Vec<Vec<u8>>, bool)>> {
    let Some(stream) = Stream::find(db, session, name)?.filter(|it| index <= it.last) else {
        return Ok(None);
    };
    let oldest: Option<i64> = db
        .prepare_cached("SELECT min(number) FROM events WHERE stream = ?1")?
        .query_row([stream.id], |row| row.get(0))?;
    if index < stream.last && oldest.is_none_or(|oldest| oldest > index + 1) {
        return Ok(None);
    }
    let mut statement = db.prepare_cached(
        "SELECT data FROM events WHERE stream = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let events = statement.query_map(params![stream.id, index, max], |row| row.get(0))?;
    let events: Vec<Vec<u8>> = events.collect::<rusqlite::Result<_>>()?;
    let left = stream.last - index;
    let all = i64::try_from(events.len()).is_ok_and(|found| found == left);
    Ok(Some((events, stream.ended && all)))
}

impl EventStore for Sqlite {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let (session, stream) = (hashed(session), stream.to_owned());
        let (bounds, now) = (self.bounds, self.database.now_ms());
        let count = write.events.len() as u64;
        let key = session.clone();
        let job = move |db: &Connection| append(db, (&session, &stream), &write, (&bounds, now));
        let last = self.database.change(&key, job).await?;
        let last = last.and_then(|last| u64::try_from(last).ok());
        Ok(last.map(|last| {
            let first = last.saturating_sub(count) + 1;
            (first..first + count).collect()
        }))
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        let (session, stream) = (hashed(session), stream.to_owned());
        let Ok(index) = i64::try_from(index) else {
            return Ok(Replay::Lost);
        };
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let (bounds, now) = (self.bounds, self.database.now_ms());
        let job = move |db: &Connection| {
            purge(db, bounds.event_age, now)?;
            Ok(after(db, (&session, &stream), index, max)?)
        };
        Ok(match self.database.run(job).await? {
            None => Replay::Lost,
            Some((events, ended)) => Replay::Events {
                events: events.into_iter().map(Into::into).collect(),
                ended,
            },
        })
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        let (session, stream) = (hashed(session), stream.to_owned());
        // Enabled before the query, so that a change in between is not missed.
        let mut change = pin!(self.database.changes().of(&session).notified());
        change.as_mut().enable();
        let job = move |db: &Connection| {
            let found = Stream::find(db, &session, &stream)?;
            let last = i64::try_from(index).unwrap_or(i64::MAX);
            Ok(found.is_some_and(|stream| !stream.ended && stream.last == last))
        };
        if self.database.run(job).await? {
            // No other process has the file, so every change wakes the waiters.
            change.await;
        }
        Ok(())
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        let (session, stream) = (hashed(session), stream.to_owned());
        let (bounds, now) = (self.bounds, self.database.now_ms());
        let key = session.clone();
        let job = move |db: &Connection| {
            purge(db, bounds.event_age, now)?;
            let mut stream = Stream::open(db, &session, &stream, now)?;
            if stream.ended || (claim == ClaimMode::IfFree && stream.leased_until > now) {
                return Ok(None);
            }
            stream.epoch += 1;
            stream.leased_until = now.saturating_add(millis(lasts));
            stream.save(db, now)?;
            Ok(Some(stream.epoch))
        };
        self.database.change(&key, job).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        let (session, stream) = (hashed(session), stream.to_owned());
        let now = self.database.now_ms();
        let job = move |db: &Connection| {
            let found = Stream::find(db, &session, &stream)?;
            let Some(mut stream) = found.filter(|it| it.epoch == epoch && !it.ended) else {
                return Ok(false);
            };
            stream.leased_until = now.saturating_add(millis(lasts));
            stream.save(db, now)?;
            Ok(true)
        };
        self.database.run(job).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        let session = hashed(session);
        let key = session.clone();
        let job = move |db: &Connection| {
            db.prepare_cached(
                "DELETE FROM events WHERE stream IN (SELECT id FROM streams WHERE session = ?1)",
            )?
            .execute([&session])?;
            db.prepare_cached("DELETE FROM streams WHERE session = ?1")?
                .execute([&session])?;
            Ok(())
        };
        self.database.change(&key, job).await
    }
}
