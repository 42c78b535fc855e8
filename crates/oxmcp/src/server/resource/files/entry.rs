//! Directory entries, and the reasons for refusing a file, for the file systems of all platforms.

use std::io;

/// The reason for refusing a file.
#[derive(Debug)]
pub(crate) enum Refused {
    NotFound,
    /// It is not a regular file, for this reason.
    NoFile(&'static str),
    /// It exceeds the size limit.
    TooLong,
    Io(io::Error),
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File { size: u64 },
    Directory,
    Other,
}

impl From<io::Error> for Refused {
    /// Treats a name that cannot be resolved as not found, in particular a symbolic link, which is not followed.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            _ if is_link(&error) => Self::NotFound,
            // No file can have this name.
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
