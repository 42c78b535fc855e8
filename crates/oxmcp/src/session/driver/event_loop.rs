//! The one loop of a connection: nothing else reads from the transport or writes to it.

use std::sync::Arc;

use tokio::{pin, select, task::yield_now};

use crate::{
    Result,
    session::{
        Connection,
        connection::Outcome,
        outbox::Due,
        pump::{MESSAGES_IN_A_ROW, Pump},
        room::Room,
    },
    transport::{ReadHalf, WriteHalf},
};

/// Drives a connection until it ends.
pub(crate) async fn drive(
    connection: Arc<Connection>,
    mut read: impl ReadHalf,
    mut write: impl WriteHalf,
) {
    let end = End(connection);
    let connection = &end.0;
    let outcome = match converse(connection, &mut read, &mut write).await {
        Ok(()) => Outcome::Closed,
        Err(error) => Outcome::Failed(error.message().to_owned()),
    };
    if matches!(outcome, Outcome::Closed) || connection.is_closing() {
        // What has arrived is handled while the session is still one.
        connection.lane().flush(connection.limits.drain).await;
    }
    connection.cut(outcome);
    if let Err(error) = close(&mut read, &mut write).await {
        tracing::debug!(%error, "the transport did not close cleanly");
    }
}

/// Closes the transport. What the peer still says is read and dropped meanwhile: one that is not done with writing would
/// not see the end.
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
        if in_a_row % MESSAGES_IN_A_ROW == 0 {
            yield_now().await;
        }
    }
}

/// Ends a connection, also where its transport panics or its runtime goes away: nobody must wait for ever.
struct End(Arc<Connection>);

impl Drop for End {
    fn drop(&mut self) {
        self.0
            .cut(Outcome::Failed("the connection was torn down".to_owned()));
        self.0.finished();
    }
}

/// Preference: what arrives, while it is already here and little waits to be written; then what is to be written. So
/// many small messages become one write, which goes out as soon as there is nothing more to read.
async fn converse(
    connection: &Arc<Connection>,
    read: &mut impl ReadHalf,
    write: &mut impl WriteHalf,
) -> Result<()> {
    let mut pump = Pump::new(connection);
    let mut batch = Vec::new();
    let mut room = Room::default();
    loop {
        if pump.is_due_to_give_way() && pump.give_way().await {
            return Ok(());
        }
        let unsent = connection.outbox.unsent();
        if pump.take_kept(unsent) {
            continue;
        }
        if pump.is_done(unsent) {
            return Ok(());
        }
        let may_read = pump.may_read(unsent) && !(unsent > 0 && read.is_drained());
        // Mostly there is an answer now, and nothing more to read.
        let due = if may_read || pump.lets_others_go_first() {
            None
        } else {
            connection.outbox.take_now(&mut batch)
        };
        let due = match due {
            Some(due) => due,
            None => select! {
                biased;
                frame = read.read(), if may_read => {
                    pump.arrived(frame, unsent)?;
                    pump.take_ready(read);
                    continue;
                }
                () = connection.turns.others(), if pump.lets_others_go_first() => {
                    pump.others_had_their_turn();
                    continue;
                }
                due = connection.outbox.take(&mut batch, pump.gathers()), if !pump.lets_others_go_first() => due,
                () = pump.deadline() => return Ok(()),
            },
        };
        match due {
            Due::Attention => pump.look_around(),
            Due::Write => {
                if let Err(error) = pump.write(read, write, &batch).await {
                    pump.last_words(read).await;
                    return Err(error);
                }
                connection.outbox.wrote(&mut batch, &mut room);
            }
        }
    }
}
