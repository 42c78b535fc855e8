//! The streams of a session: what is sent on them is kept, so that one that breaks can be resumed.
//!
//! Each stream is a task, a `Pump`, which takes from an outbox, keeps what it takes, and hands it to whoever reads the
//! stream just now, if anybody does. A client that lost its connection comes again with the id of the last event that it
//! has seen: the pump, or if it is over the store, gives it the rest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::{
    http::server::{
        ResponseBody, answer,
        events::{COMMENT, KEEP_ALIVE, event, messages, retry_event},
        open::Entered,
        session::{InUse, Numbers, Session, log},
    },
    session::{Connection, Reply},
    store::{AnyEventStore, EventId, Replay},
};

/// How many parts of a stream may wait for its reader: behind them the outbox fills, and then whoever sends waits.
const AHEAD: usize = 4;
/// How many events are taken from a store at once.
pub(super) const REPLAYED: usize = 64;

/// The streams of a session that somebody sends on.
#[derive(Debug, Default)]
pub(super) struct Streams {
    numbers: Numbers,
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    readers: HashMap<Box<str>, mpsc::Sender<Reader>>,
    /// The one for what belongs to no request.
    standing: Option<Box<str>>,
}

/// Who wants to read a stream from there on.
#[derive(Debug)]
struct Reader {
    sink: mpsc::Sender<Bytes>,
    /// The index of the last event that it has.
    seen: u64,
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
    /// Hands a stream that somebody sends on to a new reader; whoever read it before reads no further. `None` where nobody
    /// sends on it.
    pub(super) async fn resume(
        &self,
        name: &str,
        seen: u64,
        counted: &mut Option<Entered>,
    ) -> Option<Response<ResponseBody>> {
        let pump = self.lock().readers.get(name).cloned()?;
        let (sink, body) = channel(counted.take());
        pump.send(Reader { sink, seen }).await.ok()?;
        Some(body)
    }

    /// Whether the stream for what belongs to no request is read.
    pub(super) fn is_standing(&self) -> bool {
        self.lock().standing.is_some()
    }

    fn register(&self, purpose: Purpose, resumed: Option<&str>) -> Option<(Box<str>, Registered)> {
        let mut live = self.lock();
        if purpose == Purpose::Standing && live.standing.is_some() {
            return None;
        }
        let name: Box<str> = match (resumed, purpose) {
            (Some(name), _) => name.into(),
            (None, Purpose::Request) => format!("r{}", self.numbers.next()).into(),
            (None, Purpose::Standing) => format!("s{}", self.numbers.next()).into(),
        };
        let (pump, readers) = mpsc::channel(1);
        live.readers.insert(name.clone(), pump);
        if purpose == Purpose::Standing {
            live.standing = Some(name.clone());
        }
        Some((name, readers))
    }

    fn leave(&self, name: &str) {
        let mut live = self.lock();
        live.readers.remove(name);
        if live.standing.as_deref() == Some(name) {
            live.standing = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Registered = mpsc::Receiver<Reader>;

/// What a stream with this name was for.
pub(super) fn purpose(name: &str) -> Purpose {
    if name.starts_with('s') {
        Purpose::Standing
    } else {
        Purpose::Request
    }
}

/// A response whose events come out of a channel.
fn channel(counted: Option<Entered>) -> (mpsc::Sender<Bytes>, Response<ResponseBody>) {
    let (sink, source) = mpsc::channel(AHEAD);
    let body = stream::unfold((source, counted), |(mut source, counted)| async move {
        let item = source.recv().await?;
        Some((item, (source, counted)))
    });
    (sink, answer::events(ResponseBody::stream(body)))
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
    let (sink, body) = channel(opening.counted);
    let pump = Pump {
        in_use: session.enter(),
        session: Arc::clone(session),
        name,
        purpose: opening.purpose,
        connection,
        store,
        readers,
        sink: Some(sink),
        buffer: opening.taken,
    };
    let seen = opening.resumed.map(|(_, seen)| seen);
    tokio::spawn(pump.run(seen, opening.reply));
    Some(body)
}

/// What sends on one stream.
struct Pump {
    session: Arc<Session>,
    name: Box<str>,
    purpose: Purpose,
    connection: Arc<Connection>,
    store: Option<Arc<dyn AnyEventStore>>,
    readers: Registered,
    /// Who reads it. Nobody, while the client is away.
    sink: Option<mpsc::Sender<Bytes>>,
    buffer: Vec<u8>,
    #[expect(dead_code, reason = "the session lasts for as long as it is here")]
    in_use: InUse,
}

/// What a pump has to do.
enum Todo {
    Send(Reply),
    Replay(Reader),
    /// Nothing has happened for a while.
    Comment,
    /// Whoever read it is gone.
    Gone,
}

impl Pump {
    async fn run(mut self, seen: Option<u64>, mut first: Option<Reply>) {
        match (seen, self.purpose) {
            (Some(seen), _) => self.replay(seen).await,
            (None, Purpose::Request) => self.prime().await,
            // The head of the response must not wait for the first message.
            (None, Purpose::Standing) => self.hand(COMMENT.into()).await,
        }
        loop {
            let todo = match first.take() {
                Some(reply) => Todo::Send(reply),
                None => self.next().await,
            };
            match todo {
                Todo::Send(reply) => {
                    self.send().await;
                    match reply {
                        Reply::More => {}
                        Reply::Part(retry) => self.part(retry).await,
                        Reply::Last => break,
                    }
                }
                Todo::Replay(reader) => {
                    self.sink = Some(reader.sink);
                    self.replay(reader.seen).await;
                }
                Todo::Comment => self.hand(COMMENT.into()).await,
                Todo::Gone if self.purpose == Purpose::Standing => break,
                Todo::Gone => self.sink = None,
            }
        }
        if self.purpose == Purpose::Request
            && let Some(store) = &self.store
        {
            log(store.end(self.session.id(), &self.name).await);
        }
    }

    async fn next(&mut self) -> Todo {
        let comment = Instant::now() + KEEP_ALIVE;
        let sink = self.sink.clone();
        select! {
            biased;
            Some(reader) = self.readers.recv() => Todo::Replay(reader),
            () = gone(self.purpose, sink.as_ref()) => Todo::Gone,
            reply = self.connection.outbox.reply(&mut self.buffer) => Todo::Send(reply),
            () = sleep_until(comment), if sink.is_some() => Todo::Comment,
        }
    }

    /// Sends what was taken from the outbox.
    async fn send(&mut self) {
        let taken = std::mem::take(&mut self.buffer);
        let mut out = Vec::new();
        for message in messages(&taken) {
            let id = self.keep(Bytes::copy_from_slice(message)).await;
            event(&mut out, id.as_deref(), message);
        }
        self.buffer = taken;
        self.buffer.clear();
        self.hand(out).await;
    }

    /// Keeps an event, and returns its id.
    async fn keep(&self, data: Bytes) -> Option<String> {
        let store = self.store.as_ref()?;
        match store.append(self.session.id(), &self.name, data).await {
            Ok(index) => EventId::new(&self.name, index).map(|id| id.to_string()),
            Err(error) => {
                tracing::warn!(%error, "an event is not kept: the client cannot ask for it again");
                None
            }
        }
    }

    /// Gives the client an id to come back with, before there is anything to send.
    async fn prime(&mut self) {
        let polls = self.session.revision().is_some_and(|it| it.has_polling());
        if polls && let Some(id) = self.keep(Bytes::new()).await {
            let mut out = Vec::new();
            event(&mut out, Some(&id), b"");
            self.hand(out).await;
        }
    }

    /// Ends the stream for now: the client comes back for the rest.
    async fn part(&mut self, retry: std::time::Duration) {
        let id = self.keep(Bytes::new()).await;
        if id.is_some() {
            self.hand(retry_event(id.as_deref(), retry)).await;
            self.sink = None;
        }
    }

    /// Gives the new reader what it has not seen.
    async fn replay(&mut self, mut seen: u64) {
        let Some(store) = self.store.clone() else {
            return;
        };
        loop {
            let found = store
                .after(self.session.id(), &self.name, seen, REPLAYED)
                .await;
            let events = match found {
                Ok(Replay::Events { events, .. }) => events,
                Ok(Replay::Lost) => return self.sink = None,
                Err(error) => {
                    log(Err(error));
                    return self.sink = None;
                }
            };
            if events.is_empty() {
                return;
            }
            self.hand(replayed(&self.name, &mut seen, &events)).await;
        }
    }

    /// Hands a part of the stream to its reader. One that is slow holds up this stream alone; one that comes again is not
    /// made to wait for itself.
    async fn hand(&mut self, out: Vec<u8>) {
        let Some(sink) = self.sink.clone().filter(|_| !out.is_empty()) else {
            return;
        };
        select! {
            biased;
            sent = sink.send(out.into()) => {
                if sent.is_err() {
                    self.sink = None;
                }
            }
            Some(reader) = self.readers.recv() => {
                self.sink = Some(reader.sink);
                Box::pin(self.replay(reader.seen)).await;
            }
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.session.streams.leave(&self.name);
        if !Arc::ptr_eq(&self.connection, self.session.connection()) {
            self.connection.outbox.close();
        }
    }
}

/// Waits until nobody reads any more, where somebody does or must.
async fn gone(purpose: Purpose, sink: Option<&mpsc::Sender<Bytes>>) {
    match (sink, purpose) {
        (Some(sink), _) => sink.closed().await,
        (None, Purpose::Standing) => {}
        (None, Purpose::Request) => std::future::pending().await,
    }
}

/// Events that are sent again. `seen` counts them.
pub(super) fn replayed(stream: &str, seen: &mut u64, events: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::new();
    for data in events {
        *seen += 1;
        let id = EventId::new(stream, *seen).map(|id| id.to_string());
        event(&mut out, id.as_deref(), data);
    }
    out
}
