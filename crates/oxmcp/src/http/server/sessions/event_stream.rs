//! What sends on one stream of a session.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use memchr::memchr_iter;
use tokio::{select, time::sleep};

use crate::{
    http::server::{
        events::{COMMENT, KEEP_ALIVE, Writer, encode, messages, parts},
        kept,
        pipe::Sender,
        session::{InUse, Session, log},
        streams::{Purpose, REPLAYED, Reader, Registered},
    },
    session::{Connection, Hearing, Reply},
    store::{AnyEventStore, EventBatch, Replay},
};

/// How long a reader may take for each part once the session has ended: who reads nothing must not keep it.
const FLUSH: Duration = Duration::from_secs(1);

/// What sends on one stream.
pub(super) struct Pump {
    pub(super) name: Arc<str>,
    pub(super) purpose: Purpose,
    pub(super) connection: Arc<Connection>,
    pub(super) store: Option<Arc<dyn AnyEventStore>>,
    pub(super) readers: Registered,
    /// Whether new readers still come here.
    pub(super) is_registered: bool,
    /// Who reads it. Nobody, while the client is away.
    pub(super) sink: Option<Sender<Bytes>>,
    /// The index of the last event that who reads it has, where what follows is to be sent again.
    pub(super) pending: Option<u64>,
    pub(super) buffer: Vec<u8>,
    #[expect(dead_code, reason = "it is heard for as long as it is here")]
    pub(super) hearing: Option<Hearing>,
    /// Whether the session is another once it has sent all.
    pub(super) saves: bool,
    /// The session, which lasts for as long as this is here.
    pub(super) session: InUse,
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

/// What comes after something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    /// All was sent.
    End,
    /// Nobody reads any more.
    Stop,
}

impl Pump {
    /// Sends until there is no more to send, or for what belongs to no request, nobody reads any more.
    ///
    /// What it does now and then is in boxes: most streams are silent, and there may be thousands.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has its arguments in it twice"
    )]
    pub(super) fn run(mut self, mut first: Option<Box<Reply>>) -> impl Future<Output = ()> + Send {
        async move {
            let mut then = Box::pin(self.open(first.take())).await;
            while then == Then::GoOn {
                let todo = self.next().await;
                then = Box::pin(self.act(todo)).await;
            }
            if then == Then::End {
                Box::pin(self.end()).await;
            }
        }
    }

    /// Sends what comes before the first message, and that where it was taken already.
    async fn open(&mut self, first: Option<Box<Reply>>) -> Then {
        if self.pending.is_none() {
            let is_primed = self.prime().await;
            // The head of the response must not wait for the first message.
            if !is_primed && self.purpose == Purpose::Standing {
                self.hand(COMMENT.into()).await;
            }
        }
        self.replay().await;
        match first {
            Some(reply) => self.act(Todo::Send(*reply)).await,
            None => Then::GoOn,
        }
    }

    async fn act(&mut self, todo: Todo) -> Then {
        match todo {
            Todo::Send(reply) => {
                self.send().await;
                match reply {
                    Reply::More => {}
                    Reply::Part(retry) => self.part(retry).await,
                    Reply::Last(_) => return Then::End,
                }
            }
            Todo::Replay(reader) => self.turn_to(reader),
            Todo::Comment => self.hand(COMMENT.into()).await,
            Todo::Gone if self.purpose == Purpose::Standing => {
                if self.leave() {
                    return Then::Stop;
                }
            }
            Todo::Gone => self.lose(),
        }
        self.replay().await;
        Then::GoOn
    }

    /// All was sent.
    async fn end(&mut self) {
        if self.saves {
            kept::begin_save(&self.session);
        }
        // Who comes before it has left gets the end of the stream here, and who comes later from the store.
        loop {
            self.replay().await;
            if self.leave() {
                break;
            }
        }
        if self.purpose == Purpose::Request
            && let Some(store) = &self.store
        {
            log(store.end(self.session.id(), &self.name).await);
        }
    }

    async fn next(&mut self) -> Todo {
        select! {
            biased;
            Some(reader) = self.readers.next() => Todo::Replay(reader),
            () = gone(self.purpose, self.sink.as_ref()) => Todo::Gone,
            reply = self.connection.outbox.reply(&mut self.buffer) => Todo::Send(reply),
            () = sleep(KEEP_ALIVE), if self.sink.is_some() => Todo::Comment,
        }
    }

    /// Sends what was taken from the outbox.
    async fn send(&mut self) {
        let taken = std::mem::take(&mut self.buffer);
        let out = match &self.store {
            Some(store) => self.keep(&**store, &taken).await,
            None => {
                let mut out = Vec::new();
                encode(&mut out, &taken);
                out
            }
        };
        self.buffer = taken;
        self.buffer.clear();
        self.hand(out).await;
    }

    /// Keeps messages, and makes them events with the ids that they have got.
    async fn keep(&self, store: &dyn AnyEventStore, lines: &[u8]) -> Vec<u8> {
        let count = memchr_iter(b'\n', lines).count();
        let mut out = Writer::new(&self.name, count, lines.len());
        for part in parts(lines) {
            let batch = EventBatch::of_lines(part);
            let kept = store.append_all(self.session.id(), &self.name, batch);
            let mut indexes = kept.await.unwrap_or_default().into_iter();
            for message in messages(part) {
                let index = match indexes.next() {
                    // What cannot be kept with the others is tried alone: it need not be that all of it is refused.
                    None => self.keep_one(store, message).await,
                    index => index,
                };
                out.event(index, message);
            }
        }
        out.finish()
    }

    async fn keep_one(&self, store: &dyn AnyEventStore, data: &[u8]) -> Option<u64> {
        let data = Bytes::copy_from_slice(data);
        match store.append(self.session.id(), &self.name, data).await {
            Ok(index) => Some(index),
            Err(error) => {
                tracing::warn!(%error, "an event is not kept: the client cannot ask for it again");
                None
            }
        }
    }

    /// Keeps an event that is nothing but an index to come back with.
    async fn mark(&self) -> Option<u64> {
        let store = self.store.as_ref()?;
        self.keep_one(&**store, b"").await
    }

    /// Gives the client an id to come back with, before there is anything to send, if the revision of the session knows of
    /// it. Without one it would be told that its stream is read, for as long as nobody has noticed that its connection broke.
    async fn prime(&mut self) -> bool {
        let polls = self.session.revision().is_some_and(|it| it.has_polling());
        if polls && let Some(index) = self.mark().await {
            let mut out = Writer::new(&self.name, 1, 0);
            out.event(Some(index), b"");
            self.hand(out.finish()).await;
            return true;
        }
        false
    }

    /// Ends the stream for now: the client comes back for the rest.
    async fn part(&mut self, retry: Duration) {
        if let Some(index) = self.mark().await {
            let mut out = Writer::new(&self.name, 1, 0);
            out.retry(index, retry);
            self.hand(out.finish()).await;
            // Who has just come again comes for the rest.
            if self.pending.is_none() {
                self.sink = None;
            }
        }
    }

    /// From here on it is read by another, who has not seen all of it.
    fn turn_to(&mut self, reader: Reader) {
        self.sink = Some(reader.sink);
        self.pending = Some(reader.seen);
    }

    /// Lets no new reader come here any more, unless one has come already.
    fn leave(&mut self) -> bool {
        if let Some(reader) = self.session.streams.leave(&self.name, &self.readers) {
            self.turn_to(reader);
            return false;
        }
        self.is_registered = false;
        true
    }

    /// Nobody reads it any more.
    fn lose(&mut self) {
        self.sink = None;
        self.pending = None;
    }

    /// Gives a new reader what it has not seen, and who comes meanwhile what that one has not.
    async fn replay(&mut self) {
        let Some(store) = self.store.clone() else {
            return;
        };
        while let Some(mut seen) = self.pending {
            let found = store
                .after(self.session.id(), &self.name, seen, REPLAYED)
                .await;
            let events = match found {
                Ok(Replay::Events { events, .. }) => events,
                Ok(Replay::Lost) => return self.lose(),
                Err(error) => {
                    log(Err(error));
                    return self.lose();
                }
            };
            if events.is_empty() {
                self.pending = None;
                return;
            }
            let out = replayed(&self.name, &mut seen, &events);
            self.pending = Some(seen);
            self.hand(out).await;
        }
    }

    /// Hands a part of the stream to its reader. One that is slow holds up this stream alone; one that comes again is not
    /// made to wait for itself: it gets nothing yet, but by [`replay`](Self::replay) all that it has not seen.
    async fn hand(&mut self, out: Vec<u8>) {
        let Some(sink) = self.sink.as_ref().filter(|_| !out.is_empty()) else {
            return;
        };
        select! {
            biased;
            is_read = sink.send(out.into()) => {
                if !is_read {
                    self.lose();
                }
            }
            Some(reader) = self.readers.next() => self.turn_to(reader),
            () = overdue(&self.session) => self.lose(),
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // Once it has left, the name may be that of another.
        if self.is_registered {
            self.session.streams.remove(&self.name);
        }
        if !Arc::ptr_eq(&self.connection, self.session.connection()) {
            self.connection.outbox.close();
        }
    }
}

/// Waits until whoever still reads a stream of the session has had the time for it.
async fn overdue(session: &Session) {
    session.connection().ended().await;
    sleep(FLUSH).await;
}

/// Waits until nobody reads any more, where somebody does or must.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has its arguments in it twice"
)]
fn gone(purpose: Purpose, sink: Option<&Sender<Bytes>>) -> impl Future<Output = ()> {
    async move {
        match (sink, purpose) {
            (Some(sink), _) => sink.unread().await,
            (None, Purpose::Standing) => {}
            (None, Purpose::Request) => std::future::pending().await,
        }
    }
}

/// Events that are sent again. `seen` counts them.
pub(super) fn replayed(stream: &str, seen: &mut u64, events: &[Bytes]) -> Vec<u8> {
    let length = events.iter().map(Bytes::len).sum();
    let mut out = Writer::new(stream, events.len(), length);
    for data in events {
        *seen += 1;
        out.event(Some(*seen), data);
    }
    out.finish()
}
