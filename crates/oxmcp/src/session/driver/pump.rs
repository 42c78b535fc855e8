//! What the driver does with what is read, and with what is to be written.

use std::{sync::Arc, time::Duration};

use tokio::{
    pin, select,
    task::yield_now,
    time::{Instant, sleep_until},
};

use crate::{
    Error, Result,
    jsonrpc::RequestId,
    session::{Connection, Side, after, answers::Answers, backlog::Backlog},
    transport::{Frame, Messages, ReadHalf, WriteHalf},
};

/// So many messages are taken in a row before other tasks get their turn.
pub(crate) const MESSAGES_IN_A_ROW: u32 = 64;
/// So much output is written before more input is taken, so that answers do not wait for a busy peer's pause.
const WRITE_FIRST: usize = 64 << 10;
/// So many messages are taken at most before what there is to write is written, however little it is: a peer that never
/// pauses must not keep answers back.
const MESSAGES_UNTIL_WRITE: u32 = 512;
/// How long answers are still taken that were on their way when the peer was found to read nothing any more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Where a connection is in its life. It only ever moves downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing new is begun; what runs may finish until the deadline.
    Draining(Instant),
}

/// What the driver of a connection has in hand.
pub(crate) struct Pump<'a> {
    connection: &'a Arc<Connection>,
    phase: Phase,
    /// Whether the peer may still send something.
    reading: bool,
    backlog: Backlog,
    /// Answers that have just arrived.
    answers: Answers,
    in_a_row: u32,
    since_write: u32,
    /// Whether what has arrived may have woken callers who ask more, and have not had their turn yet.
    has_woken: bool,
}

impl<'a> Pump<'a> {
    pub(crate) fn new(connection: &'a Arc<Connection>) -> Self {
        let limits = &connection.limits;
        Self {
            connection,
            phase: Phase::Open,
            reading: true,
            // What a peer has sent before it heard that this side is full: as much as may be unsent on its side, twice.
            backlog: Backlog::new(limits.max_unsent_bytes.saturating_mul(2), limits.max_batch),
            answers: Answers::default(),
            in_a_row: 0,
            since_write: 0,
            has_woken: false,
        }
    }

    pub(crate) fn is_due_to_give_way(&self) -> bool {
        self.in_a_row >= MESSAGES_IN_A_ROW
    }

    /// Lets other tasks have their turn, and looks at what a peer that never pauses would keep from being
    /// seen: whether the connection is to be closed, and whether its time is up. Returns the latter.
    pub(crate) async fn give_way(&mut self) -> bool {
        self.in_a_row = 0;
        yield_now().await;
        self.look_around();
        matches!(self.phase, Phase::Draining(deadline) if Instant::now() >= deadline)
    }

    pub(crate) fn may_read(&self, unsent: usize) -> bool {
        let write_first =
            unsent >= WRITE_FIRST || (unsent > 0 && self.since_write >= MESSAGES_UNTIL_WRITE);
        self.reading && !write_first && !self.backlog.is_full()
    }

    /// Whether several tasks may be about to answer or to ask: as many as there were messages for them.
    pub(crate) fn gathers(&self) -> bool {
        self.since_write > 1
    }

    /// Whether callers that were woken together have their turn first: then what they ask next becomes one write.
    pub(crate) fn lets_others_go_first(&self) -> bool {
        self.has_woken && self.gathers()
    }

    pub(crate) fn others_had_their_turn(&mut self) {
        self.has_woken = false;
    }

    fn is_full(&self, unsent: usize) -> bool {
        unsent > self.connection.limits.max_unsent_bytes
    }

    /// Takes what was read. The answers among it are to be handed in then, as [`take_ready`](Self::take_ready) does.
    pub(crate) fn arrived(
        &mut self,
        frame: Result<Option<Frame<'_>>>,
        unsent: usize,
    ) -> Result<()> {
        if let Some(frame) = frame? {
            self.take(frame, unsent);
        } else {
            self.reading = false;
            self.connection.no_more_answers();
            self.drain();
        }
        Ok(())
    }

    /// Takes what has come together with what has just arrived.
    pub(crate) fn take_ready(&mut self, read: &mut impl ReadHalf) {
        while !self.is_due_to_give_way() {
            let unsent = self.connection.outbox.unsent();
            if !self.may_read(unsent) {
                break;
            }
            let Some(frame) = read.try_read() else {
                break;
            };
            self.take(frame, unsent);
        }
        self.connection.hand_in(&mut self.answers);
    }

    fn take(&mut self, frame: Frame<'_>, unsent: usize) {
        self.in_a_row += 1;
        self.since_write += 1;
        // What arrives at a server is answered on the way, or later.
        self.has_woken = self.connection.role().side() == Side::Client;
        let held = self.connection.is_held();
        let must_wait = held || self.is_full(unsent) || !self.backlog.is_empty();
        if !(must_wait && self.backlog.keep(&frame, held)) {
            self.connection.take_among(frame, &mut self.answers);
        }
    }

    /// Takes the oldest message that had to wait, if there is room now.
    pub(crate) fn take_kept(&mut self, unsent: usize) -> bool {
        if self.backlog.is_empty() || self.is_full(unsent) || self.connection.is_held() {
            return false;
        }
        self.in_a_row += 1;
        let connection = self.connection;
        let take = |frame: Frame<'_>, cancelled: &[RequestId]| match frame {
            Frame::Message(bytes) if !cancelled.is_empty() => {
                connection.take_batch(bytes, cancelled);
            }
            frame => connection.take(frame),
        };
        self.backlog.pop(take);
        if self.backlog.is_empty() && self.phase != Phase::Open {
            connection.in_flight().drain();
        }
        true
    }

    /// Writes a batch, and goes on reading while the peer takes its time: answers and cancellations must not wait.
    /// Requests must, once too much is unsent, or a peer that asks and never reads would fill our memory.
    pub(crate) async fn write(
        &mut self,
        read: &mut impl ReadHalf,
        write: &mut impl WriteHalf,
        batch: &[u8],
    ) -> Result<()> {
        let connection = self.connection;
        let outbox = &connection.outbox;
        let writing = write.write(Messages::new(batch));
        pin!(writing);
        while !connection.is_cut() {
            if self.is_due_to_give_way() && self.give_way().await {
                return Err(Error::closed("the peer stopped reading"));
            }
            let may_read = self.reading && !self.backlog.is_full();
            select! {
                biased;
                result = &mut writing => {
                    self.since_write = 0;
                    return result;
                }
                frame = read.read(), if may_read => {
                    self.arrived(frame, outbox.unsent())?;
                    self.take_ready(read);
                }
                () = outbox.attention() => self.look_around(),
                () = self.deadline() => return Err(Error::closed("the peer stopped reading")),
            }
        }
        Ok(())
    }

    /// Takes the answers that the peer gave before it stopped reading, or ended.
    pub(crate) async fn last_words(&mut self, read: &mut impl ReadHalf) {
        let connection = self.connection;
        connection.in_flight().drain();
        let deadline = after(Instant::now(), LAST_WORDS);
        while self.reading && !connection.calls().is_empty() && !connection.is_cut() {
            if self.is_due_to_give_way() && self.give_way().await {
                return;
            }
            select! {
                biased;
                frame = read.read() => {
                    if self.arrived(frame, 0).is_err() {
                        return;
                    }
                    connection.hand_in(&mut self.answers);
                }
                () = sleep_until(deadline) => return,
            }
        }
    }

    pub(crate) fn look_around(&mut self) {
        if self.connection.is_closing() {
            self.drain();
        }
    }

    fn drain(&mut self) {
        if self.phase == Phase::Open {
            let connection = self.connection;
            // What the peer asked before it closed its side is answered, also where it had to wait.
            if self.backlog.is_empty() || connection.is_closing() {
                connection.in_flight().drain();
            }
            if !self.reading && connection.role().side() == Side::Client {
                // The server that asked is gone: nobody waits for the answers.
                connection.in_flight().cancel_all();
            }
            self.phase = Phase::Draining(after(Instant::now(), connection.limits.drain));
        }
    }

    pub(crate) fn is_done(&self, unsent: usize) -> bool {
        if self.phase == Phase::Open {
            return false;
        }
        let connection = self.connection;
        let settled = connection.in_flight().is_empty()
            && connection.calls().is_empty()
            // Whoever leaves one of the tables has written before: so this is looked at last.
            && unsent == 0
            && connection.outbox.unsent() == 0;
        settled || connection.is_cut()
    }

    pub(crate) async fn deadline(&self) {
        match self.phase {
            Phase::Open => std::future::pending().await,
            Phase::Draining(deadline) => sleep_until(deadline).await,
        }
    }
}
