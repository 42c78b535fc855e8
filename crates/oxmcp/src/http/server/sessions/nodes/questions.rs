//! Questions of this node, which are its requests to clients: an answer that another node receives is left in the store, and read
//! from there.

use std::sync::{Arc, Weak};

use tokio::{runtime::Handle, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::super::{
    persistence::log,
    session::Session,
    stored_events::LEASE,
    stream_writer::{RETRY, StreamKey},
};
use crate::{
    session::{
        connection::Caller,
        task::{spawn, spawn_on},
    },
    store::{AnyEventStore, Claim, Replay, StreamWrite},
    transport::traits::Frame,
};

/// The location of the stream in which the answer to a question is left.
pub(super) fn place(store: &Arc<dyn AnyEventStore>, session: &Arc<str>, id: i64) -> StreamKey {
    StreamKey {
        store: Arc::clone(store),
        session: Arc::clone(session),
        stream: format!("a{id}").into(),
    }
}

/// Looks for answers in the store to all questions of a session.
pub(super) fn look_for_answers(session: &Arc<Session>, store: &Arc<dyn AnyEventStore>) {
    let (weak, store) = (Arc::downgrade(session), Arc::clone(store));
    let id = Arc::clone(session.id());
    let calls = session.connection().calls();
    calls.announce_by(Box::new(move |call| {
        let (weak, place) = (Weak::clone(&weak), place(&store, &id, call));
        Box::pin(async move { Box::new(Question::begin(weak, place).await) as _ })
    }));
}

/// A question whose answer is looked for until this is dropped.
struct Question {
    place: StreamKey,
    runtime: Handle,
    _looking: AbortOnDropHandle<()>,
}

impl Question {
    async fn begin(session: Weak<Session>, place: StreamKey) -> Self {
        let is_open = open(&place).await;
        Self {
            runtime: Handle::current(),
            _looking: AbortOnDropHandle::new(spawn(look(session, place.clone(), is_open))),
            place,
        }
    }
}

/// Creates the stream in which other nodes leave an answer: they do so only if it exists. No node writes it under this lease. Returns
/// false if the store has failed.
async fn open(place: &StreamKey) -> bool {
    let begun = place.claim(Claim::IfFree, LEASE).await;
    let is_open = begun.is_ok();
    log(begun.map(drop));
    is_open
}

impl Drop for Question {
    fn drop(&mut self) {
        let place = self.place.clone();
        spawn_on(&self.runtime, async move {
            // Answers that come now are too late.
            log(place
                .append(StreamWrite::default().ending())
                .await
                .map(drop));
        });
    }
}

async fn look(session: Weak<Session>, place: StreamKey, mut is_open: bool) {
    let mut was_told = false;
    loop {
        if !is_open {
            sleep(RETRY).await;
            is_open = open(&place).await;
            continue;
        }
        place.changed(0, was_told).await;
        was_told = true;
        match place.after(0, 1).await {
            Ok(Replay::Events { events, ended }) => {
                if let (Some(answer), Some(session)) = (events.first(), session.upgrade()) {
                    session
                        .branch(Caller::default())
                        .take(Frame::Message(answer));
                    return;
                }
                if ended {
                    return;
                }
            }
            // The store has evicted or forgotten the stream.
            Ok(Replay::Lost) => is_open = false,
            Err(error) => {
                log(Err(error));
                sleep(RETRY).await;
            }
        }
    }
}
