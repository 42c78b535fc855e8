//! The reader of a stream: the client, which may disconnect, come back, and stall.

use std::{future::pending, mem, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use tokio::{select, time::sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    channel::{Sender, finish, unread},
    session::{Session, SessionGuard},
    shared::FollowedStream,
    streams::{Purpose, Reader, Readers, stream_response},
};
use crate::{
    http::server::{
        event_encoding::{COMMENT, KEEP_ALIVE},
        response::{COME_BACK_LATER, ResponseBody},
    },
    session::task::{lazy, spawn},
};

/// The time that a reader has for each part after the session has ended. A stalled reader must not keep the session.
const FLUSH: Duration = Duration::from_secs(1);

/// The number of bytes that may stay unread as long as the stream lasts: an event with only an ID, or a comment.
const LITTLE: usize = 1 << 10;

/// The reader of a stream. Dropping it unregisters the stream.
pub(crate) struct StreamReader {
    name: Arc<str>,
    /// The clients that resume the stream.
    readers: Readers,
    /// Whether the stream is registered for new readers.
    is_registered: bool,
    /// `None` while the client is disconnected.
    sender: Option<Sender<Bytes>>,
    /// The index of the last event that was sent to the reader.
    pub(crate) sent: u64,
    /// The index of the last event that the reader has seen, if later ones must be replayed.
    pub(crate) replay_after: Option<u64>,
    /// Whether nothing was replayed for the reader yet.
    is_new: bool,
    /// The number of successive silences in which the reader read none of the pending bytes.
    unread_silences: u32,
    /// The reader's [`Sender::taken`] at the last silence.
    taken: u64,
    /// The time after which a reader that reads nothing is dropped.
    stall: Duration,
    session: SessionGuard,
}

/// An input of a stream from its readers.
pub(crate) enum ReaderInput {
    New(Reader),
    Gone,
}

impl StreamReader {
    /// Registers a stream for readers, with the first one. `None` if the stream already exists and must not be replaced.
    pub(crate) fn new(
        session: &Arc<Session>,
        purpose: Purpose,
        resumed: Option<&(Arc<str>, u64)>,
        counted: Option<TaskTrackerToken>,
        stall: Duration,
    ) -> Option<(Self, Response<ResponseBody>)> {
        let (name, readers) = session
            .streams
            .register(purpose, resumed.map(|(name, _)| &**name))?;
        let (sender, body) = stream_response(counted);
        let replay_after = resumed.map(|(_, seen)| *seen);
        let reader = Self {
            name,
            readers,
            is_registered: true,
            sender: Some(sender),
            sent: replay_after.unwrap_or_default(),
            replay_after,
            is_new: true,
            unread_silences: 0,
            taken: 0,
            stall,
            session: session.enter(),
        };
        Some((reader, body))
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn session(&self) -> &SessionGuard {
        &self.session
    }

    /// Whether a client is connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.sender.is_some()
    }

    /// Whether the reader has read everything that was sent to it.
    pub(crate) fn has_read_all(&self) -> bool {
        self.sender.as_ref().is_some_and(Sender::is_all_taken)
    }

    /// Returns whether nothing was replayed for the reader yet, and records that now something is.
    pub(crate) fn take_new(&mut self) -> bool {
        mem::take(&mut self.is_new)
    }

    /// Replays the events after this one, which is the last that the reader has seen.
    pub(crate) fn replay_from(&mut self, seen: u64) {
        self.sent = seen;
        self.replay_after = Some(seen);
    }

    /// Waits for a new reader, or the end of the present one. A GET stream without a reader counts as disconnected. Cancel safe.
    pub(crate) async fn input(&self, purpose: Purpose) -> ReaderInput {
        select! {
            biased;
            Some(new) = self.readers.next() => ReaderInput::New(new),
            () = self.disconnected(purpose) => ReaderInput::Gone,
        }
    }

    async fn disconnected(&self, purpose: Purpose) {
        match (&self.sender, purpose) {
            (Some(sender), _) => sender.abandoned().await,
            (None, Purpose::GetStream) => {}
            (None, Purpose::Request) => pending().await,
        }
    }

    /// Waits until the reader has read everything that was sent to it. Cancel safe.
    pub(crate) async fn drained(&self) {
        match &self.sender {
            Some(sender) => sender.drained().await,
            None => pending().await,
        }
    }

    /// Sends a comment if all bytes were read, and drops a stalled reader after many silences.
    pub(crate) async fn keep_alive(&mut self) {
        let sender = self.sender.as_ref();
        let unread = sender.map_or(0, unread);
        let taken = sender.map_or(0, Sender::taken);
        let has_taken = mem::replace(&mut self.taken, taken) != taken;
        self.unread_silences = match unread {
            0 => {
                self.send(COMMENT.into()).await;
                0
            }
            1..=LITTLE => 0,
            _ if has_taken => 0,
            _ => self.unread_silences.saturating_add(1),
        };
        if KEEP_ALIVE.saturating_mul(self.unread_silences) > self.stall {
            self.give_up();
        }
    }

    /// Sends a part of the stream. A slow reader blocks only this stream. If a new reader arrives in the meantime, it does not get
    /// the part: all events that it has not seen are replayed for it.
    pub(crate) async fn send(&mut self, out: Vec<u8>) {
        let Some(sender) = self.sender.as_ref().filter(|_| !out.is_empty()) else {
            return;
        };
        let out = match self.session.connection().outbox.budget() {
            Some(budget) => budget.charge(out.len()).with(out),
            None => out.into(),
        };
        select! {
            biased;
            is_read = sender.send(out) => {
                if !is_read {
                    self.discard();
                }
            }
            Some(new) = self.readers.next() => self.switch_to(new),
            () = overdue(&self.session) => self.discard(),
            () = lazy(|| sender.stalled(self.stall)) => self.give_up(),
        }
    }

    /// Switches to another reader, which has not seen all events.
    pub(crate) fn switch_to(&mut self, reader: Reader) {
        self.end();
        self.sender = Some(reader.sink);
        self.unread_silences = 0;
        self.is_new = true;
        self.replay_from(reader.seen);
    }

    /// Unregisters the stream, so that no new reader can arrive, unless one has arrived already. Returns whether it is
    /// unregistered.
    pub(crate) fn leave(&mut self) -> bool {
        if let Some(reader) = self.session.streams.leave(&self.name, &self.readers) {
            self.switch_to(reader);
            return false;
        }
        self.is_registered = false;
        true
    }

    /// Unregisters the stream and ends the reader, even if a new one has arrived.
    pub(crate) fn remove(&mut self) {
        self.session.streams.remove(&self.name);
        self.is_registered = false;
        self.end();
    }

    /// Drops the reader.
    pub(crate) fn discard(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.discard();
        }
        self.replay_after = None;
    }

    /// Ends the response of the reader, which may still read the remaining bytes.
    pub(crate) fn end(&mut self) {
        self.replay_after = None;
        if let Some(sender) = self.sender.take().filter(|sender| unread(sender) > 0) {
            spawn(finish(sender, self.stall, pending()));
        }
    }

    /// Ends the response of the reader, and waits until it has read the remaining bytes.
    pub(crate) async fn finish(&mut self) {
        if let Some(sender) = self.sender.take() {
            finish(sender, self.stall, overdue(&self.session)).await;
        }
    }

    /// Drops a stalled reader, and ends its connection.
    fn give_up(&mut self) {
        tracing::debug!(session = %self.session.id(), "dropping stalled stream reader");
        if let Some(sender) = self.sender.take() {
            sender.give_up();
        }
        self.replay_after = None;
    }

    /// Sends a stream that another node writes, until it ends.
    pub(crate) async fn follow(&mut self, followed: &mut dyn FollowedStream) {
        self.replay_after = None;
        loop {
            select! {
                biased;
                input = self.input(Purpose::GetStream) => match input {
                    ReaderInput::New(reader) => self.switch_to(reader),
                    ReaderInput::Gone if self.leave() => return,
                    ReaderInput::Gone => {}
                },
                () = overdue(&self.session) => return,
                part = followed.next() => match part {
                    Some(part) => self.send(part).await,
                    None if self.leave() => break,
                    None => {}
                },
                () = self.session.leaving() => {
                    if self.leave() {
                        self.send(COME_BACK_LATER.into()).await;
                        break;
                    }
                }
                () = sleep(KEEP_ALIVE) => self.keep_alive().await,
            }
            if let Some(seen) = self.replay_after.take() {
                followed.restart(seen);
            }
        }
        self.finish().await;
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        // After the stream is unregistered, the name may belong to another one.
        if self.is_registered {
            self.session.streams.remove(&self.name);
        }
    }
}

/// Waits until the session has ended, and the time for its readers is over.
async fn overdue(session: &Session) {
    session.connection().ended().await;
    sleep(FLUSH).await;
}
