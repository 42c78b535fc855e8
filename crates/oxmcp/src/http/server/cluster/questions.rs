//! The questions of this node, that is, its requests to clients. Another node that receives an answer leaves it in the store, and
//! this node reads it from there.

use std::sync::{Arc, Weak};

use tokio::{runtime::Handle, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::leased::{LEASE, RETRY, changed};
use crate::{
    http::server::sessions::{Session, StreamKey, log},
    session::{
        connection::Caller,
        outbound::calls::Announcement,
        task::{spawn, spawn_on},
    },
    store::{AnyEventStore, ClaimMode, Replay, StreamWrite},
    transport::traits::Frame,
};

/// The location of the stream for the answer to a question.
pub(crate) fn place(store: &Arc<dyn AnyEventStore>, session: &Arc<str>, id: i64) -> StreamKey {
    StreamKey {
        store: Arc::clone(store),
        session: Arc::clone(session),
        stream: format!("a{id}").into(),
    }
}

/// Looks in the store for answers to all questions of a session.
pub(crate) fn look_for_answers(session: &Arc<Session>, store: &Arc<dyn AnyEventStore>) {
    let (weak, store) = (Arc::downgrade(session), Arc::clone(store));
    let id = Arc::clone(session.id());
    let calls = session.connection().calls();
    calls.announce_by(Box::new(move |call| {
        let (weak, place) = (Weak::clone(&weak), place(&store, &id, call));
        Box::pin(async move { Box::new(Question::begin(weak, place).await) as _ })
    }));
}

/// A question. Dropping it stops the search for its answer.
struct Question {
    place: StreamKey,
    runtime: Handle,
    _looking: AbortOnDropHandle<()>,
}

impl Announcement for Question {}

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

/// Creates the stream where other nodes leave an answer, which they do only if it exists. The lease is never used for writing.
/// Returns false if the store failed.
async fn open(place: &StreamKey) -> bool {
    let begun = place.claim(ClaimMode::IfFree, LEASE).await;
    let is_open = begun.is_ok();
    log(begun.map(drop));
    is_open
}

impl Drop for Question {
    fn drop(&mut self) {
        let place = self.place.clone();
        spawn_on(&self.runtime, async move {
            // Answers that arrive now are too late.
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
        changed(&place, 0, was_told).await;
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
