//! A bus in memory, with bounded queues.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_core::{Stream, stream::BoxStream};

use super::bus::{Bus, Delivery};
use crate::{error::Result, sync::Mutex};

/// A [`Bus`] in the memory of this process, for tests, and for several endpoints in one process (as an `Arc`).
///
/// The queue of each subscriber is bounded. If it overflows, all of its messages are dropped, and the subscriber is notified
/// that it missed some.
///
/// ```
/// use oxmcp::store::MemoryBus;
///
/// let bus = MemoryBus::new().max_waiting(100).max_waiting_bytes(1 << 20);
/// # let _ = bus;
/// ```
pub struct MemoryBus {
    max_waiting: usize,
    max_waiting_bytes: usize,
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
}

struct Subscriber {
    topics: Vec<Arc<str>>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Arc<str>, Bytes)>,
    bytes: usize,
    has_missed: bool,
    waker: Option<Waker>,
}

impl MemoryBus {
    /// Creates a bus with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_waiting: 4096,
            max_waiting_bytes: 16 << 20,
            subscribers: Mutex::default(),
        }
    }

    /// Sets the maximum number of messages in the queue of a subscriber. Default: 4096.
    #[must_use]
    pub fn max_waiting(mut self, messages: usize) -> Self {
        self.max_waiting = messages;
        self
    }

    /// Sets the maximum number of bytes in the queue of a subscriber. Default: 16 MiB, enough for some large results.
    #[must_use]
    pub fn max_waiting_bytes(mut self, bytes: usize) -> Self {
        self.max_waiting_bytes = bytes;
        self
    }

    fn add(&self, subscriber: &Subscriber, topic: &str, message: &Bytes) {
        let Some(topic) = subscriber.topics.iter().find(|it| &***it == topic) else {
            return;
        };
        let mut queue = subscriber.queue.lock();
        queue
            .waiting
            .push_back((Arc::clone(topic), message.clone()));
        queue.bytes += message.len();
        if queue.waiting.len() > self.max_waiting || queue.bytes > self.max_waiting_bytes {
            queue.waiting.clear();
            queue.bytes = 0;
            queue.has_missed = true;
        }
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Bus for MemoryBus {
    async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        // The lock is held meanwhile, so that all subscribers see the same order.
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|it| {
            let subscriber = it.upgrade();
            if let Some(subscriber) = &subscriber {
                self.add(subscriber, topic, &message);
            }
            subscriber.is_some()
        });
        Ok(())
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        let subscriber = Arc::new(Subscriber {
            topics: topics.iter().map(|topic| Arc::from(*topic)).collect(),
            queue: Mutex::default(),
        });
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|it| it.strong_count() > 0);
        subscribers.push(Arc::downgrade(&subscriber));
        Ok(Box::pin(Subscription(subscriber)))
    }
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBus")
            .field("subscribers", &self.subscribers.lock().len())
            .finish_non_exhaustive()
    }
}

/// The deliveries to one subscriber. The subscription ends when this is dropped.
struct Subscription(Arc<Subscriber>);

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        let mut queue = self.0.queue.lock();
        if std::mem::take(&mut queue.has_missed) {
            return Poll::Ready(Some(Delivery::Missed));
        }
        if let Some((topic, message)) = queue.waiting.pop_front() {
            queue.bytes -= message.len();
            return Poll::Ready(Some(Delivery::Message { topic, message }));
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
