//! Message streams: one module per transport.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[cfg(unix)]
mod command;
mod io;
mod logging;
mod memory;
#[cfg(unix)]
mod stdio;

use oxmcp::transport::{Frame, ReadHalf};

const TOO_LONG: &str = "<too long>";

/// The next message, `None` at the end.
async fn next(read: &mut impl ReadHalf) -> Option<String> {
    read.read().await.unwrap().map(|frame| match frame {
        Frame::Message(message) => String::from_utf8_lossy(message).into_owned(),
        _ => TOO_LONG.to_owned(),
    })
}

/// Every message up to the end.
async fn all(read: &mut impl ReadHalf) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(message) = next(read).await {
        messages.push(message);
    }
    messages
}
