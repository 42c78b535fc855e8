//! The log of a request stream that other nodes may send. If this node is gone, they end the stream.

use std::borrow::Cow;

use futures_core::future::BoxFuture;

use super::{leased::Leased, records::Opening};
use crate::http::server::sessions::{
    NodeEvent, Opened, Replayed, StreamKey, StreamLog, StreamWriter, Written,
};

/// The log of a request stream, written under a lease.
pub(crate) struct RequestLog {
    writer: StreamWriter<Leased>,
    /// The record of the answered requests, which is stored before all other events.
    opening: Opening,
}

impl RequestLog {
    /// The log of a new stream, whose first line is the record of the requests.
    pub(crate) fn new(key: StreamKey, has_empty: bool, opening: Vec<u8>) -> Self {
        Self {
            writer: StreamWriter::new(Leased::new(key), has_empty),
            opening: Opening::new(opening),
        }
    }

    async fn write_lines(&mut self, lines: &[u8], ends: bool) -> Written {
        let (events, last) = self.writer.write(lines, ends).await;
        match self.writer.appender.is_fenced() {
            true => Written::Taken,
            false => Written::Events(events, last),
        }
    }
}

impl StreamLog for RequestLog {
    fn open(&mut self, seen: Option<u64>, is_followed: bool) -> BoxFuture<'_, Opened> {
        Box::pin(async move {
            // If a message follows, the opening is stored together with it.
            let is_now = seen.is_none() && !is_followed && self.writer.has_empty;
            let Some(opening) = is_now.then(|| self.opening.before(b"")).flatten() else {
                return Opened::default();
            };
            Opened {
                written: self.write_lines(&opening, false).await,
                ..Opened::default()
            }
        })
    }

    fn write<'a>(&'a mut self, lines: &'a [u8], ends: bool, _: u64) -> BoxFuture<'a, Written> {
        Box::pin(async move {
            let mut lines = Cow::Borrowed(lines);
            if !lines.is_empty()
                && let Some(opening) = self.opening.before(&lines)
            {
                lines.to_mut().splice(0..0, opening);
            }
            self.write_lines(&lines, ends).await
        })
    }

    fn write_empty(&mut self) -> BoxFuture<'_, Option<u64>> {
        Box::pin(self.writer.write_empty())
    }

    fn after(&mut self, seen: u64, _: bool) -> BoxFuture<'_, Option<Replayed>> {
        Box::pin(self.writer.after(seen, |_, _| true))
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        self.writer.appender.stop_renewing();
        Box::pin(self.writer.end())
    }

    fn changed(&mut self, _: u64) -> Option<BoxFuture<'_, NodeEvent>> {
        Some(Box::pin(async {
            self.writer.appender.fenced().await;
            NodeEvent::Taken
        }))
    }
}
