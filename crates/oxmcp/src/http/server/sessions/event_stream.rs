//! An event stream of a session. Its events are stored, so that it can be resumed after its connection breaks.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use tokio::{select, time::sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    channel::{Sender, finish, unread},
    nodes::{Follower, GetStream},
    persistence::log,
    session::{Session, SessionGuard},
    stored_events::{Opening, Record, encode as encode_replayed},
    stream_writer::{StreamKey, StreamWriter, Written},
    streams::{Purpose, REPLAYED, Reader, Readers, stream_response},
};
use crate::{
    http::server::{
        endpoint::StreamableHttp,
        event_encoding::{COMMENT, EventWriter, KEEP_ALIVE, encode},
        response::{COME_BACK_LATER, ResponseBody},
        settings::Settings,
    },
    session::{
        connection::Connection,
        driver::stream_output::{Attached, Reply},
        task::{lazy, spawn, spawn_polled},
    },
    store::Replay,
};

/// The time that a reader has for each part after the session has ended. A stalled reader must not keep the session.
const FLUSH: Duration = Duration::from_secs(1);

/// The number of bytes that may stay unread as long as the stream lasts: an event with only an ID, or a comment.
const LITTLE: usize = 1 << 10;

/// The parameters of a new stream.
pub(crate) struct StreamStart {
    pub(crate) purpose: Purpose,
    /// The stream that is resumed, and the index of the last of its events that the client has seen.
    pub(crate) resumed: Option<(Arc<str>, u64)>,
    /// Messages that were already taken from the outbox.
    pub(crate) taken: Vec<u8>,
    /// The reply of the outbox with these messages.
    pub(crate) reply: Option<Reply>,
    /// Counts the stream among those of the endpoint.
    pub(crate) counted: Option<TaskTrackerToken>,
    /// The endpoint, if the session must be saved when the stream ends.
    pub(crate) saves: Option<StreamableHttp>,
    /// The requests that the stream answers, if other nodes may resume it.
    pub(crate) requests: Option<Record>,
}

/// Starts a stream. `None` if the stream already exists and must not be replaced.
pub(crate) fn begin(
    session: &Arc<Session>,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    start: StreamStart,
) -> Option<Response<ResponseBody>> {
    let reply = start.reply.map(Box::new);
    let (stream, body) = EventStream::new(
        session,
        connection,
        settings,
        StreamStart {
            reply: None,
            ..start
        },
    )?;
    // Available messages are sent together with the head of the response.
    spawn_polled(stream.run(reply));
    Some(body)
}

/// Sends a stream that another node writes, or that has ended. `None` if it is a GET stream and the session already has one.
pub(crate) fn follow(
    session: &Arc<Session>,
    settings: Arc<Settings>,
    start: StreamStart,
) -> Option<Response<ResponseBody>> {
    let connection = Arc::clone(session.connection());
    let (mut stream, body) = EventStream::new(session, connection, settings, start)?;
    spawn(async move { stream.follow().await });
    Some(body)
}

/// The task of one stream. It takes messages from an outbox, stores them, and sends them to the stream's reader, if any. A client
/// that lost its connection reconnects with the ID of the last event that it has seen, and the task, or the store if the task has
/// ended, sends it the rest.
struct EventStream {
    name: Arc<str>,
    purpose: Purpose,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    readers: Readers,
    /// Whether the stream is registered for new readers.
    is_registered: bool,
    /// The reader of the stream. `None` while the client is disconnected.
    reader: Option<Sender<Bytes>>,
    /// The index of the last event that was sent to the reader.
    sent: u64,
    /// The index of the last event that the reader has seen, if later ones must be replayed.
    replay_after: Option<u64>,
    /// Stores the messages that are sent, if there is a store.
    writer: Option<StreamWriter>,
    /// The state of a GET stream whose session other nodes share.
    get_stream: Option<Box<GetStream>>,
    /// Whether the client accepts events without data.
    has_empty: bool,
    /// The record of the answered requests, which is stored before all other events.
    opening: Option<Opening>,
    buffer: Vec<u8>,
    _hearing: Option<Attached>,
    /// The endpoint, if the session must be saved when everything has been sent.
    saves: Option<StreamableHttp>,
    /// The number of successive silences in which the reader read none of the pending bytes.
    unread_silences: u32,
    /// The reader's [`Sender::taken`] at the last silence.
    taken: u64,
    session: SessionGuard,
}

/// The next input that a stream must handle.
enum Input {
    Reply(Reply),
    NewReader(Reader),
    /// No other input has arrived for the keep-alive interval.
    Silence,
    ReaderGone,
    /// Other nodes may have added events, or taken the stream.
    Changed,
    /// The reader has read everything that was sent to it.
    AllTaken,
    /// Another node has taken the stream.
    Fenced,
    /// The client must find another node.
    Leaving,
}

/// The progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Sending,
    /// All messages were sent.
    Sent,
    /// The stream no longer has a reader, and nothing else needs it.
    Abandoned,
    /// Another node has taken the stream.
    Replaced,
}

impl EventStream {
    fn new(
        session: &Arc<Session>,
        connection: Arc<Connection>,
        settings: Arc<Settings>,
        start: StreamStart,
    ) -> Option<(Self, Response<ResponseBody>)> {
        let resumed = start.resumed.as_ref();
        let (name, readers) = session
            .streams
            .register(start.purpose, resumed.map(|(name, _)| &**name))?;
        let (reader, body) = stream_response(start.counted);
        let is_get_stream = start.purpose == Purpose::GetStream;
        let forwarder = session.forwarder().filter(|_| is_get_stream);
        let has_empty = session.revision().is_some_and(|it| it.has_polling());
        let replay_after = start.resumed.map(|(_, seen)| seen);
        let writer = settings.events.as_ref().map(|store| {
            let place = StreamKey {
                store: Arc::clone(store),
                session: Arc::clone(session.id()),
                stream: Arc::clone(&name),
            };
            StreamWriter::new(place, has_empty, start.requests.is_some())
        });
        let stream = Self {
            _hearing: is_get_stream.then(|| Attached::new(&connection)),
            session: session.enter(),
            name,
            purpose: start.purpose,
            connection,
            settings,
            readers,
            is_registered: true,
            reader: Some(reader),
            sent: replay_after.unwrap_or_default(),
            replay_after,
            writer,
            get_stream: forwarder.map(|it| Box::new(GetStream::new(it))),
            has_empty,
            opening: start.requests.as_ref().map(Opening::new),
            buffer: start.taken,
            saves: start.saves,
            unread_silences: 0,
            taken: 0,
        };
        Some((stream, body))
    }

    /// Sends until all messages are sent, or until a GET stream no longer has a reader.
    ///
    /// Futures that are rarely needed are boxed: most streams are silent, and there may be thousands.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would store its arguments twice"
    )]
    pub(crate) fn run(mut self, mut first: Option<Box<Reply>>) -> impl Future<Output = ()> + Send {
        async move {
            let mut progress = Box::pin(self.open(first.take())).await;
            while progress == Progress::Sending {
                let input = self.next().await;
                progress = Box::pin(self.handle(input)).await;
            }
            match progress {
                Progress::Sent => Box::pin(self.end()).await,
                Progress::Replaced => Box::pin(self.give_way()).await,
                Progress::Sending | Progress::Abandoned => {}
            }
        }
    }

    /// Sends the events before the first message, and the first message if it was already taken.
    async fn open(&mut self, mut first: Option<Box<Reply>>) -> Progress {
        let is_new = self.replay_after.is_none();
        let mut has_id = false;
        if let Some(get_stream) = &mut self.get_stream {
            self.buffer = get_stream.take_waiting().await;
            first = (!self.buffer.is_empty()).then(|| Box::new(Reply::More));
            has_id = self.take_over(self.replay_after).await && self.has_empty;
        } else if is_new {
            has_id = self.send_first_id(first.is_some()).await;
        }
        // The head of the response must not wait for the first message.
        if is_new && !has_id && self.purpose == Purpose::GetStream {
            self.send_to_reader(COMMENT.into()).await;
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
                let ends = self.purpose == Purpose::Request && matches!(reply, Reply::Last(_));
                if !self.send_taken(ends).await {
                    return Progress::Replaced;
                }
                match reply {
                    Reply::More => {}
                    Reply::Part(retry) => self.suspend(retry).await,
                    Reply::Last(_) => return Progress::Sent,
                }
            }
            Input::NewReader(reader) => self.switch_to(reader),
            Input::Silence => {
                self.keep_alive().await;
                if self.get_stream.as_mut().is_some_and(|it| it.is_delegated()) {
                    self.take_over(None).await;
                }
            }
            Input::ReaderGone if self.purpose == Purpose::GetStream => {
                if self.reader.as_ref().is_some_and(Sender::is_all_taken) && self.is_unmarked() {
                    self.mark().await;
                }
                if self.leave() {
                    return Progress::Abandoned;
                }
            }
            Input::ReaderGone => self.drop_reader(),
            Input::Changed => {
                if !self.look_for_more().await {
                    return Progress::Replaced;
                }
            }
            Input::AllTaken => {
                if !self.mark().await {
                    return Progress::Replaced;
                }
            }
            Input::Fenced => return Progress::Replaced,
            Input::Leaving => return Progress::Sent,
        }
        self.replay().await;
        Progress::Sending
    }

    /// Sends a comment if all bytes were read, and drops a stalled reader after many silences.
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

    /// Ends the stream after all messages were sent.
    async fn end(&mut self) {
        if let Some(endpoint) = self.saves.take() {
            endpoint.save(&self.session);
        }
        // A reader that arrives before the stream is unregistered gets the end of the stream here, a later one from the store.
        loop {
            self.replay().await;
            if self.leave() {
                break;
            }
        }
        if self.purpose == Purpose::Request
            && let Some(writer) = &mut self.writer
        {
            writer.end().await;
        }
        if self.purpose == Purpose::GetStream {
            // Another node may continue the stream.
            self.send_to_reader(COME_BACK_LATER.into()).await;
        }
        self.finish_reader().await;
    }

    /// Hands the stream over to the node that has taken it. The client gets the following events from that node.
    async fn give_way(&mut self) {
        if self.purpose == Purpose::GetStream {
            self.session.streams.remove(&self.name);
            self.is_registered = false;
            return self.end_reader();
        }
        // The handler's remaining messages are dropped.
        self.connection.outbox.close();
        self.follow().await;
    }

    /// Sends the events that another node has stored and continues to store, until the stream ends.
    async fn follow(&mut self) {
        let Some(place) = self.writer.as_ref().map(|it| it.place().clone()) else {
            return;
        };
        let seen = self.replay_after.take().unwrap_or(self.sent);
        let mut follower = Follower::new(place, self.has_empty, seen);
        loop {
            select! {
                biased;
                Some(reader) = self.readers.next() => self.switch_to(reader),
                () = disconnected(Purpose::GetStream, self.reader.as_ref()) => {
                    if self.leave() {
                        return;
                    }
                }
                () = overdue(&self.session) => return,
                part = follower.next() => match part {
                    Some(part) => self.send_to_reader(part).await,
                    None if self.leave() => break,
                    None => {}
                },
                () = self.session.leaving() => {
                    if self.leave() {
                        self.send_to_reader(COME_BACK_LATER.into()).await;
                        break;
                    }
                }
                () = sleep(KEEP_ALIVE) => self.keep_alive().await,
            }
            if let Some(seen) = self.replay_after.take() {
                follower.restart(seen);
            }
        }
        self.finish_reader().await;
    }

    async fn finish_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            let stall = self.settings.limits.http.stall;
            finish(reader, stall, overdue(&self.session)).await;
        }
    }

    async fn next(&mut self) -> Input {
        let is_unmarked = self.is_unmarked();
        let reader = self.reader.as_ref();
        let (writer, get_stream) = (self.writer.as_ref(), self.get_stream.as_deref_mut());
        select! {
            biased;
            Some(new) = self.readers.next() => Input::NewReader(new),
            () = disconnected(self.purpose, reader) => Input::ReaderGone,
            reply = self.connection.outbox.reply(&mut self.buffer) => Input::Reply(reply),
            () = fenced(writer) => Input::Fenced,
            () = drained(reader), if is_unmarked => Input::AllTaken,
            () = changed(get_stream, writer, self.sent) => Input::Changed,
            () = self.session.leaving(), if self.purpose == Purpose::GetStream => Input::Leaving,
            () = sleep(KEEP_ALIVE), if reader.is_some() => Input::Silence,
        }
    }

    /// Sends the messages that were taken from the outbox. They are the last of the stream if it `ends`. Returns false if another
    /// node has taken the stream.
    async fn send_taken(&mut self, ends: bool) -> bool {
        let mut taken = std::mem::take(&mut self.buffer);
        if let Some(opening) = self.opening.as_mut().filter(|_| !taken.is_empty()) {
            let opening = opening.before(&taken);
            taken.splice(0..0, opening.into_iter().flatten());
        }
        let sent = self.send_lines(&taken, ends).await;
        self.buffer = taken;
        self.buffer.clear();
        sent
    }

    /// Stores and sends messages. Returns false if another node has taken the stream.
    async fn send_lines(&mut self, lines: &[u8], ends: bool) -> bool {
        let Some(writer) = &mut self.writer else {
            let mut out = Vec::new();
            encode(&mut out, lines);
            self.send_to_reader(out).await;
            return true;
        };
        let told = self.get_stream.as_mut().map(|it| &mut it.told);
        let written = writer.write(lines, ends, told).await;
        self.send_written(written).await
    }

    async fn send_written(&mut self, written: Written) -> bool {
        if written.is_fenced {
            return false;
        }
        let Some(get_stream) = self.get_stream.as_mut().filter(|it| it.is_taken()) else {
            self.sent = written.kept.map_or(self.sent, |(_, last)| last);
            self.send_to_reader(written.events).await;
            return true;
        };
        match written.kept {
            Some((first, last)) if written.is_contiguous && first == self.sent + 1 => {
                get_stream.note_sent();
                self.sent = last;
                self.send_to_reader(written.events).await;
            }
            // Other nodes have added events before this one.
            Some(_) => {
                self.replay_after = Some(self.sent);
                self.replay().await;
                self.send_to_reader(written.unkept).await;
            }
            None => self.send_to_reader(written.unkept).await,
        }
        true
    }

    /// Sends the client an ID to resume from before the first message, if the revision of the session allows that. Without an ID
    /// the client could not resume the stream: it would learn that the stream is already open, until its broken connection is
    /// noticed.
    async fn send_first_id(&mut self, is_followed: bool) -> bool {
        let Some(writer) = self.writer.as_mut().filter(|_| self.has_empty) else {
            return false;
        };
        if let Some(opening) = &mut self.opening {
            if is_followed {
                // The opening is stored together with the first message.
                return false;
            }
            let opening = opening.before(b"").unwrap_or_default();
            return self.send_lines(&opening, false).await;
        }
        let Some(index) = writer.write_empty().await else {
            return false;
        };
        let mut out = EventWriter::new(&self.name);
        out.event(Some(index), b"");
        self.sent = index;
        self.send_to_reader(out.finish()).await;
        true
    }

    /// Ends the response for now. The client reconnects for the rest.
    async fn suspend(&mut self, retry: Duration) {
        let Some(writer) = self.writer.as_mut() else {
            return;
        };
        if let Some(index) = writer.write_empty().await {
            let mut out = EventWriter::new(&self.name);
            out.retry(index, retry);
            self.sent = index;
            self.send_to_reader(out.finish()).await;
            // A reader that has just reconnected stays for the rest.
            if self.replay_after.is_none() {
                self.end_reader();
            }
        }
    }

    /// Takes the GET stream from the node that has it. Replays the events after `seen`, or without `seen` those that no client has
    /// read. Returns false if the store fails; then this node sends only its own messages.
    async fn take_over(&mut self, seen: Option<u64>) -> bool {
        let (Some(get_stream), Some(writer)) = (&mut self.get_stream, &mut self.writer) else {
            return false;
        };
        let Some(position) = get_stream.take(writer, seen).await else {
            return false;
        };
        self.sent = position;
        self.replay_after = Some(position);
        true
    }

    /// Sends the events that other nodes have added. Returns false if one of them has taken the stream.
    async fn look_for_more(&mut self) -> bool {
        let before = self.sent;
        self.replay_after = Some(before);
        self.replay().await;
        match &self.writer {
            Some(writer) if self.sent == before => writer.is_newest().await,
            _ => true,
        }
    }

    /// Whether other nodes have yet to be told that the events up to here were sent.
    fn is_unmarked(&self) -> bool {
        let get_stream = self.get_stream.as_ref();
        get_stream.is_some_and(|it| it.is_unmarked(self.sent))
    }

    /// Tells other nodes that all events were read. Returns false if one of them has taken the stream.
    async fn mark(&mut self) -> bool {
        let marked = self.sent;
        let is_held = self.send_lines(&Record::Sent(marked).line(), false).await;
        // The mark itself does not need a mark, unless other nodes have added events before it.
        let marked = if self.sent == marked + 1 {
            self.sent
        } else {
            marked
        };
        if let Some(get_stream) = &mut self.get_stream {
            get_stream.note_marked(marked);
        }
        is_held
    }

    /// Switches to another reader, which has not seen all events.
    fn switch_to(&mut self, reader: Reader) {
        self.end_reader();
        self.reader = Some(reader.sink);
        self.unread_silences = 0;
        self.sent = reader.seen;
        self.replay_after = Some(reader.seen);
        if let Some(get_stream) = &mut self.get_stream {
            get_stream.note_client();
        }
    }

    /// Unregisters the stream, so that no new reader can arrive, unless one has arrived already. Returns whether it is
    /// unregistered.
    fn leave(&mut self) -> bool {
        if let Some(reader) = self.session.streams.leave(&self.name, &self.readers) {
            self.switch_to(reader);
            return false;
        }
        self.is_registered = false;
        true
    }

    /// Drops the reader of the stream.
    fn drop_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.discard();
        }
        self.replay_after = None;
    }

    /// Ends the reader of the stream, which may still read the remaining bytes.
    fn end_reader(&mut self) {
        self.replay_after = None;
        if let Some(reader) = self.reader.take().filter(|reader| unread(reader) > 0) {
            let stall = self.settings.limits.http.stall;
            spawn(finish(reader, stall, pending()));
        }
    }

    /// Sends a new reader the events that it has not seen, and does the same for readers that arrive in the meantime.
    async fn replay(&mut self) {
        while let Some(mut seen) = self.replay_after
            && let Some(writer) = &self.writer
        {
            if let Some(get_stream) = &mut self.get_stream {
                get_stream.look_back(writer.place(), seen).await;
            }
            let events = match writer.place().after(seen, REPLAYED).await {
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
            let told = self.get_stream.as_mut().map(|it| &mut it.told);
            let out = encode_replayed(&self.name, &mut seen, &events, self.has_empty, told);
            self.replay_after = Some(seen);
            self.sent = seen;
            if let Some(get_stream) = &mut self.get_stream {
                get_stream.note_sent();
            }
            self.send_to_reader(out).await;
        }
    }

    /// Sends a part of the stream to its reader. A slow reader blocks only this stream. If a new reader arrives in the meantime, it
    /// does not get the part: [`replay`](Self::replay) sends it all events that it has not seen.
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

    /// Drops a stalled reader, and ends its connection.
    fn give_up(&mut self) {
        tracing::debug!(session = %self.session.id(), "dropping stalled stream reader");
        if let Some(reader) = self.reader.take() {
            reader.give_up();
        }
        self.replay_after = None;
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // After the stream is unregistered, the name may belong to another one.
        if self.is_registered {
            self.session.streams.remove(&self.name);
        }
        if !Arc::ptr_eq(&self.connection, self.session.connection()) {
            self.connection.outbox.close();
        }
    }
}

/// Waits until another node has taken the stream that the writer writes.
async fn fenced(writer: Option<&StreamWriter>) {
    match writer {
        Some(writer) => writer.fenced().await,
        None => pending().await,
    }
}

/// Waits until the reader has read everything that was sent to it.
async fn drained(reader: Option<&Sender<Bytes>>) {
    match reader {
        Some(reader) => reader.drained().await,
        None => pending().await,
    }
}

/// Waits until other nodes may have added events to a GET stream, or taken it.
async fn changed(get_stream: Option<&mut GetStream>, writer: Option<&StreamWriter>, sent: u64) {
    match get_stream {
        Some(get_stream) => {
            let place = writer.map(StreamWriter::place);
            get_stream.changed(place, sent).await;
        }
        None => pending().await,
    }
}

/// Waits until the session has ended, and the time for its readers is over.
async fn overdue(session: &Session) {
    session.connection().ended().await;
    sleep(FLUSH).await;
}

/// Waits until the reader has disconnected. A GET stream without a reader counts as disconnected.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn would store its arguments twice"
)]
fn disconnected(purpose: Purpose, sink: Option<&Sender<Bytes>>) -> impl Future<Output = ()> {
    async move {
        match (sink, purpose) {
            (Some(sink), _) => sink.abandoned().await,
            (None, Purpose::GetStream) => {}
            (None, Purpose::Request) => pending().await,
        }
    }
}
