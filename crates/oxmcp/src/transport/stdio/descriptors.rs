//! The descriptors of standard input and output: moving them away from 0 and 1, and detecting their kinds.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net,
    },
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    stdio,
};
use tokio::net::{UnixStream, unix::pipe};

use crate::error::{Error, Result};

/// The lowest number of the private copies. It avoids the standard descriptors, even if one of those is closed.
const FIRST_PRIVATE: i32 = 3;

/// Standard input, by how it can be read.
pub(crate) enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    File(File),
}

/// Standard output, by how it can be written.
pub(crate) enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    File(File),
}

/// Moves standard input and output to private descriptors, and leaves `/dev/null` and standard error in their places.
///
/// Text in the buffer of `println!` goes to standard error, too: it is not part of any message.
pub(crate) fn take() -> Result<(OwnedFd, OwnedFd)> {
    move_away().map_err(|error| {
        let error = io::Error::from(error);
        let message = format!("cannot take over standard input and output: {error}");
        Error::from(io::Error::new(error.kind(), message))
    })
}

fn move_away() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let input = private(stdio::stdin(), &nothing)?;
    let output = private(stdio::stdout(), &nothing)?;
    stdio::dup2_stdin(&nothing)?;
    stdio::dup2_stdout(stdio::stderr()).or_else(|_| stdio::dup2_stdout(&nothing))?;
    Ok((input, output))
}

/// A copy that child processes do not inherit. The copy of a closed descriptor is one of `/dev/null`.
fn private(descriptor: impl AsFd, nothing: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, FIRST_PRIVATE)
        .or_else(|_| rustix::io::fcntl_dupfd_cloexec(nothing, FIRST_PRIVATE))
}

impl Input {
    pub(crate) fn new(descriptor: OwnedFd) -> Result<Self> {
        match kind(&descriptor)? {
            FileType::Fifo => Ok(reopen(&descriptor, OFlags::RDONLY)
                .and_then(pipe::Receiver::from_owned_fd)
                .map_or_else(|_| Self::File(descriptor.into()), Self::Pipe)),
            FileType::Socket => Ok(Self::Socket(socket(descriptor)?)),
            _ => Ok(Self::File(descriptor.into())),
        }
    }
}

impl Output {
    pub(crate) fn new(descriptor: OwnedFd) -> Result<Self> {
        match kind(&descriptor)? {
            FileType::Fifo => Ok(reopen(&descriptor, OFlags::WRONLY)
                .and_then(pipe::Sender::from_owned_fd)
                .map_or_else(|_| Self::File(descriptor.into()), Self::Pipe)),
            FileType::Socket => Ok(Self::Socket(socket(descriptor)?)),
            _ => Ok(Self::File(descriptor.into())),
        }
    }
}

fn kind(descriptor: &OwnedFd) -> Result<FileType> {
    let status = rustix::fs::fstat(descriptor).map_err(io::Error::from)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

/// Reopens the pipe. `O_NONBLOCK` belongs to the open file description, which is shared with every process that inherited the
/// pipe (the shell, a sibling in a pipeline). Reopening creates a separate description, and leaves theirs unchanged.
///
/// Fails without `/proc`, or if the pipe belongs to another user; then a thread does the work.
fn reopen(descriptor: &OwnedFd, access: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn socket(descriptor: OwnedFd) -> io::Result<UnixStream> {
    let socket = net::UnixStream::from(descriptor);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
