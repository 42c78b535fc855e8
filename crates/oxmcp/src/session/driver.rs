//! The one loop of a connection: nothing else reads from the transport or writes to it.

use std::sync::Arc;

use tokio::{
    pin, select,
    task::yield_now,
    time::{Instant, sleep_until},
};

use crate::{
    Error, Result,
    session::{Connection, Side, connection::Outcome, outbox::Due},
    transport::{Frame, Messages, ReadHalf, WriteHalf},
};

/// So many messages are taken in a row before other tasks get their turn.
const MESSAGES_IN_A_ROW: u32 = 64;
/// So much output is written before more input is taken, so that answers do not wait for a busy peer's pause.
const WRITE_FIRST: usize = 64 << 10;

/// Drives a connection until it ends.
pub(crate) async fn drive(
    connection: Arc<Connection>,
    mut read: impl ReadHalf,
    mut write: impl WriteHalf,
) {
    let outcome = match converse(&connection, &mut read, &mut write).await {
        Ok(()) => Outcome::Closed,
        Err(error) => Outcome::Failed(error.message().to_owned()),
    };
    connection.cut(outcome);
    if let Err(error) = write.close().await {
        tracing::debug!(%error, "the transport did not close cleanly");
    }
    connection.finished();
}

/// Where a connection is in its life. It only ever moves downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing new is begun; what runs may finish until the deadline.
    Draining(Instant),
}

struct Pump<'a> {
    connection: &'a Arc<Connection>,
    phase: Phase,
    /// Whether the peer may still send something.
    reading: bool,
    in_a_row: u32,
}

/// Preference: what arrives, while it is already here and little waits to be written; then what is to be written. So
/// many small messages become one write, which goes out as soon as there is nothing more to read.
async fn converse(
    connection: &Arc<Connection>,
    read: &mut impl ReadHalf,
    write: &mut impl WriteHalf,
) -> Result<()> {
    let mut pump = Pump {
        connection,
        phase: Phase::Open,
        reading: true,
        in_a_row: 0,
    };
    let mut batch = Vec::new();
    loop {
        if pump.is_done() {
            return Ok(());
        }
        let may_read = pump.reading && connection.outbox.unsent() < WRITE_FIRST;
        select! {
            biased;
            frame = read.read(), if may_read => pump.arrived(frame)?,
            due = connection.outbox.take(&mut batch) => match due {
                Due::Attention => pump.look_around(),
                Due::Write => {
                    pump.write(read, write, &batch).await?;
                    connection.outbox.wrote(&mut batch);
                }
            },
            () = pump.deadline() => return Ok(()),
        }
        if pump.in_a_row >= MESSAGES_IN_A_ROW {
            pump.in_a_row = 0;
            yield_now().await;
        }
    }
}

impl Pump<'_> {
    fn arrived(&mut self, frame: Result<Option<Frame<'_>>>) -> Result<()> {
        match frame? {
            Some(frame) => {
                self.in_a_row += 1;
                self.connection.take(frame);
            }
            None => {
                self.reading = false;
                self.connection
                    .calls
                    .close("the peer closed the connection");
                self.drain();
            }
        }
        Ok(())
    }

    /// Writes a batch, and goes on reading while the peer takes its time: answers and cancellations must not wait.
    /// Requests must, once too much is unsent, or a peer that asks and never reads would fill our memory.
    async fn write(
        &mut self,
        read: &mut impl ReadHalf,
        write: &mut impl WriteHalf,
        batch: &[u8],
    ) -> Result<()> {
        let connection = Arc::clone(self.connection);
        let outbox = &connection.outbox;
        let writing = write.write(Messages::new(batch));
        pin!(writing);
        loop {
            let may_read = self.reading && !outbox.is_full();
            select! {
                biased;
                result = &mut writing => {
                    result?;
                    break;
                }
                frame = read.read(), if may_read => self.arrived(frame)?,
                () = outbox.attention(), if self.phase == Phase::Open => self.look_around(),
                () = self.deadline() => return Err(Error::closed("the peer stopped reading")),
            }
        }
        Ok(())
    }

    fn look_around(&mut self) {
        if self.connection.is_closing() {
            self.drain();
        }
    }

    fn drain(&mut self) {
        if self.phase == Phase::Open {
            self.connection.in_flight.drain();
            if !self.reading && self.connection.role().side() == Side::Client {
                // The server that asked is gone: nobody waits for the answers.
                self.connection.in_flight.cancel_all();
            }
            self.phase = Phase::Draining(Instant::now() + self.connection.limits.drain);
        }
    }

    fn is_done(&self) -> bool {
        self.phase != Phase::Open
            && self.connection.in_flight.is_empty()
            && self.connection.calls.is_empty()
            && self.connection.outbox.unsent() == 0
    }

    async fn deadline(&self) {
        match self.phase {
            Phase::Open => std::future::pending().await,
            Phase::Draining(deadline) => sleep_until(deadline).await,
        }
    }
}
