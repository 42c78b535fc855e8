//! Tables of the file, and opening it, which checks that the file belongs to this crate and that no other process has it open.

use std::{fs::OpenOptions, io, path::Path, time::Duration};

use oxmcp::{Error, Result, keys::StateKey};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use crate::failure::{self, Failure};

/// Marks the file as one of this crate, in its header: "oxmc".
const APPLICATION_ID: i32 = 0x6f78_6d63;

/// The version of the tables. It changes when a release that knows only the old ones would misread them.
const VERSION: i32 = 1;

/// The time for which opening waits for a process that is about to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of statements that are kept prepared, which suffices for all.
const STATEMENTS: usize = 96;

/// Commits reach the disk before they are acknowledged (`FULL`), and one process has the file (`EXCLUSIVE`), which also needs no
/// shared memory.
const SETTINGS: &str = "
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = OFF;
";

const TABLES: &str = "
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    owner BLOB,
    record TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    leased_until INTEGER,
    is_over INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_of_owners ON tasks (owner, id);
CREATE INDEX tasks_by_expiry ON tasks (expires);
CREATE INDEX tasks_by_lease ON tasks (leased_until) WHERE is_over = 0;

CREATE TABLE totals (tasks INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER task_added AFTER INSERT ON tasks BEGIN
    UPDATE totals SET tasks = tasks + 1, bytes = bytes + NEW.bytes;
END;
CREATE TRIGGER task_changed AFTER UPDATE OF bytes ON tasks BEGIN
    UPDATE totals SET bytes = bytes - OLD.bytes + NEW.bytes;
END;
CREATE TRIGGER task_removed AFTER DELETE ON tasks BEGIN
    UPDATE totals SET tasks = tasks - 1, bytes = bytes - OLD.bytes;
END;
";

/// The tables that files of earlier releases lack. Releases that do not know them can still use the file.
const LATER_TABLES: &str = "
CREATE TABLE IF NOT EXISTS keys (secret BLOB NOT NULL) STRICT;

CREATE TABLE IF NOT EXISTS sessions (
    id TEXT NOT NULL PRIMARY KEY,
    record TEXT,
    version INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_expiry ON sessions (expires);
CREATE INDEX IF NOT EXISTS sessions_by_principal ON sessions (json_extract(record, '$.principal'))
    WHERE record IS NOT NULL;

CREATE TABLE IF NOT EXISTS streams (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    last INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    leased_until INTEGER NOT NULL DEFAULT 0,
    touched INTEGER NOT NULL,
    events INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session, name)
) STRICT;
CREATE INDEX IF NOT EXISTS streams_by_bytes ON streams (bytes);
CREATE TABLE IF NOT EXISTS events (
    stream INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    added INTEGER NOT NULL,
    PRIMARY KEY (stream, number)
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_age ON events (added);

CREATE TABLE IF NOT EXISTS event_totals (bytes INTEGER NOT NULL) STRICT;
INSERT INTO event_totals SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM event_totals);
CREATE TRIGGER IF NOT EXISTS event_added AFTER INSERT ON events BEGIN
    UPDATE streams SET events = events + 1, bytes = bytes + length(NEW.data) WHERE id = NEW.stream;
    UPDATE event_totals SET bytes = bytes + length(NEW.data);
END;
CREATE TRIGGER IF NOT EXISTS event_removed AFTER DELETE ON events BEGIN
    UPDATE streams SET events = events - 1, bytes = bytes - length(OLD.data) WHERE id = OLD.stream;
    UPDATE event_totals SET bytes = bytes - length(OLD.data);
END;
";

/// Opens the file, or creates it. `now_ms` is the time of the store.
pub(crate) fn open(path: &Path, now_ms: i64) -> Result<Connection> {
    create(path).map_err(|error| {
        failure::io(
            error.kind(),
            format!(
                "could not open {}: {error}; its directory must exist and be writable",
                path.display()
            ),
        )
    })?;
    connect(path, now_ms).map_err(|error| refused(path, error))
}

/// Creates the file so that only its owner can read it, since it contains secrets. SQLite gives the same permissions to the
/// `-wal` file.
fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

enum Refused {
    Sqlite(rusqlite::Error),
    /// A database of another program.
    Foreign,
    /// A database of a newer release, with its version.
    Newer(i32),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn connect(path: &Path, now_ms: i64) -> Result<Connection, Refused> {
    // The path is never read as a URI, and only one thread uses the connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch(SETTINGS)?;
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
    match (application, version, tables) {
        (APPLICATION_ID, VERSION, _) => {}
        (APPLICATION_ID, newer, _) => return Err(Refused::Newer(newer)),
        (_, _, 0) => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
        }
        _ => return Err(Refused::Foreign),
    }
    let transaction = connection.transaction()?;
    transaction.execute_batch(LATER_TABLES)?;
    transaction.execute("DELETE FROM tasks WHERE expires <= ?1", [now_ms])?;
    // The leases were held by the previous process, so all of them end.
    for table in ["tasks", "streams"] {
        let leases = format!("UPDATE {table} SET leased_until = ?1 WHERE leased_until > ?1");
        transaction.execute(&leases, [now_ms])?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// The key of this file, which seals state that clients keep. It is created with the file.
pub(crate) fn key(db: &Connection) -> Result<StateKey, Failure> {
    let kept = db.query_row("SELECT secret FROM keys", [], |row| row.get(0));
    if let Some(secret) = kept.optional()? {
        return Ok(StateKey::new(secret));
    }
    let mut secret = [0; StateKey::LENGTH];
    getrandom::fill(&mut secret).map_err(|error| {
        Error::internal(format!(
            "could not get random bytes from the operating system: {error}"
        ))
    })?;
    db.execute("INSERT INTO keys (secret) VALUES (?1)", [secret])?;
    Ok(StateKey::new(secret))
}

fn refused(path: &Path, why: Refused) -> Error {
    let path = path.display();
    let (kind, message) = match &why {
        Refused::Foreign => (
            io::ErrorKind::InvalidData,
            format!("{path} is a database of another program; use a separate file for the store"),
        ),
        Refused::Newer(version) => (
            io::ErrorKind::InvalidData,
            format!(
                "{path} has version {version}, but this release reads version {VERSION}; use the release that wrote it, or another file"
            ),
        ),
        Refused::Sqlite(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
                io::ErrorKind::ResourceBusy,
                format!(
                    "{path} is in use: only one process can open it, and only once; clone the handle, or use Redis for several processes"
                ),
            ),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => (
                io::ErrorKind::InvalidData,
                format!("{path} is damaged or not a database; use another file"),
            ),
            _ => (
                io::ErrorKind::Other,
                format!(
                    "could not open {path}: {error}; the file and its directory must be writable"
                ),
            ),
        },
    };
    let error = failure::io(kind, message);
    match why {
        Refused::Sqlite(source) => error.with_source(source),
        _ => error,
    }
}
