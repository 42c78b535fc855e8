//! Stream of events of a session: what is sent on it is stored, so that it can be resumed after its connection broke.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use memchr::memchr_iter;
use tokio::{select, time::sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    channel::Sender,
    persistence::log,
    session::{Session, SessionGuard},
    streams::{Purpose, Reader, Readers, stream_response},
};
use crate::{
    error::{Error, Result},
    http::server::{
        endpoint::{Settings, StreamableHttp},
        event_encoding::{COMMENT, EventWriter, KEEP_ALIVE, encode, messages, parts},
        response::{COME_BACK_LATER, ResponseBody},
    },
    session::{
        connection::Connection,
        driver::undriven::{Attached, Reply},
        task::{lazy, spawn},
    },
    store::{AnyEventStore, EventBatch, Replay, StreamWrite},
};

/// How many events are taken from a store at once.
pub(super) const REPLAYED: usize = 64;
/// How long a reader may take for each part once the session has ended: one that reads nothing must not keep it.
const FLUSH: Duration = Duration::from_secs(1);

/// So little may be unread for as long as the stream lasts: an event that is nothing but an id, or a comment.
const LITTLE: usize = 1 << 10;

/// The beginning of a stream.
pub(super) struct StreamStart {
    pub(super) purpose: Purpose,
    /// The stream that it goes on with, and the index of the last event there that the client has seen.
    pub(super) resumed: Option<(Box<str>, u64)>,
    /// Messages that were taken from the outbox already.
    pub(super) taken: Vec<u8>,
    /// What the outbox said of them.
    pub(super) reply: Option<Reply>,
    /// Counts it among the streams of the endpoint.
    pub(super) counted: Option<TaskTrackerToken>,
    /// The endpoint, where the session is saved once it ends.
    pub(super) saves: Option<StreamableHttp>,
}

/// Begins a stream. `None` where there is one already that this would take the place of.
pub(super) fn begin(
    session: &Arc<Session>,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    start: StreamStart,
) -> Option<Response<ResponseBody>> {
    let resumed = start.resumed.as_ref();
    let (name, readers) = session
        .streams
        .register(start.purpose, resumed.map(|(name, _)| &**name))?;
    let (reader, body) = stream_response(start.counted);
    let is_standing = start.purpose == Purpose::Standing;
    let stream = EventStream {
        _hearing: is_standing.then(|| Attached::new(&connection)),
        session: session.enter(),
        name,
        purpose: start.purpose,
        connection,
        settings,
        readers,
        is_registered: true,
        reader: Some(reader),
        replay_after: start.resumed.map(|(_, seen)| seen),
        buffer: start.taken,
        saves: start.saves,
        unread_silences: 0,
        taken: 0,
    };
    spawn(stream.run(start.reply.map(Box::new)));
    Some(body)
}

/// The task of one stream: it takes from an outbox, stores what it takes, and sends it to the reader of the stream, if there is one.
/// A client that has lost its connection comes again with the id of the last event that it has seen: the task, or if it has ended
/// the store, gives it the rest.
struct EventStream {
    name: Arc<str>,
    purpose: Purpose,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    readers: Readers,
    /// Whether new readers still come here.
    is_registered: bool,
    /// Its reader; none while the client is away.
    reader: Option<Sender<Bytes>>,
    /// The index of the last event that the reader has seen, where what follows must be replayed.
    replay_after: Option<u64>,
    buffer: Vec<u8>,
    _hearing: Option<Attached>,
    /// The endpoint, where the session is saved once all is sent.
    saves: Option<StreamableHttp>,
    /// In how many silences in a row the reader took nothing of what there was.
    unread_silences: u32,
    /// How often it had taken something at the last silence.
    taken: u64,
    session: SessionGuard,
}

/// The next thing that a stream must deal with.
enum Input {
    Reply(Reply),
    NewReader(Reader),
    /// Nothing has happened for a while.
    Silence,
    ReaderGone,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Sending,
    /// All was sent.
    Sent,
    /// It is not read any more, and nothing else needs it.
    Abandoned,
}

impl EventStream {
    /// Sends until all is sent, or until a standing stream is not read any more.
    ///
    /// What happens now and then is in boxes: most streams are silent, and there may be thousands.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has its arguments in it twice"
    )]
    pub(super) fn run(mut self, mut first: Option<Box<Reply>>) -> impl Future<Output = ()> + Send {
        async move {
            let mut progress = Box::pin(self.open(first.take())).await;
            while progress == Progress::Sending {
                let input = self.next().await;
                progress = Box::pin(self.handle(input)).await;
            }
            if progress == Progress::Sent {
                Box::pin(self.end()).await;
            }
        }
    }

    /// Sends what comes before the first message, and that where it was taken already.
    async fn open(&mut self, first: Option<Box<Reply>>) -> Progress {
        if self.replay_after.is_none() {
            let has_id = self.send_first_id().await;
            // The head of the response must not wait for the first message.
            if !has_id && self.purpose == Purpose::Standing {
                self.send_to_reader(COMMENT.into()).await;
            }
        }
        self.replay().await;
        match first {
            Some(reply) => self.handle(Input::Reply(*reply)).await,
            None => Progress::Sending,
        }
    }

    async fn handle(&mut self, input: Input) -> Progress {
        match input {
            Input::Reply(reply) => {
                self.send_taken().await;
                match reply {
                    Reply::More => {}
                    Reply::Part(retry) => self.suspend(retry).await,
                    Reply::Last(_) => return Progress::Sent,
                }
            }
            Input::NewReader(reader) => self.switch_to(reader),
            Input::Silence => self.keep_alive().await,
            Input::ReaderGone if self.purpose == Purpose::Standing => {
                if self.leave() {
                    return Progress::Abandoned;
                }
            }
            Input::ReaderGone => self.drop_reader(),
        }
        self.replay().await;
        Progress::Sending
    }

    /// Sends a comment where nothing is unread, and gives up a reader that has not taken anything in many silences.
    async fn keep_alive(&mut self) {
        let reader = self.reader.as_ref();
        let unread = reader.map_or(0, unread);
        let taken = reader.map_or(0, Sender::taken);
        let has_taken = std::mem::replace(&mut self.taken, taken) != taken;
        self.unread_silences = match unread {
            0 => {
                self.send_to_reader(COMMENT.into()).await;
                0
            }
            1..=LITTLE => 0,
            _ if has_taken => 0,
            _ => self.unread_silences.saturating_add(1),
        };
        if KEEP_ALIVE.saturating_mul(self.unread_silences) > self.settings.limits.http.stall {
            self.give_up();
        }
    }

    /// All was sent.
    async fn end(&mut self) {
        if let Some(endpoint) = self.saves.take() {
            endpoint.save(&self.session);
        }
        // A reader that comes before it has left gets the end of the stream here, and one that comes later from the store.
        loop {
            self.replay().await;
            if self.leave() {
                break;
            }
        }
        if self.purpose == Purpose::Request
            && let Some(store) = &self.settings.events
        {
            let end = StreamWrite::default().ending();
            log(store
                .append(self.session.id(), &self.name, end)
                .await
                .map(drop));
        }
        if self.purpose == Purpose::Standing {
            // Another node may go on.
            self.send_to_reader(COME_BACK_LATER.into()).await;
        }
        if let Some(reader) = self.reader.take() {
            let stall = self.settings.limits.http.stall;
            finish(reader, stall, overdue(&self.session)).await;
        }
    }

    async fn next(&mut self) -> Input {
        select! {
            biased;
            Some(reader) = self.readers.next() => Input::NewReader(reader),
            () = disconnected(self.purpose, self.reader.as_ref()) => Input::ReaderGone,
            reply = self.connection.outbox.reply(&mut self.buffer) => Input::Reply(reply),
            () = sleep(KEEP_ALIVE), if self.reader.is_some() => Input::Silence,
        }
    }

    /// Sends what was taken from the outbox.
    async fn send_taken(&mut self) {
        let taken = std::mem::take(&mut self.buffer);
        let out = match &self.settings.events {
            Some(store) => self.store_messages(&**store, &taken).await,
            None => {
                let mut out = Vec::new();
                encode(&mut out, &taken);
                out
            }
        };
        self.buffer = taken;
        self.buffer.clear();
        self.send_to_reader(out).await;
    }

    /// Stores messages, and makes them events with the ids that they have got.
    async fn store_messages(&self, store: &dyn AnyEventStore, lines: &[u8]) -> Vec<u8> {
        let count = memchr_iter(b'\n', lines).count();
        let mut out = EventWriter::new(&self.name, count, lines.len());
        // What the store may have kept is not added again, and the rest does not wait for the store once more.
        let mut answers = true;
        for part in parts(lines) {
            let mut indexes = Vec::new();
            if answers {
                let write = StreamWrite::new(EventBatch::of_lines(part));
                let appended = store.append(self.session.id(), &self.name, write);
                match appended.await {
                    Ok(appended) => indexes = appended.unwrap_or_default(),
                    Err(error) if error.is_refusal() => {}
                    Err(error) => {
                        answers = false;
                        log_not_stored(&error);
                    }
                }
            }
            let mut indexes = indexes.into_iter();
            for message in messages(part) {
                let mut index = indexes.next();
                if index.is_none() && answers {
                    // What is refused with the others is tried alone: not all of them need be refused.
                    match self.store_one(store, message).await {
                        Ok(stored) => index = Some(stored),
                        Err(error) => answers = error.is_refusal(),
                    }
                }
                out.event(index, message);
            }
        }
        out.finish()
    }

    async fn store_one(&self, store: &dyn AnyEventStore, data: &[u8]) -> Result<u64> {
        let write = StreamWrite::new(Bytes::copy_from_slice(data));
        let stored = store.append(self.session.id(), &self.name, write).await;
        let stored = stored.inspect_err(log_not_stored)?;
        let index = stored.and_then(|it| it.first().copied());
        index.ok_or_else(|| Error::internal("the store has told no index"))
    }

    /// Stores an event that is nothing but an index to come back with.
    async fn store_empty(&self) -> Option<u64> {
        let store = self.settings.events.as_ref()?;
        self.store_one(&**store, b"").await.ok()
    }

    /// Gives the client an id to come back with, before there is anything to send, if the revision of the session has
    /// that. Without one it would be told that its stream is read, until it shows that its connection broke.
    async fn send_first_id(&mut self) -> bool {
        let polls = self.session.revision().is_some_and(|it| it.has_polling());
        if polls && let Some(index) = self.store_empty().await {
            let mut out = EventWriter::new(&self.name, 1, 0);
            out.event(Some(index), b"");
            self.send_to_reader(out.finish()).await;
            return true;
        }
        false
    }

    /// Ends the stream for now: the client comes back for the rest.
    async fn suspend(&mut self, retry: Duration) {
        if let Some(index) = self.store_empty().await {
            let mut out = EventWriter::new(&self.name, 1, 0);
            out.retry(index, retry);
            self.send_to_reader(out.finish()).await;
            // A reader that has just come again comes for the rest.
            if self.replay_after.is_none() {
                self.end_reader();
            }
        }
    }

    /// Gives it another reader, which has not seen all of it.
    fn switch_to(&mut self, reader: Reader) {
        self.end_reader();
        self.reader = Some(reader.sink);
        self.unread_silences = 0;
        self.replay_after = Some(reader.seen);
    }

    /// Lets no new reader come here any more, unless one has come already.
    fn leave(&mut self) -> bool {
        if let Some(reader) = self.session.streams.leave(&self.name, &self.readers) {
            self.switch_to(reader);
            return false;
        }
        self.is_registered = false;
        true
    }

    /// Gives up its reader.
    fn drop_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.discard();
        }
        self.replay_after = None;
    }

    /// Ends its reader, which may take what it was sent.
    fn end_reader(&mut self) {
        self.replay_after = None;
        if let Some(reader) = self.reader.take().filter(|reader| unread(reader) > 0) {
            let stall = self.settings.limits.http.stall;
            spawn(finish(reader, stall, pending()));
        }
    }

    /// Gives a new reader what it has not seen, and one that comes meanwhile what that has not.
    async fn replay(&mut self) {
        let Some(store) = self.settings.events.clone() else {
            return;
        };
        while let Some(mut seen) = self.replay_after {
            let found = store
                .after(self.session.id(), &self.name, seen, REPLAYED)
                .await;
            let events = match found {
                Ok(Replay::Events { events, .. }) => events,
                Ok(Replay::Lost) => return self.end_reader(),
                Err(error) => {
                    log(Err(error));
                    return self.end_reader();
                }
            };
            if events.is_empty() {
                self.replay_after = None;
                return;
            }
            let out = encode_replayed(&self.name, &mut seen, &events);
            self.replay_after = Some(seen);
            self.send_to_reader(out).await;
        }
    }

    /// Sends a part of the stream to its reader. A slow one holds up this stream alone; one that comes again does not wait for
    /// itself: it gets nothing yet, but by [`replay`](Self::replay) all that it has not seen.
    async fn send_to_reader(&mut self, out: Vec<u8>) {
        let Some(reader) = self.reader.as_ref().filter(|_| !out.is_empty()) else {
            return;
        };
        let out = match self.connection.outbox.budget() {
            Some(budget) => budget.charge(out.len()).with(out),
            None => out.into(),
        };
        select! {
            biased;
            is_read = reader.send(out) => {
                if !is_read {
                    self.drop_reader();
                }
            }
            Some(new) = self.readers.next() => self.switch_to(new),
            () = overdue(&self.session) => self.drop_reader(),
            () = lazy(|| reader.stalled(self.settings.limits.http.stall)) => self.give_up(),
        }
    }

    /// Gives up a reader that takes nothing.
    fn give_up(&mut self) {
        tracing::debug!("a client takes nothing of a stream, and is given up");
        if let Some(reader) = self.reader.take() {
            reader.give_up();
        }
        self.replay_after = None;
    }
}

impl Drop for EventStream {
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

/// Logs that a store has not told the index of events.
fn log_not_stored(error: &Error) {
    tracing::warn!(%error, "events are sent without ids: the client cannot ask for them again");
}

/// How many bytes a reader has not taken.
fn unread(reader: &Sender<Bytes>) -> usize {
    reader.waiting(Bytes::len)
}

/// Ends a stream for its reader, and gives it up where it takes nothing of what is left. Where that is `overdue` it is dropped: other
/// streams of the connection that carries it may be those of others.
async fn finish(reader: Sender<Bytes>, stall: Duration, overdue: impl Future<Output = ()>) {
    select! {
        biased;
        () = reader.drained() => {}
        () = overdue => reader.discard(),
        () = reader.stalled(stall) => reader.give_up(),
    }
}

/// Waits until the session has ended, and its readers have had their time.
async fn overdue(session: &Session) {
    session.connection().ended().await;
    sleep(FLUSH).await;
}

/// Waits until the reader is gone, where there is one or must be one.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has its arguments in it twice"
)]
fn disconnected(purpose: Purpose, sink: Option<&Sender<Bytes>>) -> impl Future<Output = ()> {
    async move {
        match (sink, purpose) {
            (Some(sink), _) => sink.abandoned().await,
            (None, Purpose::Standing) => {}
            (None, Purpose::Request) => pending().await,
        }
    }
}

/// Encodes events that are sent again. `seen` counts them.
pub(super) fn encode_replayed(stream: &str, seen: &mut u64, events: &[Bytes]) -> Vec<u8> {
    let length = events.iter().map(Bytes::len).sum();
    let mut out = EventWriter::new(stream, events.len(), length);
    for data in events {
        *seen += 1;
        out.event(Some(*seen), data);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{join, time::timeout};

    use super::{
        super::channel::{Receiver, channel},
        *,
    };
    use crate::http::server::{serve::Activity, watched_body::MAX_FRAME};

    const STALL: Duration = Duration::from_secs(30);

    /// Takes a frame in less than every stall, and returns how many bytes there were.
    async fn read_slowly(receiver: Receiver<Bytes>) -> usize {
        let mut read = 0;
        while let Some(frame) = poll_fn(|cx| receiver.poll_frame(cx)).await {
            read += frame.len();
            sleep(STALL * 3 / 4).await;
        }
        read
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_but_steady_reader_gets_the_rest_of_a_stream() {
        let (sender, receiver) = channel(2);
        let rest = vec![0; MAX_FRAME * 10];
        assert!(sender.send(rest.into()).await);
        let (read, ()) = join!(read_slowly(receiver), finish(sender, STALL, pending()));
        assert_eq!(read, MAX_FRAME * 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_of_the_rest_is_given_up() {
        let (sender, receiver) = channel(2);
        assert!(sender.send(vec![0; MAX_FRAME * 2].into()).await);
        let finished = timeout(STALL * 3, finish(sender, STALL, pending())).await;
        assert!(finished.is_ok());
        assert!(receiver.take().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_reader_that_takes_nothing_ends_its_connection() {
        let finished = async |overdue: Duration| {
            let (sender, receiver) = channel(2);
            let activity = Activity::new();
            receiver.carried_by(&activity);
            assert!(sender.send(Bytes::from_static(b"data")).await);
            finish(sender, STALL, sleep(overdue)).await;
            assert!(receiver.take().is_none());
            activity.has_stalled()
        };
        assert!(!finished(FLUSH).await, "the session has ended, and no more");
        assert!(finished(STALL * 2).await);
    }
}
