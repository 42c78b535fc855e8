//! An event stream of a session. Its events are stored, so that it can be resumed after its connection breaks.

use std::{
    future::{Future, pending},
    mem,
    sync::Arc,
    time::Duration,
};

use http::Response;
use tokio::{select, time::sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    session::Session,
    stream_log::{Moment, NodeEvent, Opened, StreamLog, Written},
    stream_reader::{ReaderInput, StreamReader},
    stream_writer::{StreamKey, StreamWriter},
    streams::Purpose,
};
use crate::{
    http::server::{
        event_encoding::{COMMENT, EventWriter, KEEP_ALIVE, encode},
        response::{COME_BACK_LATER, ResponseBody},
        settings::Settings,
    },
    session::{
        connection::Connection,
        driver::stream_output::{Attached, Reply},
        task::{spawn, spawn_polled},
    },
};

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
    /// Whether the session must be saved when everything has been sent.
    pub(crate) saves: bool,
    /// The first line of the stream, for other nodes that may end it.
    pub(crate) opening: Option<Vec<u8>>,
}

/// Starts a stream. `None` if the stream already exists and must not be replaced.
pub(crate) fn begin(
    session: &Arc<Session>,
    connection: Arc<Connection>,
    settings: &Settings,
    mut start: StreamStart,
) -> Option<Response<ResponseBody>> {
    let reply = start.reply.take().map(Box::new);
    let (stream, body) = EventStream::new(session, connection, settings, start)?;
    // Available messages are sent together with the head of the response.
    spawn_polled(stream.run(reply));
    Some(body)
}

/// Sends the rest of a request stream that another node writes. `None` if this node cannot read it.
pub(crate) fn follow(
    session: &Arc<Session>,
    settings: &Settings,
    start: StreamStart,
) -> Option<Response<ResponseBody>> {
    let key = key(session, settings, &start.resumed.as_ref()?.0)?;
    let resumed = start.resumed.as_ref();
    let stall = settings.limits.http.stall;
    let (mut reader, body) =
        StreamReader::new(session, start.purpose, resumed, start.counted, stall)?;
    spawn(async move { follow_as(&mut reader, key).await });
    Some(body)
}

/// Sends a stream that another node writes to a reader, until the stream ends.
async fn follow_as(reader: &mut StreamReader, key: StreamKey) {
    let seen = reader.replay_after.unwrap_or(reader.sent);
    let session = reader.session();
    let has_empty = has_empty(session);
    let shared = session.shared();
    let Some(mut followed) = shared.map(|shared| shared.follow(key, has_empty, seen)) else {
        return;
    };
    reader.follow(&mut *followed).await;
}

/// The location of a stream in the event store, if there is a store.
fn key(session: &Session, settings: &Settings, name: &Arc<str>) -> Option<StreamKey> {
    let store = settings.events.as_ref()?;
    Some(StreamKey {
        store: Arc::clone(store),
        session: Arc::clone(session.id()),
        stream: Arc::clone(name),
    })
}

/// Whether the client accepts events without data.
fn has_empty(session: &Session) -> bool {
    session.revision().is_some_and(|it| it.has_polling())
}

/// The task of one stream. It takes messages from an outbox, stores them, and sends them to the stream's reader, if any. A client
/// that lost its connection reconnects with the ID of the last event that it has seen, and the task, or the store if the task has
/// ended, sends it the rest.
struct EventStream {
    purpose: Purpose,
    connection: Arc<Connection>,
    /// The events of the stream, if there is a store.
    log: Option<Box<dyn StreamLog>>,
    buffer: Vec<u8>,
    _hearing: Option<Attached>,
    /// Whether the session must be saved when everything has been sent.
    saves: bool,
    /// The location of the events, if there is a store.
    key: Option<StreamKey>,
    reader: StreamReader,
}

/// The next input that a stream must handle.
enum Input {
    Reply(Reply),
    Reader(ReaderInput),
    /// No other input has arrived for the keep-alive interval.
    Silence,
    /// The client must reconnect.
    Leaving,
    /// Only in a session that other nodes know.
    Nodes(NodeEvent),
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
    Taken,
}

impl EventStream {
    fn new(
        session: &Arc<Session>,
        connection: Arc<Connection>,
        settings: &Settings,
        start: StreamStart,
    ) -> Option<(Self, Response<ResponseBody>)> {
        let StreamStart {
            purpose, opening, ..
        } = start;
        let stall = settings.limits.http.stall;
        let (reader, body) = StreamReader::new(
            session,
            purpose,
            start.resumed.as_ref(),
            start.counted,
            stall,
        )?;
        let has_empty = has_empty(session);
        let key = key(session, settings, reader.name());
        let log = key.clone().map(|key| match session.shared() {
            Some(shared) => shared.log(key, has_empty, purpose, opening),
            None => Box::new(StreamWriter::new(key, has_empty)),
        });
        let is_get_stream = purpose == Purpose::GetStream;
        let stream = Self {
            _hearing: is_get_stream.then(|| Attached::new(&connection)),
            purpose,
            connection,
            log,
            buffer: start.taken,
            saves: start.saves,
            key,
            reader,
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
                Progress::Taken => Box::pin(self.give_way()).await,
                Progress::Sending | Progress::Abandoned => {}
            }
        }
    }

    /// Sends the events before the first message, and the first message if it was already taken.
    async fn open(&mut self, mut first: Option<Box<Reply>>) -> Progress {
        let seen = self.reader.replay_after;
        let opened = match &mut self.log {
            Some(log) => log.open(seen, first.is_some()).await,
            None => Opened::default(),
        };
        if !opened.waiting.is_empty() {
            self.buffer = opened.waiting;
            first = Some(Box::new(Reply::More));
        }
        // The head of the response must not wait for the first message.
        if seen.is_none() && !opened.has_id && self.purpose == Purpose::GetStream {
            self.reader.send(COMMENT.into()).await;
        }
        if !self.send_written(opened.written).await {
            return Progress::Taken;
        }
        self.replay().await;
        match first {
            Some(reply) => self.handle(Input::Reply(*reply)).await,
            None => Progress::Sending,
        }
    }

    async fn next(&mut self) -> Input {
        let (log, reader, sent) = (&mut self.log, &self.reader, self.reader.sent);
        let is_unmarked = log.as_ref().is_some_and(|it| it.is_unmarked(sent));
        let changed = log.as_mut().and_then(|it| it.changed(sent));
        select! {
            biased;
            input = reader.input(self.purpose) => Input::Reader(input),
            reply = self.connection.outbox.reply(&mut self.buffer) => Input::Reply(reply),
            () = reader.drained(), if is_unmarked => Input::Nodes(NodeEvent::Read),
            event = wait(changed) => Input::Nodes(event),
            () = reader.session().leaving(), if self.purpose == Purpose::GetStream => Input::Leaving,
            () = sleep(KEEP_ALIVE), if reader.is_connected() => Input::Silence,
        }
    }

    async fn handle(&mut self, input: Input) -> Progress {
        let is_held = match input {
            Input::Reply(reply) => {
                let ends = self.purpose == Purpose::Request && matches!(reply, Reply::Last(_));
                let is_held = self.send_taken(ends).await;
                match reply {
                    Reply::Part(retry) if is_held => self.suspend(retry).await,
                    Reply::Last(_) if is_held => return Progress::Sent,
                    _ => {}
                }
                is_held
            }
            Input::Reader(ReaderInput::New(reader)) => {
                self.reader.switch_to(reader);
                true
            }
            Input::Reader(ReaderInput::Gone) if self.purpose == Purpose::GetStream => {
                if self.reader.has_read_all() && self.is_unmarked() {
                    self.note(Moment::Read).await;
                }
                if self.reader.leave() {
                    return Progress::Abandoned;
                }
                true
            }
            Input::Reader(ReaderInput::Gone) => {
                self.reader.discard();
                true
            }
            Input::Silence => {
                self.reader.keep_alive().await;
                self.note(Moment::Silent).await
            }
            Input::Leaving => return Progress::Sent,
            Input::Nodes(event) => self.handle_nodes(event).await,
        };
        if !is_held {
            return Progress::Taken;
        }
        self.replay().await;
        Progress::Sending
    }

    /// Handles an event that concerns other nodes. Returns false if one of them has taken the stream.
    async fn handle_nodes(&mut self, event: NodeEvent) -> bool {
        match event {
            NodeEvent::Stored => {
                let sent = self.reader.sent;
                self.reader.replay_from(sent);
                self.replay().await;
                self.reader.sent != sent || self.note(Moment::Unchanged).await
            }
            NodeEvent::Taken => false,
            NodeEvent::Read => self.note(Moment::Read).await,
        }
    }

    /// Ends the stream after all messages were sent.
    async fn end(&mut self) {
        if let Some(shared) = self.reader.session().shared().filter(|_| self.saves) {
            Arc::clone(shared).save();
        }
        // A reader that arrives before the stream is unregistered gets the end of the stream here, a later one from the store.
        loop {
            self.replay().await;
            if self.reader.leave() {
                break;
            }
        }
        match (self.purpose, &mut self.log) {
            (Purpose::Request, Some(log)) => log.end().await,
            (Purpose::Request, None) => {}
            // The client may reopen the stream elsewhere.
            (Purpose::GetStream, _) => self.reader.send(COME_BACK_LATER.into()).await,
        }
        self.reader.finish().await;
    }

    /// Hands the stream over to the node that has taken it. The client gets the following events from that node.
    async fn give_way(&mut self) {
        if self.purpose == Purpose::GetStream {
            return self.reader.remove();
        }
        // The handler's remaining messages are dropped.
        self.connection.outbox.close();
        if let Some(key) = self.key.take() {
            follow_as(&mut self.reader, key).await;
        }
    }

    /// Sends the messages that were taken from the outbox. They are the last of the stream if it `ends`. Returns false if another
    /// node has taken the stream.
    async fn send_taken(&mut self, ends: bool) -> bool {
        let mut taken = mem::take(&mut self.buffer);
        let written = match &mut self.log {
            Some(log) => log.write(&taken, ends, self.reader.sent).await,
            None => {
                let mut out = Vec::new();
                encode(&mut out, &taken);
                Written::Events(out, None)
            }
        };
        let is_held = self.send_written(written).await;
        taken.clear();
        self.buffer = taken;
        is_held
    }

    /// Sends events. Returns false if another node has taken the stream.
    async fn send_written(&mut self, written: Written) -> bool {
        match written {
            Written::Events(events, last) => {
                self.reader.sent = last.unwrap_or(self.reader.sent);
                self.reader.send(events).await;
            }
            Written::Replay(seen, rest) => {
                self.reader.replay_from(seen);
                self.replay().await;
                self.reader.send(rest).await;
            }
            Written::Taken => return false,
        }
        true
    }

    /// Ends the response for now. The client reconnects for the rest.
    async fn suspend(&mut self, retry: Duration) {
        let Some(log) = self.log.as_mut() else {
            return;
        };
        if let Some(index) = log.write_empty().await {
            let mut out = EventWriter::new(self.reader.name());
            out.retry(index, retry);
            let out = out.finish();
            self.reader.sent = index;
            self.reader.send(out).await;
            // A reader that has just reconnected stays for the rest.
            if self.reader.replay_after.is_none() {
                self.reader.end();
            }
        }
    }

    /// Sends a new reader the events that it has not seen, and does the same for readers that arrive in the meantime.
    async fn replay(&mut self) {
        while let Some(seen) = self.reader.replay_after
            && let Some(log) = &mut self.log
        {
            let Some(replayed) = log.after(seen, self.reader.take_new()).await else {
                return self.reader.end();
            };
            if replayed.last == seen {
                self.reader.replay_after = None;
                return;
            }
            self.reader.replay_from(replayed.last);
            self.reader.send(replayed.events).await;
        }
    }

    /// Whether other nodes have yet to be told that the events up to here were read.
    fn is_unmarked(&self) -> bool {
        let sent = self.reader.sent;
        self.log.as_ref().is_some_and(|it| it.is_unmarked(sent))
    }

    /// Does what other nodes need at this moment. Returns false if one of them has taken the stream.
    async fn note(&mut self, moment: Moment) -> bool {
        let Some(log) = &mut self.log else {
            return true;
        };
        let written = log.note(moment, self.reader.sent).await;
        self.send_written(written).await
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if !Arc::ptr_eq(&self.connection, self.reader.session().connection()) {
            self.connection.outbox.close();
        }
    }
}

/// Waits for a future, or forever without one.
async fn wait<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
