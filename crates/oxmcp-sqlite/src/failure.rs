//! Conversion of SQLite errors to SDK errors, whose messages say what to do and show none of the data.

use std::io;

use oxmcp::Error;
use rusqlite::ErrorCode;

/// The reason why a job failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    /// The operation is refused; the database is intact.
    Refused(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sqlite(error) => of_sqlite(error),
            Failure::Refused(error) => error,
        }
    }
}

/// An I/O error with this message. Errors that clients get contain no path.
pub(crate) fn io(kind: io::ErrorKind, message: impl Into<String>) -> Error {
    io::Error::new(kind, message.into()).into()
}

/// The error of a database that was open.
pub(crate) fn of_sqlite(error: rusqlite::Error) -> Error {
    let (kind, message) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (
            io::ErrorKind::StorageFull,
            "disk of the store is full; free some space",
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (
            io::ErrorKind::PermissionDenied,
            "cannot write to the file of the store; check its permissions and those of its directory",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
            io::ErrorKind::InvalidData,
            "file of the store is damaged; restore it, or move it away to start with an empty one",
        ),
        _ => (io::ErrorKind::Other, "operation of the SQLite store failed"),
    };
    io(kind, message).with_source(error)
}
