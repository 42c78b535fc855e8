//! The exchanges that run, driven by whoever reads.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;

use crate::{Error, jsonrpc::RequestId};

/// How many events may wait for the reader. One who does not read holds the exchanges up, and those their servers.
const QUEUED: usize = 16;

/// What the reader is told.
#[derive(Debug)]
pub(super) enum Event {
    Message(Bytes),
    /// One call failed.
    Failed(RequestId, Error),
    /// The connection is over.
    End(Error),
}

pub(super) type Exchange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All exchanges of a connection. They need no tasks of their own: the driver of the connection polls them as it reads.
pub(super) struct Engine {
    begun: mpsc::UnboundedReceiver<Exchange>,
    running: FuturesUnordered<Exchange>,
    events: mpsc::Receiver<Event>,
}

/// The way into an engine.
#[derive(Clone)]
pub(super) struct Inlet {
    begin: mpsc::UnboundedSender<Exchange>,
    events: mpsc::Sender<Event>,
}

impl Engine {
    #[expect(
        clippy::disallowed_methods,
        reason = "calls are bounded by their callers, and all else by who begins it"
    )]
    pub(super) fn new() -> (Self, Inlet) {
        let (begin, begun) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(QUEUED);
        let engine = Self {
            begun,
            running: FuturesUnordered::new(),
            events,
        };
        let inlet = Inlet {
            begin,
            events: sender,
        };
        (engine, inlet)
    }

    /// The next event. Until there is one, all that runs goes on.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(Some(event)) = self.events.poll_recv(cx) {
            return Poll::Ready(event);
        }
        self.run(cx);
        // What runs may have said something just now.
        match self.events.poll_recv(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(event),
            _ => Poll::Pending,
        }
    }

    /// Goes on with all that runs and can go on, without a look at what it says. It waits then until that is read.
    pub(super) fn run(&mut self, cx: &mut Context<'_>) {
        loop {
            while let Poll::Ready(Some(exchange)) = self.begun.poll_recv(cx) {
                self.running.push(exchange);
            }
            // One that ends may have begun another.
            if !matches!(self.running.poll_next_unpin(cx), Poll::Ready(Some(()))) {
                return;
            }
        }
    }
}

impl Inlet {
    /// Begins an exchange, which goes on while somebody reads.
    pub(super) fn begin(&self, exchange: impl Future<Output = ()> + Send + 'static) {
        // After the end of the connection nothing is begun.
        let _ = self.begin.send(Box::pin(exchange));
    }

    /// Tells the reader.
    pub(super) async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }
}
