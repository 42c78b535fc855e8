//! The registry of a session's live streams, where a client that reconnects finds its lost stream.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::Response;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::channel::{Receiver, Sender, channel};
use crate::{
    http::server::{
        response::{self, ResponseBody},
        serve::{Activity, EventSource},
    },
    sync::Mutex,
};

/// The number of parts of a stream that may wait for its reader. Beyond it, the outbox fills, and then senders wait.
const READ_AHEAD: usize = 4;
/// The number of events that are read from a store at once.
pub(crate) const REPLAYED: usize = 64;
/// The first letter in the names of request streams.
const REQUEST: char = 'r';
/// The name of the GET stream. A session has only one, which a client that reopens it continues.
pub(crate) const GET_STREAM: &str = "s0";

/// The live streams of a session.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Live>);

#[derive(Default)]
struct Live {
    /// The prefix of stream names, if other nodes have also named streams of the session.
    prefix: Box<str>,
    /// The number of the next request stream.
    next: u32,
    /// The senders that pass a new reader to the task of a stream, by the stream's name.
    by_name: HashMap<Arc<str>, Sender<Reader>>,
}

/// A client that reads a stream from an index on.
pub(crate) struct Reader {
    pub(crate) sink: Sender<Bytes>,
    /// The index of the last event that the client has seen.
    pub(crate) seen: u64,
}

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The messages of one request. The stream ends with the response, with or without a reader.
    Request,
    /// The messages outside requests. The stream lasts as long as it has a reader.
    GetStream,
}

impl Streams {
    /// Sets a prefix for the names of all further streams.
    pub(crate) fn set_prefix(&self, prefix: &str) {
        self.0.lock().prefix = format!("{prefix}-").into();
    }

    /// Gives a live stream a new reader, replacing the previous one. `None` if the stream does not exist.
    pub(crate) fn resume(
        &self,
        name: &str,
        seen: u64,
        counted: &mut Option<TaskTrackerToken>,
    ) -> Option<Response<ResponseBody>> {
        let live = self.0.lock();
        let sender = live.by_name.get(name)?;
        let (sink, body) = stream_response(counted.take());
        sender.put(Reader { sink, seen }).then_some(body)
    }

    /// Whether the GET stream is live.
    pub(crate) fn has_get_stream(&self) -> bool {
        self.0.lock().has_get_stream()
    }

    /// Registers a stream: a new one, or the `resumed` one with this name. `None` if it would be a second GET stream.
    pub(crate) fn register(
        &self,
        purpose: Purpose,
        resumed: Option<&str>,
    ) -> Option<(Arc<str>, Readers)> {
        let mut live = self.0.lock();
        if purpose == Purpose::GetStream && live.has_get_stream() {
            return None;
        }
        let name = match resumed {
            Some(name) => name.into(),
            None => live.new_name(purpose),
        };
        let (sender, readers) = channel(1);
        live.by_name.insert(Arc::clone(&name), sender);
        Some((name, readers))
    }

    /// Unregisters a stream, unless a new reader has arrived, which is returned.
    pub(crate) fn leave(&self, name: &str, readers: &Readers) -> Option<Reader> {
        // While the lock is held, no other reader can arrive.
        let mut live = self.0.lock();
        let reader = readers.take();
        if reader.is_none() {
            live.by_name.remove(name);
        }
        reader
    }

    /// Unregisters a stream, even if a new reader has arrived.
    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().by_name.remove(name);
    }
}

impl Live {
    fn has_get_stream(&self) -> bool {
        self.by_name.contains_key(GET_STREAM)
    }

    fn new_name(&mut self, purpose: Purpose) -> Arc<str> {
        if purpose == Purpose::GetStream {
            return GET_STREAM.into();
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        format!("{REQUEST}{}{number}", self.prefix).into()
    }
}

/// The new readers of a stream.
pub(crate) type Readers = Receiver<Reader>;

/// The purpose of the stream with this name. `None` if no stream of a client can have that name.
pub(crate) fn purpose(name: &str) -> Option<Purpose> {
    if name == GET_STREAM {
        return Some(Purpose::GetStream);
    }
    name.starts_with(REQUEST).then_some(Purpose::Request)
}

/// A response with a stream of the events that are sent to the returned sender.
pub(crate) fn stream_response(
    counted: Option<TaskTrackerToken>,
) -> (Sender<Bytes>, Response<ResponseBody>) {
    let (sink, source) = channel(READ_AHEAD);
    let sent = Sent {
        source,
        _counted: counted,
    };
    (sink, response::events(ResponseBody::events(sent)))
}

/// The part of a stream that is sent to one of its readers.
struct Sent {
    source: Receiver<Bytes>,
    _counted: Option<TaskTrackerToken>,
}

impl Stream for Sent {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.source.poll_frame(cx)
    }
}

/// The task of the stream detects a stalled client. Most streams are silent, and a timer for each would take memory.
impl EventSource for Sent {
    #[cfg(feature = "auth")]
    fn is_within_item(&self) -> bool {
        self.source.is_within_item()
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn on_stall(&self, activity: &Activity) {
        self.source.carried_by(activity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_reader_of_removed_stream_is_not_lost() {
        let streams = Streams::default();
        let (name, readers) = streams.register(Purpose::GetStream, None).unwrap();
        let resume = |seen| streams.resume(&name, seen, &mut None).is_some();
        assert!(resume(3) && streams.has_get_stream());
        assert_eq!(streams.leave(&name, &readers).map(|it| it.seen), Some(3));
        assert!(streams.has_get_stream(), "it continues for the new reader");
        assert!(streams.leave(&name, &readers).is_none());
        assert!(!resume(4) && !streams.has_get_stream());
        let again = streams.register(Purpose::GetStream, Some(&name));
        assert!(again.is_some() && resume(5));
    }
}
