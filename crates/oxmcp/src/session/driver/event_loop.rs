//! The event loop of a connection, the only reader and writer of its transport.
//!
//! It first reads messages that have already arrived, as long as little waits to be written, and then writes the output. So
//! many small messages become one write, which is sent as soon as there is nothing more to read.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use memchr::memchr_iter;
use oxmcp_protocol::RequestId;
use tokio::{
    pin, select,
    task::yield_now,
    time::{Instant, sleep_until},
};

#[cfg(feature = "client")]
use crate::session::driver::restart::Restarts;
use crate::{
    error::{Error, Result},
    session::{
        connection::{Connection, Outcome, Side},
        driver::{
            flush::Flush,
            outbox::{BufferRetention, Due},
        },
        inbound::backlog::Backlog,
        task::{after, requeue},
    },
    transport::traits::{Frame, Messages, ReadHalf, WriteHalf},
};

/// The number of messages that are handled in a row before other tasks get their turn.
const MAX_IN_A_ROW: u32 = 64;
/// The number of unsent bytes that are written before more input is read, so that responses do not wait for a busy peer to
/// pause.
const WRITE_FIRST: usize = 64 << 10;
/// The maximum number of messages that are handled before the output is written, however little it is: a peer that never pauses
/// must not delay responses.
const MESSAGES_UNTIL_WRITE: u32 = 512;
/// The time for which responses in transit are still read after the peer was found to have stopped reading.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Drives a connection until it ends.
pub(crate) async fn drive(
    connection: Arc<Connection>,
    mut read: impl ReadHalf,
    mut write: impl WriteHalf,
) {
    let end = End(connection);
    let connection = &end.0;
    let mut driver = Driver::new(connection, &write);
    let outcome = match run(&mut driver, &mut read, &mut write).await {
        Ok(()) => Outcome::Closed,
        Err(error) => Outcome::Failed(error.message().to_owned()),
    };
    if matches!(outcome, Outcome::Closed) || connection.is_closing() {
        // Messages that have arrived are handled while the session still exists.
        let limit = driver.end_of_drain().duration_since(Instant::now());
        connection.notifications().flush(limit).await;
    }
    connection.cut(outcome);
    if let Err(error) = close(&mut read, &mut write).await {
        tracing::debug!(%error, "could not close the transport cleanly");
    }
}

/// Runs the event loop; repeats it if the session outlives its peer and the transport can reconnect.
async fn run(
    driver: &mut Driver<'_>,
    read: &mut impl ReadHalf,
    write: &mut impl WriteHalf,
) -> Result<()> {
    #[cfg(feature = "client")]
    {
        let connection = driver.connection;
        let mut restarts = Restarts::default();
        loop {
            let ended = event_loop(driver, read, write).await;
            let goes_on = write.can_reconnect() && may_restart(connection);
            let Err(error) = ended else {
                return Ok(());
            };
            if !goes_on {
                return Err(error);
            }
            if !restarts.restart(connection, write, error).await? {
                return Ok(());
            }
            connection.role().restarted(connection);
            *driver = Driver::new(connection, write);
        }
    }
    #[cfg(not(feature = "client"))]
    event_loop(driver, read, write).await
}

/// Whether the session outlives its peer, and is not about to end.
fn may_restart(connection: &Connection) -> bool {
    connection.role().outlives_peer() && !connection.is_closing() && !connection.is_cut()
}

/// Closes the transport. The peer's remaining output is read and dropped meanwhile: a peer that is still writing would not
/// notice the end.
async fn close(read: &mut impl ReadHalf, write: &mut impl WriteHalf) -> Result<()> {
    let closed = write.close();
    pin!(closed);
    let mut reading = true;
    let mut in_a_row = 0;
    loop {
        select! {
            biased;
            result = &mut closed => return result,
            frame = read.read(), if reading => reading = matches!(frame, Ok(Some(_))),
        }
        in_a_row += 1;
        if in_a_row % MAX_IN_A_ROW == 0 {
            yield_now().await;
        }
    }
}

/// Ends a connection even if its transport panics or its runtime shuts down: no caller may wait forever.
struct End(Arc<Connection>);

impl Drop for End {
    fn drop(&mut self) {
        self.0
            .cut(Outcome::Failed("the connection was aborted".to_owned()));
        self.0.finished();
    }
}

async fn event_loop(
    driver: &mut Driver<'_>,
    read: &mut impl ReadHalf,
    write: &mut impl WriteHalf,
) -> Result<()> {
    let connection = driver.connection;
    let mut output = Vec::new();
    let mut retention = BufferRetention::default();
    loop {
        if driver.must_yield() && driver.yield_turn().await {
            return driver.give_up(&[]);
        }
        let unsent = connection.outbox.unsent();
        if driver.take_from_backlog(unsent) {
            continue;
        }
        if driver.is_done(unsent) {
            return Ok(());
        }
        let may_read = driver.may_read(unsent) && !(unsent > 0 && read.is_drained());
        // Usually an answer is there now, and nothing more to read. If other tasks are about to answer, they have their turn
        // first.
        let due = if may_read || driver.coalesces() {
            None
        } else {
            connection.outbox.try_take(&mut output)
        };
        let due = match due {
            Some(due) => due,
            None => select! {
                // Input before output, because the responses to messages that arrive together become one write. `may_read` ends
                // that in time, so input starves no output. The deadline last, because what is ready now still counts: a peer
                // that never pauses does not hide it, since `yield_turn` checks it every `MAX_IN_A_ROW` messages.
                biased;
                frame = read.read(), if may_read => {
                    driver.arrived(frame, unsent)?;
                    driver.take_ready(read);
                    if driver.has_woken_callers() {
                        // The calls that they make next become one write.
                        requeue().await;
                    }
                    continue;
                }
                due = connection.outbox.take(&mut output, driver.coalesces()) => due,
                () = driver.deadline() => {
                    if driver.time_is_up() {
                        return driver.give_up(&[]);
                    }
                    continue;
                }
            },
        };
        match due {
            Due::Attention => driver.check_closing(),
            Due::Write => {
                if let Err(error) = driver.write(read, write, &output).await {
                    driver.take_last_answers(read).await;
                    return Err(error);
                }
                connection.outbox.wrote(&mut output, &mut retention);
            }
        }
    }
}

/// The phase of a connection's life. It only ever advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// No new request is begun; requests in flight may finish until the deadline.
    Draining(Instant),
    /// No request is in flight anymore; responses are written while the peer reads them.
    Flushing(Flush),
}

/// The state of the event loop.
struct Driver<'a> {
    connection: &'a Arc<Connection>,
    phase: Phase,
    /// Whether the peer may still send messages.
    reading: bool,
    /// Whether the transport can reconnect to the peer.
    can_reconnect: bool,
    backlog: Backlog,
    in_a_row: u32,
    since_write: u32,
    /// The deadline of the handlers, once it is set.
    end_of_drain: Option<Instant>,
    /// The number of bytes that the peer has accepted, counted by the transport.
    bytes_written: Option<Arc<AtomicU64>>,
    /// The number of bytes of the completed writes.
    bytes_done: u64,
}

impl<'a> Driver<'a> {
    fn new(connection: &'a Arc<Connection>, write: &impl WriteHalf) -> Self {
        let limits = &connection.limits;
        Self {
            connection,
            phase: Phase::Open,
            reading: true,
            can_reconnect: write.can_reconnect(),
            // The messages that a peer may have sent before it noticed the backpressure: twice as much as may be unsent on its
            // side.
            backlog: Backlog::new(limits.max_unsent_bytes.saturating_mul(2), limits.max_batch),
            in_a_row: 0,
            since_write: 0,
            end_of_drain: None,
            bytes_written: write.bytes_written(),
            bytes_done: 0,
        }
    }

    fn must_yield(&self) -> bool {
        self.in_a_row >= MAX_IN_A_ROW
    }

    /// Yields to other tasks, and checks conditions that a peer that never pauses would hide: whether the connection must
    /// close, and whether its deadline has passed. Returns the latter.
    async fn yield_turn(&mut self) -> bool {
        self.in_a_row = 0;
        yield_now().await;
        self.check_closing();
        self.time_is_up()
    }

    /// Ends the drain, or the connection, if its deadline has passed. Returns the latter.
    fn time_is_up(&mut self) -> bool {
        let now = Instant::now();
        let taken = self.bytes_taken();
        match &mut self.phase {
            Phase::Draining(deadline) if now >= *deadline => {
                let connection = self.connection;
                connection.end_drain();
                let flush = Flush::new(now, connection.limits.flush, taken);
                self.phase = Phase::Flushing(flush);
                false
            }
            Phase::Flushing(flush) if now >= flush.deadline() => flush.is_over(now, taken),
            _ => false,
        }
    }

    /// The number of bytes that the peer has taken.
    fn bytes_taken(&self) -> u64 {
        let counted = self.bytes_written.as_ref();
        counted.map_or(self.bytes_done, |count| count.load(Ordering::Relaxed))
    }

    /// Ends a connection whose deadline has passed. `rest` is the unwritten part of the output that was taken from the outbox.
    fn give_up(&self, rest: &[u8]) -> Result<()> {
        let left = self.connection.outbox.unsent_messages() + memchr_iter(b'\n', rest).count();
        let left = left + self.backlog.len();
        if left == 0 {
            return Ok(());
        }
        let why = format!("the peer stopped reading: {left} messages were not written");
        Err(Error::closed(why))
    }

    fn may_read(&self, unsent: usize) -> bool {
        let write_first =
            unsent >= WRITE_FIRST || (unsent > 0 && self.since_write >= MESSAGES_UNTIL_WRITE);
        self.reading && !write_first && !self.backlog.is_full()
    }

    /// Whether several tasks may be about to respond or call, because several messages were handled since the last write.
    fn coalesces(&self) -> bool {
        self.since_write > 1
    }

    /// Whether the messages that have arrived may have woken several callers. Messages to a server wake no callers.
    fn has_woken_callers(&self) -> bool {
        self.coalesces() && self.connection.role().side() == Side::Client
    }

    fn is_full(&self, unsent: usize) -> bool {
        unsent > self.connection.limits.max_unsent_bytes
    }

    /// Takes a frame, or the end of the input.
    fn arrived(&mut self, frame: Result<Option<Frame<'_>>>, unsent: usize) -> Result<()> {
        if let Some(frame) = frame? {
            self.take(frame, unsent);
        } else {
            self.reading = false;
            if self.can_reconnect && may_restart(self.connection) {
                return Err(Error::closed("the peer closed the connection"));
            }
            self.connection.no_more_answers();
            self.drain();
        }
        Ok(())
    }

    /// Handles the frames that have arrived together with the last one.
    fn take_ready(&mut self, read: &mut impl ReadHalf) {
        while !self.must_yield() {
            let unsent = self.connection.outbox.unsent();
            if !self.may_read(unsent) {
                return;
            }
            let Some(frame) = read.try_read() else {
                return;
            };
            self.take(frame, unsent);
        }
    }

    fn take(&mut self, frame: Frame<'_>, unsent: usize) {
        self.in_a_row += 1;
        self.since_write += 1;
        let frame = self.connection.without_byte_order_mark(frame);
        let held = self.connection.is_held();
        let must_wait = held || self.is_full(unsent) || !self.backlog.is_empty();
        if !(must_wait && self.backlog.keep(&frame, held)) {
            self.connection.take(frame);
        }
    }

    /// Handles the oldest message in the backlog, if there is space for its response now.
    fn take_from_backlog(&mut self, unsent: usize) -> bool {
        if self.backlog.is_empty() || self.is_full(unsent) || self.connection.is_held() {
            return false;
        }
        self.in_a_row += 1;
        let connection = self.connection;
        let take = |frame: Frame<'_>, cancelled: &[RequestId]| match frame.message() {
            Some((bytes, sender)) if !cancelled.is_empty() => {
                connection.take_batch(bytes, sender, cancelled);
            }
            _ => connection.take(frame),
        };
        self.backlog.pop(take);
        if self.backlog.is_empty() && self.phase != Phase::Open {
            connection.in_flight().refuse_new();
        }
        true
    }

    /// Writes the output, and keeps reading while the peer is slow, because responses and cancellations must not wait. Once too
    /// much is unsent, requests must wait, or a peer that sends requests and never reads would fill the memory.
    async fn write(
        &mut self,
        read: &mut impl ReadHalf,
        write: &mut impl WriteHalf,
        output: &[u8],
    ) -> Result<()> {
        let connection = self.connection;
        let outbox = &connection.outbox;
        let taken_before = self.bytes_taken();
        let writing = write.write(Messages::new(output));
        pin!(writing);
        let mut deadline_has_passed = false;
        while !connection.is_cut() {
            let is_over = self.must_yield() && self.yield_turn().await;
            if is_over || mem::take(&mut deadline_has_passed) && self.time_is_up() {
                let taken = self.bytes_taken().saturating_sub(taken_before);
                let taken = usize::try_from(taken).unwrap_or(usize::MAX);
                return self.give_up(output.get(taken..).unwrap_or_default());
            }
            let may_read = self.reading && !self.backlog.is_full();
            select! {
                // The end of the write first, because more output waits for it. Input next, because responses and cancellations
                // must not wait for a peer that reads slowly. Closing and the deadline last, as in `event_loop`.
                biased;
                result = &mut writing => {
                    self.since_write = 0;
                    self.bytes_done += output.len() as u64;
                    return result;
                }
                frame = read.read(), if may_read => {
                    self.arrived(frame, outbox.unsent())?;
                    self.take_ready(read);
                }
                () = outbox.attention() => self.check_closing(),
                () = self.deadline() => deadline_has_passed = true,
            }
        }
        Ok(())
    }

    /// Handles the responses that the peer sent before it stopped reading or ended.
    async fn take_last_answers(&mut self, read: &mut impl ReadHalf) {
        let connection = self.connection;
        connection.in_flight().refuse_new();
        let deadline = sleep_until(after(Instant::now(), LAST_ANSWERS));
        pin!(deadline);
        while self.reading && !connection.calls().is_empty() && !connection.is_cut() {
            if self.must_yield() && self.yield_turn().await {
                return;
            }
            select! {
                biased;
                // A peer that never pauses must not hide the deadline.
                () = &mut deadline => return,
                frame = read.read() => {
                    if self.arrived(frame, 0).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn check_closing(&mut self) {
        if self.connection.is_closing() {
            self.drain();
        }
    }

    fn drain(&mut self) {
        if self.phase == Phase::Open {
            let connection = self.connection;
            // Requests that the peer sent before it closed its side are answered, even if they had to wait.
            if self.backlog.is_empty() || connection.is_closing() {
                connection.in_flight().refuse_new();
            }
            if !self.reading && connection.role().side() == Side::Client {
                // The server that made the requests is gone, and cannot read the responses.
                connection.in_flight().cancel_all();
            }
            self.phase = Phase::Draining(self.end_of_drain());
        }
    }

    /// The deadline of the requests in flight, if the connection starts to close now.
    fn end_of_drain(&mut self) -> Instant {
        let limit = self.connection.limits.drain;
        *self
            .end_of_drain
            .get_or_insert_with(|| after(Instant::now(), limit))
    }

    fn is_done(&self, unsent: usize) -> bool {
        if self.phase == Phase::Open {
            return false;
        }
        let connection = self.connection;
        let settled = connection.in_flight().is_empty()
            && connection.calls().is_empty()
            // A task writes before it leaves one of the tables, so this is checked last.
            && unsent == 0
            && connection.outbox.unsent() == 0;
        settled || connection.is_cut()
    }

    async fn deadline(&self) {
        match self.phase {
            Phase::Open => std::future::pending().await,
            Phase::Draining(deadline) => sleep_until(deadline).await,
            Phase::Flushing(flush) => sleep_until(flush.deadline()).await,
        }
    }
}
