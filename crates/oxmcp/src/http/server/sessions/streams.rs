//! The streams of a session: what is sent on them is kept, so that one that breaks can be resumed.
//!
//! Each stream is a task, a `Pump`, which takes from an outbox, keeps what it takes, and hands it to whoever reads the
//! stream just now, if anybody does. A client that lost its connection comes again with the id of the last event that it
//! has seen: the pump, or if it is over the store, gives it the rest.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::Response;

use crate::{
    http::server::{
        ResponseBody, answer,
        open::Entered,
        pipe::{Receiver, Sender, pipe},
        pump::Pump,
        session::Session,
    },
    session::{Connection, Hearing, Reply},
    store::AnyEventStore,
};

/// How many parts of a stream may wait for its reader: behind them the outbox fills, and then whoever sends waits.
const AHEAD: usize = 4;
/// With what the names of streams begin, by their purpose.
const REQUEST: char = 'r';
const STANDING: char = 's';
/// How many events are taken from a store at once.
pub(super) const REPLAYED: usize = 64;

/// The streams of a session that somebody sends on.
#[derive(Default)]
pub(super) struct Streams(Mutex<Live>);

#[derive(Default)]
struct Live {
    /// What the names of its streams have in them, where other nodes have named streams of the session, too.
    apart: Box<str>,
    /// The number of the next stream of a request.
    next: u32,
    /// Those of requests.
    requests: HashMap<Arc<str>, Sender<Reader>>,
    /// The one for what belongs to no request.
    standing: Option<(Arc<str>, Sender<Reader>)>,
}

/// Who wants to read a stream from there on.
pub(super) struct Reader {
    pub(super) sink: Sender<Bytes>,
    /// The index of the last event that it has.
    pub(super) seen: u64,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The messages that belong to one request: it ends with the answer, whether anybody reads it or not.
    Request,
    /// Those that belong to none: it lasts for as long as somebody reads it.
    Standing,
}

impl Streams {
    /// The names of streams have this in them from here on.
    pub(super) fn set_apart(&self, by: &str) {
        self.lock().apart = format!("{by}-").into();
    }

    /// Hands a stream that somebody sends on to a new reader; whoever read it before, or was about to, reads no further.
    /// `None` where nobody sends on it.
    pub(super) fn resume(
        &self,
        name: &str,
        seen: u64,
        counted: &mut Option<Entered>,
    ) -> Option<Response<ResponseBody>> {
        let live = self.lock();
        let pump = live.find(name)?;
        let (sink, body) = response(counted.take());
        pump.put(Reader { sink, seen }).then_some(body)
    }

    /// Whether the stream for what belongs to no request is read.
    pub(super) fn is_standing(&self) -> bool {
        self.lock().standing.is_some()
    }

    fn register(&self, purpose: Purpose, resumed: Option<&str>) -> Option<(Arc<str>, Registered)> {
        let mut live = self.lock();
        if purpose == Purpose::Standing && live.standing.is_some() {
            return None;
        }
        let name = match resumed {
            Some(name) => name.into(),
            None => live.new_name(purpose),
        };
        let (pump, readers) = pipe(1);
        match purpose {
            Purpose::Standing => live.standing = Some((Arc::clone(&name), pump)),
            Purpose::Request => {
                live.requests.insert(Arc::clone(&name), pump);
            }
        }
        Some((name, readers))
    }

    /// Nobody sends on it any more, unless a reader has come to it meanwhile, who is returned.
    pub(super) fn leave(&self, name: &str, readers: &Registered) -> Option<Reader> {
        // While the lock is held no other can come.
        let mut live = self.lock();
        let reader = readers.take();
        if reader.is_none() {
            live.remove(name);
        }
        reader
    }

    /// Nobody sends on it any more, whoever has come to it.
    pub(super) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn find(&self, name: &str) -> Option<&Sender<Reader>> {
        let standing = self.standing.as_ref().filter(|(known, _)| **known == *name);
        let standing = standing.map(|(_, pump)| pump);
        standing.or_else(|| self.requests.get(name))
    }

    fn remove(&mut self, name: &str) {
        self.requests.remove(name);
        if self
            .standing
            .as_ref()
            .is_some_and(|(known, _)| **known == *name)
        {
            self.standing = None;
        }
    }

    fn new_name(&mut self, purpose: Purpose) -> Arc<str> {
        let (initial, number) = match purpose {
            // There is one: who opens it again goes on with it from where it is.
            Purpose::Standing => (STANDING, 0),
            Purpose::Request => {
                let number = self.next;
                self.next = number.wrapping_add(1);
                (REQUEST, number)
            }
        };
        format!("{initial}{}{number}", self.apart).into()
    }
}

pub(super) type Registered = Receiver<Reader>;

/// What a stream with this name was for.
pub(super) fn purpose(name: &str) -> Purpose {
    if name.starts_with(STANDING) {
        Purpose::Standing
    } else {
        Purpose::Request
    }
}

/// A response whose events are what is sent.
fn response(counted: Option<Entered>) -> (Sender<Bytes>, Response<ResponseBody>) {
    let (sink, source) = pipe(AHEAD);
    let sent = Sent {
        source,
        _counted: counted,
    };
    (sink, answer::events(ResponseBody::stream(sent)))
}

/// What is sent on a stream to one of its readers.
struct Sent {
    source: Receiver<Bytes>,
    _counted: Option<Entered>,
}

impl Stream for Sent {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.source.poll(cx)
    }
}

/// What to begin a stream with.
pub(super) struct Opening {
    pub(super) purpose: Purpose,
    /// The stream that it goes on with, and the index of the last event there that the client has seen.
    pub(super) resumed: Option<(Box<str>, u64)>,
    /// What was taken from the outbox already.
    pub(super) taken: Vec<u8>,
    /// Whether that was all.
    pub(super) reply: Option<Reply>,
    /// Its place among the streams of the endpoint.
    pub(super) counted: Option<Entered>,
    /// Whether the session is another once it ends.
    pub(super) saves: bool,
}

/// Begins a stream. `None` where there is one already that this would take the place of.
pub(super) fn begin(
    session: &Arc<Session>,
    connection: Arc<Connection>,
    store: Option<Arc<dyn AnyEventStore>>,
    opening: Opening,
) -> Option<Response<ResponseBody>> {
    let resumed = opening.resumed.as_ref();
    let (name, readers) = session
        .streams
        .register(opening.purpose, resumed.map(|(name, _)| &**name))?;
    let (sink, body) = response(opening.counted);
    let is_standing = opening.purpose == Purpose::Standing;
    let pump = Pump {
        hearing: is_standing.then(|| Hearing::new(&connection)),
        session: session.enter(),
        name,
        purpose: opening.purpose,
        connection,
        store,
        readers,
        is_registered: true,
        sink: Some(sink),
        pending: opening.resumed.map(|(_, seen)| seen),
        buffer: opening.taken,
        saves: opening.saves,
    };
    tokio::spawn(pump.run(opening.reply.map(Box::new)));
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_who_comes_before_a_stream_is_left_is_not_lost() {
        let streams = Streams::default();
        let (name, readers) = streams.register(Purpose::Standing, None).unwrap();
        let resume = |seen| streams.resume(&name, seen, &mut None).is_some();
        assert!(resume(3) && streams.is_standing());
        assert_eq!(streams.leave(&name, &readers).map(|it| it.seen), Some(3));
        assert!(streams.is_standing(), "it goes on for who has come");
        assert!(streams.leave(&name, &readers).is_none());
        assert!(!resume(4) && !streams.is_standing());
        let again = streams.register(Purpose::Standing, Some(&name));
        assert!(again.is_some() && resume(5));
    }
}
