//! The standard streams as non-blocking descriptors, so that no message waits for a thread to read or write it.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream as StdUnixStream},
};

use tokio::net::{UnixStream, unix::pipe};

/// The standard streams, by their kind.
#[derive(Debug)]
pub enum Stdio {
    /// Two pipes, which is what most clients give a server.
    Pipes(pipe::Receiver, pipe::Sender),
    /// A socket each, which is what Node gives.
    Sockets(UnixStream, UnixStream),
    /// Files or a terminal: tokio's own streams, on blocking threads.
    Blocking(tokio::io::Stdin, tokio::io::Stdout),
}

/// Detects the kind of the standard streams, and opens them accordingly.
#[must_use]
pub fn stdio() -> Stdio {
    // Opened anew, the pipes get new open file descriptions, so that the non-blocking mode affects no other process.
    let pipes = pipe::OpenOptions::new()
        .open_receiver("/proc/self/fd/0")
        .and_then(|input| {
            Ok((
                input,
                pipe::OpenOptions::new().open_sender("/proc/self/fd/1")?,
            ))
        });
    if let Ok((input, output)) = pipes {
        return Stdio::Pipes(input, output);
    }
    match socket(io::stdin()).and_then(|input| Ok((input, socket(io::stdout())?))) {
        Ok((input, output)) => Stdio::Sockets(input, output),
        Err(_) => blocking(),
    }
}

/// Tokio's own standard streams, whatever their kind.
#[must_use]
pub fn blocking() -> Stdio {
    Stdio::Blocking(tokio::io::stdin(), tokio::io::stdout())
}

fn socket(stream: impl AsFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(stream.as_fd().try_clone_to_owned()?);
    socket.local_addr()?;
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
