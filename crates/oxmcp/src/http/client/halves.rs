//! The two halves of a connection to an endpoint.

use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use tokio::{select, time::timeout};

use crate::http::client::exchange::engine::{Engine, Event};
use crate::http::client::exchange::known::Known;
use crate::http::client::exchange::message::Outgoing;
use crate::http::client::exchange::shared::{Link, UNTAKEN};
use crate::{
    Result,
    transport::{Frame, Messages, ReadHalf, WriteHalf},
};

/// How long what was sent last may take to be taken before the session is ended, and what is being opened to be open.
const TAKING: Duration = Duration::from_secs(2);
/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(5);

/// What drives a connection. The two halves are used by one task.
type Shared = Arc<Mutex<Engine>>;

/// Reads the messages that a server sends to an [`Endpoint`](crate::http::Endpoint).
///
/// What was sent goes on while this half reads or the other writes. One task must use both, as the trait says: whichever half
/// was polled last, its task is the one that is woken.
pub struct EndpointReader {
    engine: Shared,
    current: Bytes,
}

/// Sends messages to the server of an [`Endpoint`](crate::http::Endpoint). Closing it ends the session.
///
/// The task that uses the [`EndpointReader`] must use it, too.
pub struct EndpointWriter {
    link: Arc<Link>,
    engine: Shared,
    known: Known,
}

pub(crate) fn halves(engine: Engine, link: Arc<Link>) -> (EndpointReader, EndpointWriter) {
    let engine = Arc::new(Mutex::new(engine));
    let reader = EndpointReader {
        engine: Arc::clone(&engine),
        current: Bytes::new(),
    };
    let writer = EndpointWriter {
        link,
        engine,
        known: Known::default(),
    };
    (reader, writer)
}

/// Goes on with all that runs, for ever.
async fn run(engine: &Shared) {
    poll_fn(|cx| {
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.run(cx);
        Poll::<()>::Pending
    })
    .await;
}

async fn next(engine: &Shared) -> Event {
    poll_fn(|cx| {
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.poll_event(cx)
    })
    .await
}

impl ReadHalf for EndpointReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        match next(&self.engine).await {
            Event::Message(message) => {
                self.current = message;
                Ok(Some(Frame::Message(&self.current)))
            }
            Event::Failed(id, error) => Ok(Some(Frame::Failed { id, error })),
            Event::End(error) => Err(error),
        }
    }
}

impl WriteHalf for EndpointWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        for message in messages {
            let link = &self.link;
            let read = Outgoing::read(message, &link.wire.posted, &link.mirror, &mut self.known);
            let message = match read {
                Ok(message) => message,
                Err((Some(id), error)) => {
                    self.link.refuse(id, error);
                    continue;
                }
                Err((None, error)) => return Err(error),
            };
            // Where it has to wait, what it waits for must go on, also while nobody reads.
            select! {
                biased;
                () = self.link.begin(message) => {}
                () = run(&self.engine) => {}
            }
        }
        // Most often it is the task that writes which reads next.
        poll_fn(|cx| {
            self.link.inlet.rouse(cx.waker());
            Poll::Ready(())
        })
        .await;
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        let link = &self.link;
        let closing = async {
            // What was told before is taken before the end, as far as possible.
            let _taken = timeout(TAKING, link.untaken.acquire_many(UNTAKEN)).await;
            // A session that is just being opened is the one to be ended.
            let _renewed = timeout(TAKING, link.renewing.lock()).await;
            link.leave(&link.session()).await;
        };
        let running = async {
            loop {
                // Nobody reads any more.
                next(&self.engine).await;
            }
        };
        let closed = timeout(CLOSING, async {
            select! {
                biased;
                () = closing => {}
                () = running => {}
            }
        });
        if closed.await.is_err() {
            tracing::debug!("the server did not end the session in time");
        }
        Ok(())
    }
}

impl fmt::Debug for EndpointReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointReader").finish_non_exhaustive()
    }
}

impl fmt::Debug for EndpointWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointWriter").finish_non_exhaustive()
    }
}
