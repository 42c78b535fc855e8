//! Message streams: one module per transport.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[cfg(unix)]
mod boxed;
mod command;
mod io;
mod logging;
mod memory;
#[cfg(unix)]
mod stdio;

use oxmcp::transport::{Frame, ReadHalf};

const TOO_LONG: &str = "<too long>";

fn shown(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Message(message) => String::from_utf8_lossy(message).into_owned(),
        _ => TOO_LONG.to_owned(),
    }
}

/// The next message, or `None` at the end.
async fn next(read: &mut impl ReadHalf) -> Option<String> {
    let frame = read.read().await.unwrap();
    frame.as_ref().map(shown)
}

/// The next message, if it has arrived already.
fn next_now(read: &mut impl ReadHalf) -> Option<String> {
    read.try_read().as_ref().map(shown)
}

/// Every message up to the end, read as a connection reads them.
async fn all(read: &mut impl ReadHalf) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(message) = next(read).await {
        messages.push(message);
        messages.extend(std::iter::from_fn(|| next_now(read)));
    }
    messages
}
