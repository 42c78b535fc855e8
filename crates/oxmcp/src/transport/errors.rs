//! What went wrong with a stream, in words.

use std::io::{self, ErrorKind};

use crate::Error;

/// An error of the stream: that the peer is gone is told apart from all else.
pub(super) fn lost(error: io::Error) -> Error {
    if is_gone(&error) {
        return Error::closed(format!("the connection was lost: {error}")).with_source(error);
    }
    Error::from(error)
}

/// Whether the error says no more than that the peer is not there any more.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof
    )
}
