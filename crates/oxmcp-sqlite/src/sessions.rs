//! Sessions in SQLite: a row for each session, with its record as JSON, under a hash of its ID.

use std::time::Duration;

use oxmcp::{
    Error, Result,
    store::{
        CreateOutcome, SessionChange, SessionRecord, SessionStore, StoredSession, TOMBSTONE, hashed,
    },
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{database::millis, failure::Failure, store::Sqlite};

fn encode(record: &SessionRecord, max: usize) -> Result<String, Failure> {
    let json = serde_json::to_string(record)
        .map_err(|error| Error::internal("could not serialize a session").with_source(error))?;
    if json.len() > max {
        return Err(Error::limit(format!(
            "session record is too large: the limit is {max} bytes"
        ))
        .into());
    }
    Ok(json)
}

fn decode(json: &str) -> Result<SessionRecord> {
    serde_json::from_str(json).map_err(|error| {
        Error::internal("could not read a session: a newer release may have written it")
            .with_source(error)
    })
}

/// The record of a session, as JSON, and its version.
fn find(db: &Connection, key: &str, now: i64) -> rusqlite::Result<Option<(String, u64)>> {
    db.prepare_cached(
        "SELECT record, version FROM sessions WHERE id = ?1 AND expires > ?2 AND record IS NOT NULL",
    )?
    .query_row(params![key, now], |row| Ok((row.get(0)?, row.get(1)?)))
    .optional()
}

/// Whether a session exists under this key, even one that has ended.
fn exists(db: &Connection, key: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?
        .exists([key])
}

/// The number of sessions of a principal. The caller has removed expired ones.
fn count_of(db: &Connection, principal: &str) -> rusqlite::Result<usize> {
    db.prepare_cached(
        "SELECT count(*) FROM sessions WHERE record IS NOT NULL AND json_extract(record, '$.principal') = ?1",
    )?
    .query_row([principal], |row| row.get(0))
}

/// Removes expired sessions, and those that would expire first if there are too many.
fn purge(db: &Connection, max: usize, now: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM sessions WHERE expires <= ?1")?
        .execute([now])?;
    let count: i64 = db
        .prepare_cached("SELECT count(*) FROM sessions")?
        .query_row([], |row| row.get(0))?;
    let too_many = count.saturating_sub(i64::try_from(max).unwrap_or(i64::MAX));
    if too_many > 0 {
        db.prepare_cached(
            "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions ORDER BY expires LIMIT ?1)",
        )?
        .execute([too_many])?;
    }
    Ok(())
}

impl SessionStore for Sqlite {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        let (key, bounds, now) = (hashed(id), self.bounds, self.database.now_ms());
        let expires = now.saturating_add(millis(lasts));
        self.database
            .run(move |db| {
                let json = encode(&record, bounds.record_bytes)?;
                purge(db, usize::MAX, now)?;
                if exists(db, &key)? {
                    return Ok(CreateOutcome::Exists);
                }
                if let Some(principal) = &record.principal
                    && count_of(db, principal)? >= max_per_owner
                {
                    return Ok(CreateOutcome::PrincipalFull);
                }
                db.prepare_cached(
                    "INSERT INTO sessions (id, record, version, expires) VALUES (?1, ?2, 1, ?3)",
                )?
                .execute(params![key, json, expires])?;
                purge(db, bounds.sessions, now)?;
                Ok(CreateOutcome::Created)
            })
            .await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        let (key, now) = (hashed(id), self.database.now_ms());
        let found = self
            .database
            .run(move |db| Ok(find(db, &key, now)?))
            .await?;
        let stored = found.map(|(json, version)| Ok(StoredSession::new(decode(&json)?, version)));
        stored.transpose()
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        let (key, bounds, now) = (hashed(id), self.bounds, self.database.now_ms());
        self.database
            .run(move |db| {
                let Some((json, version)) = find(db, &key, now)? else {
                    return Ok(None);
                };
                let mut record = decode(&json)?;
                record.apply(change);
                let json = encode(&record, bounds.record_bytes)?;
                db.prepare_cached(
                    "UPDATE sessions SET record = ?2, version = version + 1 WHERE id = ?1",
                )?
                .execute(params![key, json])?;
                Ok(Some(version + 1))
            })
            .await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        let (key, now) = (hashed(id), self.database.now_ms());
        let expires = now.saturating_add(millis(lasts));
        self.database
            .run(move |db| {
                let version = db
                    .prepare_cached(
                        "UPDATE sessions SET expires = ?2
                         WHERE id = ?1 AND expires > ?3 AND record IS NOT NULL RETURNING version",
                    )?
                    .query_row(params![key, expires, now], |row| row.get(0))
                    .optional()?;
                Ok(version)
            })
            .await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        let (key, bounds, now) = (hashed(id), self.bounds, self.database.now_ms());
        let expires = now.saturating_add(millis(TOMBSTONE));
        self.database
            .run(move |db| {
                db.prepare_cached(
                    "INSERT INTO sessions (id, record, version, expires) VALUES (?1, NULL, 1, ?2)
                     ON CONFLICT DO UPDATE SET record = NULL, expires = ?2",
                )?
                .execute(params![key, expires])?;
                Ok(purge(db, bounds.sessions, now)?)
            })
            .await
    }
}
