//! Tasks in SQLite: a row for each task, with its record as JSON.

use std::{pin::pin, time::Duration};

use oxmcp::{
    Error, Result,
    tasks::{StoredTask, TaskRecord, TaskStore},
};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::time::timeout;

use crate::{
    database::millis,
    failure::Failure,
    store::{Bounds, Sqlite},
};

/// A record as a row of the table.
struct Row {
    id: String,
    owner: Option<Vec<u8>>,
    json: String,
    bytes: i64,
    is_over: bool,
    ttl_ms: i64,
}

impl Row {
    fn of(task: &TaskRecord) -> Result<Self> {
        let json = serde_json::to_string(task)
            .map_err(|error| Error::internal("could not serialize a task").with_source(error))?;
        Ok(Self {
            id: task.id.clone(),
            owner: task.owner.clone().map(String::into_bytes),
            bytes: i64::try_from(json.len()).unwrap_or(i64::MAX),
            json,
            is_over: task.is_over(),
            ttl_ms: i64::try_from(task.ttl_ms).unwrap_or(i64::MAX),
        })
    }
}

fn create(db: &Connection, row: &Row, bounds: Bounds, now: i64) -> Result<(), Failure> {
    db.prepare_cached("DELETE FROM tasks WHERE expires <= ?1")?
        .execute([now])?;
    let (tasks, bytes) = totals(db)?;
    let of_owner: i64 = db
        .prepare_cached("SELECT count(*) FROM tasks WHERE owner IS ?1")?
        .query_row([&row.owner], |row| row.get(0))?;
    if !fits(tasks + 1, bounds.tasks) || !fits(of_owner + 1, bounds.tasks_each) {
        return Err(Error::limit("too many tasks; wait until some expire").into());
    }
    check_bytes(bytes.saturating_add(row.bytes), bounds)?;
    let inserted = db
        .prepare_cached(
            "INSERT INTO tasks (id, owner, record, bytes, revision, epoch, is_over, created, expires)
             VALUES (?1, ?2, ?3, ?4, 1, 0, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            row.id,
            row.owner,
            row.json,
            row.bytes,
            row.is_over,
            now,
            now.saturating_add(row.ttl_ms),
        ])?;
    match inserted {
        1 => Ok(()),
        _ => Err(Error::internal("task ID is already in use").into()),
    }
}

fn replace(
    db: &Connection,
    row: &Row,
    id: &str,
    revision: i64,
    (bounds, now): (Bounds, i64),
) -> Result<bool, Failure> {
    let before: Option<i64> = db
        .prepare_cached("SELECT bytes FROM tasks WHERE id = ?1 AND revision = ?2 AND expires > ?3")?
        .query_row(params![id, revision, now], |row| row.get(0))
        .optional()?;
    let Some(before) = before else {
        return Ok(false);
    };
    if row.bytes > before {
        let (_, bytes) = totals(db)?;
        check_bytes(bytes.saturating_add(row.bytes - before), bounds)?;
    }
    // The time to live counts from the creation of the task; the expiry is at most the largest integer.
    db.prepare_cached(
        "UPDATE tasks SET record = ?2, bytes = ?3, is_over = ?4, revision = revision + 1,
         expires = created + min(?5, 9223372036854775807 - created) WHERE id = ?1",
    )?
    .execute(params![id, row.json, row.bytes, row.is_over, row.ttl_ms])?;
    Ok(true)
}

fn totals(db: &Connection) -> rusqlite::Result<(i64, i64)> {
    db.prepare_cached("SELECT tasks, bytes FROM totals")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn fits(count: i64, bound: usize) -> bool {
    usize::try_from(count).is_ok_and(|count| count <= bound)
}

fn check_bytes(bytes: i64, bounds: Bounds) -> Result<(), Failure> {
    match fits(bytes, bounds.task_bytes) {
        true => Ok(()),
        false => Err(Error::limit("task store is full; try again later").into()),
    }
}

fn claim(db: &Connection, id: &str, lease: Duration, now: i64) -> rusqlite::Result<Option<u64>> {
    db.prepare_cached(
        "UPDATE tasks SET epoch = epoch + 1, revision = revision + 1, leased_until = ?2
         WHERE id = ?1 AND expires > ?3 AND (leased_until IS NULL OR leased_until <= ?3) RETURNING epoch",
    )?
    .query_row(params![id, now.saturating_add(millis(lease)), now], |row| row.get(0))
    .optional()
}

fn ids(db: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<Vec<String>, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    let ids = statement.query_map(params, |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// A count as an integer of SQLite, at most the largest one.
fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl TaskStore for Sqlite {
    async fn create(&self, task: TaskRecord) -> Result<()> {
        let (row, bounds) = (Row::of(&task)?, self.bounds);
        let database = &self.database;
        let now = database.now_ms();
        database.run(move |db| create(db, &row, bounds, now)).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredTask>> {
        let (id, database) = (id.to_owned(), &self.database);
        let now = database.now_ms();
        let sql = "SELECT record, revision, epoch FROM tasks WHERE id = ?1 AND expires > ?2";
        let found: Option<(String, u64, u64)> = database
            .run(move |db| {
                let mut statement = db.prepare_cached(sql)?;
                let found = statement.query_row(params![id, now], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                });
                Ok(found.optional()?)
            })
            .await?;
        let Some((json, revision, epoch)) = found else {
            return Ok(None);
        };
        let task = serde_json::from_str(&json).map_err(|error| {
            Error::internal("could not read a task: a newer release may have written it")
                .with_source(error)
        })?;
        Ok(Some(StoredTask::new(task, revision, epoch)))
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> Result<bool> {
        let Ok(revision) = i64::try_from(revision) else {
            return Ok(false);
        };
        let (row, key, database) = (Row::of(&task)?, id.to_owned(), &self.database);
        let now = (self.bounds, database.now_ms());
        database
            .change(id, move |db| replace(db, &row, &key, revision, now))
            .await
    }

    async fn claim(&self, id: &str, lease: Duration) -> Result<Option<u64>> {
        let (key, database) = (id.to_owned(), &self.database);
        let now = database.now_ms();
        database
            .change(id, move |db| Ok(claim(db, &key, lease, now)?))
            .await
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> Result<bool> {
        let Ok(epoch) = i64::try_from(epoch) else {
            return Ok(false);
        };
        let (id, database) = (id.to_owned(), &self.database);
        let now = database.now_ms();
        let until = now.saturating_add(millis(lease));
        let sql = "UPDATE tasks SET leased_until = ?3
                   WHERE id = ?1 AND epoch = ?2 AND leased_until > ?4 AND expires > ?4";
        database
            .run(move |db| {
                let mut statement = db.prepare_cached(sql)?;
                Ok(statement.execute(params![id, epoch, until, now])? == 1)
            })
            .await
    }

    async fn orphans(&self, most: usize) -> Result<Vec<String>> {
        let database = &self.database;
        let now = database.now_ms();
        let sql = "SELECT id FROM tasks WHERE is_over = 0 AND leased_until <= ?1 AND expires > ?1
                   ORDER BY leased_until LIMIT ?2";
        database
            .run(move |db| ids(db, sql, params![now, limit(most)]))
            .await
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<String>> {
        let (owner, after) = (
            owner.map(|it| it.as_bytes().to_vec()),
            after.map(str::to_owned),
        );
        let database = &self.database;
        let now = database.now_ms();
        // No ID is empty, so all IDs are greater than the empty text.
        let sql = "SELECT id FROM tasks WHERE owner IS ?1 AND id > ifnull(?2, '') AND expires > ?3
                   ORDER BY id LIMIT ?4";
        database
            .run(move |db| ids(db, sql, params![owner, after, now, limit(most)]))
            .await
    }

    async fn changed(&self, id: &str, revision: u64) -> Result<()> {
        let database = &self.database;
        let sql = "SELECT revision, expires FROM tasks WHERE id = ?1 AND expires > ?2";
        loop {
            // Enabled before the query, so that a change in between is not missed.
            let mut change = pin!(database.changes().of(id).notified());
            change.as_mut().enable();
            let (key, now) = (id.to_owned(), database.now_ms());
            let found: Option<(u64, i64)> = database
                .run(move |db| {
                    let mut statement = db.prepare_cached(sql)?;
                    let found = statement
                        .query_row(params![key, now], |row| Ok((row.get(0)?, row.get(1)?)));
                    Ok(found.optional()?)
                })
                .await?;
            match found {
                Some((found, expires)) if found == revision => {
                    let left = u64::try_from(expires - now).unwrap_or_default();
                    // In either case the query is repeated.
                    let _ = timeout(Duration::from_millis(left), change).await;
                }
                _ => return Ok(()),
            }
        }
    }
}
