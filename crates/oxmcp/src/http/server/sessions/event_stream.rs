//! Stream of events of a session: what is sent on it is stored, so that it can be resumed after its connection broke.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use tokio::{select, time::sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    channel::{Sender, finish, unread},
    nodes::{Follower, Standing},
    persistence::log,
    session::{Session, SessionGuard},
    stored_events::{Opening, Record, encode as encode_replayed},
    stream_writer::{Place, StreamWriter, Written},
    streams::{Purpose, REPLAYED, Reader, Readers, stream_response},
};
use crate::{
    http::server::{
        endpoint::{Settings, StreamableHttp},
        event_encoding::{COMMENT, EventWriter, KEEP_ALIVE, encode},
        response::{COME_BACK_LATER, ResponseBody},
    },
    session::{
        connection::Connection,
        driver::undriven::{Attached, Reply},
        task::{lazy, spawn, spawn_polled},
    },
    store::Replay,
};

/// How long a reader may take for each part once the session has ended: one that reads nothing must not keep it.
const FLUSH: Duration = Duration::from_secs(1);

/// So little may be unread for as long as the stream lasts: an event that is nothing but an id, or a comment.
const LITTLE: usize = 1 << 10;

/// The beginning of a stream.
pub(super) struct StreamStart {
    pub(super) purpose: Purpose,
    /// The stream that it goes on with, and the index of the last event there that the client has seen.
    pub(super) resumed: Option<(Arc<str>, u64)>,
    /// Messages that were taken from the outbox already.
    pub(super) taken: Vec<u8>,
    /// What the outbox said of them.
    pub(super) reply: Option<Reply>,
    /// Counts it among the streams of the endpoint.
    pub(super) counted: Option<TaskTrackerToken>,
    /// The endpoint, where the session is saved once it ends.
    pub(super) saves: Option<StreamableHttp>,
    /// The requests that it answers, where other nodes may come to it.
    pub(super) requests: Option<Record>,
}

/// Begins a stream. `None` where there is one already that this would take the place of.
pub(super) fn begin(
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
    // What is there already goes out together with the head of the response.
    spawn_polled(stream.run(reply));
    Some(body)
}

/// Sends on a stream that another node writes, or that has ended. `None` where that is the session's standing stream.
pub(super) fn follow(
    session: &Arc<Session>,
    settings: Arc<Settings>,
    start: StreamStart,
) -> Option<Response<ResponseBody>> {
    let connection = Arc::clone(session.connection());
    let (mut stream, body) = EventStream::new(session, connection, settings, start)?;
    spawn(async move { stream.follow().await });
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
    /// The index of the last event that the reader was sent.
    sent: u64,
    /// The index of the last event that the reader has seen, where what follows must be replayed.
    replay_after: Option<u64>,
    /// Stores what is sent, where there is a store.
    writer: Option<StreamWriter>,
    /// What it needs to be the standing stream of a session that other nodes have, too.
    standing: Option<Box<Standing>>,
    /// Whether the client knows events without data.
    has_empty: bool,
    /// What is stored before all else.
    opening: Option<Opening>,
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
    /// Other nodes may have added something, or taken the stream.
    Changed,
    /// The reader has taken all that it was sent.
    AllTaken,
    /// Another node has taken the stream.
    Fenced,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Sending,
    /// All was sent.
    Sent,
    /// It is not read any more, and nothing else needs it.
    Abandoned,
    /// Another node has taken it.
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
        let is_standing = start.purpose == Purpose::Standing;
        let forwarder = session.forwarder().filter(|_| is_standing);
        let has_empty = session.revision().is_some_and(|it| it.has_polling());
        let replay_after = start.resumed.map(|(_, seen)| seen);
        let writer = settings.events.as_ref().map(|store| {
            let place = Place {
                store: Arc::clone(store),
                session: Arc::clone(session.id()),
                stream: Arc::clone(&name),
            };
            StreamWriter::new(place, has_empty, start.requests.is_some())
        });
        let stream = Self {
            _hearing: is_standing.then(|| Attached::new(&connection)),
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
            standing: forwarder.map(|it| Box::new(Standing::new(it))),
            has_empty,
            opening: start.requests.as_ref().map(Opening::new),
            buffer: start.taken,
            saves: start.saves,
            unread_silences: 0,
            taken: 0,
        };
        Some((stream, body))
    }

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
            match progress {
                Progress::Sent => Box::pin(self.end()).await,
                Progress::Replaced => Box::pin(self.give_way()).await,
                Progress::Sending | Progress::Abandoned => {}
            }
        }
    }

    /// Sends what comes before the first message, and that where it was taken already.
    async fn open(&mut self, mut first: Option<Box<Reply>>) -> Progress {
        let is_new = self.replay_after.is_none();
        let mut has_id = false;
        if let Some(standing) = &mut self.standing {
            self.buffer = standing.take_waiting().await;
            first = (!self.buffer.is_empty()).then(|| Box::new(Reply::More));
            has_id = self.take_over(self.replay_after).await && self.has_empty;
        } else if is_new {
            has_id = self.send_first_id(first.is_some()).await;
        }
        // The head of the response must not wait for the first message.
        if is_new && !has_id && self.purpose == Purpose::Standing {
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
                if self.standing.as_mut().is_some_and(|it| it.is_left()) {
                    self.take_over(None).await;
                }
            }
            Input::ReaderGone if self.purpose == Purpose::Standing => {
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
            && let Some(writer) = &mut self.writer
        {
            writer.end().await;
        }
        if self.purpose == Purpose::Standing {
            // Another node may go on.
            self.send_to_reader(COME_BACK_LATER.into()).await;
        }
        self.finish_reader().await;
    }

    /// Another node has taken the stream: the client gets from there what follows.
    async fn give_way(&mut self) {
        if self.purpose == Purpose::Standing {
            self.session.streams.remove(&self.name);
            self.is_registered = false;
            return self.end_reader();
        }
        // What the handler still says nobody hears.
        self.connection.outbox.close();
        self.follow().await;
    }

    /// Sends what another node has stored and stores, until the stream ends.
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
                () = disconnected(Purpose::Standing, self.reader.as_ref()) => {
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
        let (writer, standing) = (self.writer.as_ref(), self.standing.as_deref_mut());
        select! {
            biased;
            Some(new) = self.readers.next() => Input::NewReader(new),
            () = disconnected(self.purpose, reader) => Input::ReaderGone,
            reply = self.connection.outbox.reply(&mut self.buffer) => Input::Reply(reply),
            () = fenced(writer) => Input::Fenced,
            () = drained(reader), if is_unmarked => Input::AllTaken,
            () = changed(standing, writer, self.sent) => Input::Changed,
            () = sleep(KEEP_ALIVE), if reader.is_some() => Input::Silence,
        }
    }

    /// Sends what was taken from the outbox, the last of the stream if it `ends`. Returns false where another node has taken the
    /// stream.
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

    /// Stores messages, and sends them. Returns false where another node has taken the stream.
    async fn send_lines(&mut self, lines: &[u8], ends: bool) -> bool {
        let Some(writer) = &mut self.writer else {
            let mut out = Vec::new();
            encode(&mut out, lines);
            self.send_to_reader(out).await;
            return true;
        };
        let told = self.standing.as_mut().map(|it| &mut it.told);
        let written = writer.write(lines, ends, told).await;
        self.send_written(written).await
    }

    async fn send_written(&mut self, written: Written) -> bool {
        if written.is_fenced {
            return false;
        }
        let Some(standing) = self.standing.as_mut().filter(|it| it.is_taken()) else {
            self.sent = written.kept.map_or(self.sent, |(_, last)| last);
            self.send_to_reader(written.events).await;
            return true;
        };
        match written.kept {
            Some((first, last)) if written.is_contiguous && first == self.sent + 1 => {
                standing.note_sent();
                self.sent = last;
                self.send_to_reader(written.events).await;
            }
            // Others have added something before.
            Some(_) => {
                self.replay_after = Some(self.sent);
                self.replay().await;
                self.send_to_reader(written.unkept).await;
            }
            None => self.send_to_reader(written.unkept).await,
        }
        true
    }

    /// Gives the client an id to come back with, before there is anything to send, if the revision of the session has
    /// that. Without one it would be told that its stream is read, until it shows that its connection broke.
    async fn send_first_id(&mut self, is_followed: bool) -> bool {
        let Some(writer) = self.writer.as_mut().filter(|_| self.has_empty) else {
            return false;
        };
        if let Some(opening) = &mut self.opening {
            if is_followed {
                // It is stored with that.
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

    /// Ends the stream for now: the client comes back for the rest.
    async fn suspend(&mut self, retry: Duration) {
        let Some(writer) = self.writer.as_mut() else {
            return;
        };
        if let Some(index) = writer.write_empty().await {
            let mut out = EventWriter::new(&self.name);
            out.retry(index, retry);
            self.sent = index;
            self.send_to_reader(out.finish()).await;
            // A reader that has just come again comes for the rest.
            if self.replay_after.is_none() {
                self.end_reader();
            }
        }
    }

    /// Takes the standing stream from the node that has it. What follows after `seen` is replayed, or else what no client has taken.
    /// Returns false where the store does not answer: then this node sends what is its own.
    async fn take_over(&mut self, seen: Option<u64>) -> bool {
        let (Some(standing), Some(writer)) = (&mut self.standing, &mut self.writer) else {
            return false;
        };
        let Some(position) = standing.take(writer, seen).await else {
            return false;
        };
        self.sent = position;
        self.replay_after = Some(position);
        true
    }

    /// Sends what other nodes have added. Returns false where one of them has taken the stream.
    async fn look_for_more(&mut self) -> bool {
        let before = self.sent;
        self.replay_after = Some(before);
        self.replay().await;
        match &self.writer {
            Some(writer) if self.sent == before => writer.is_newest().await,
            _ => true,
        }
    }

    /// Whether other nodes do not know yet that all up to here was sent.
    fn is_unmarked(&self) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|it| it.is_unmarked(self.sent))
    }

    /// Lets other nodes know that all was taken. Returns false where one of them has taken the stream.
    async fn mark(&mut self) -> bool {
        let marked = self.sent;
        let is_held = self.send_lines(&Record::Sent(marked).line(), false).await;
        // The mark itself needs none, unless others have added something before.
        let marked = if self.sent == marked + 1 {
            self.sent
        } else {
            marked
        };
        if let Some(standing) = &mut self.standing {
            standing.note_marked(marked);
        }
        is_held
    }

    /// Gives it another reader, which has not seen all of it.
    fn switch_to(&mut self, reader: Reader) {
        self.end_reader();
        self.reader = Some(reader.sink);
        self.unread_silences = 0;
        self.sent = reader.seen;
        self.replay_after = Some(reader.seen);
        if let Some(standing) = &mut self.standing {
            standing.note_client();
        }
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
        while let Some(mut seen) = self.replay_after
            && let Some(writer) = &self.writer
        {
            if let Some(standing) = &mut self.standing {
                standing.look_back(writer.place(), seen).await;
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
            let told = self.standing.as_mut().map(|it| &mut it.told);
            let out = encode_replayed(&self.name, &mut seen, &events, self.has_empty, told);
            self.replay_after = Some(seen);
            self.sent = seen;
            if let Some(standing) = &mut self.standing {
                standing.note_sent();
            }
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

/// Waits until another node has taken the stream that is written.
async fn fenced(writer: Option<&StreamWriter>) {
    match writer {
        Some(writer) => writer.fenced().await,
        None => pending().await,
    }
}

/// Waits until the reader has taken all that it was sent.
async fn drained(reader: Option<&Sender<Bytes>>) {
    match reader {
        Some(reader) => reader.drained().await,
        None => pending().await,
    }
}

/// Waits until other nodes may have added something to a standing stream, or taken it.
async fn changed(standing: Option<&mut Standing>, writer: Option<&StreamWriter>, sent: u64) {
    match standing {
        Some(standing) => {
            let place = writer.map(StreamWriter::place);
            standing.changed(place, sent).await;
        }
        None => pending().await,
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
