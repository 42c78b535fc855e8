//! Entry of a directory, and why a file is refused: what the file systems of all platforms have in common.

use std::io;

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum Refused {
    NotFound,
    /// It is something else, which is named.
    NoFile(&'static str),
    /// It is longer than is allowed.
    TooLong,
    Io(io::Error),
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File { size: u64 },
    Directory,
    Other,
}

impl From<io::Error> for Refused {
    /// A name that leads nowhere is as good as not there; above all a symbolic link, which is not followed.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            _ if is_link(&error) => Self::NotFound,
            // A name that no file can have.
            io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => Self::NotFound,
            _ => Self::Io(error),
        }
    }
}

/// Whether a file was not opened because it is a symbolic link.
#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = Errno::from_io_error(error);
    matches!(code, Some(Errno::LOOP | Errno::MLINK))
}

#[cfg(not(unix))]
fn is_link(_error: &io::Error) -> bool {
    false
}
