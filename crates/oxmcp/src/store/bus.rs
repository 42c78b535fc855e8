//! The trait of the bus between nodes.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use futures_core::stream::BoxStream;

use crate::error::Result;

/// Carries messages between the nodes of a server: changes and ends of sessions, changes of lists and resources, and
/// cancellations and progress that arrive at a different node than the one that serves the request.
///
/// A message is delivered at most once. If messages are lost, the subscription [reports it](Delivery::Missed), and the node
/// checks all of its state again. The messages of one publisher on one topic are delivered in order. A node also receives its
/// own messages. Messages contain data of clients and servers, which anything with read access to the bus can read.
///
/// # Implementing a bus
/// Implement the trait with plain `async fn`s, and check it with [the contract](crate::testing::bus_contract). Each call times
/// out after two seconds. A node subscribes to one topic for sessions and one for changes, with one subscription to each at a
/// time. Names of topics consist of letters, digits, `.` and `-`. A message has some hundred bytes, and at most a little more
/// than [`HttpLimits::max_body_bytes`](crate::HttpLimits).
///
/// ```
/// use std::sync::Arc;
/// use oxmcp::{store::MemoryBus, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::bus_contract(|| async {
///     let bus = Arc::new(MemoryBus::new());
///     (Arc::clone(&bus), bus)
/// })
/// .await
/// # }
/// ```
pub trait Bus: Send + Sync + 'static {
    /// Publishes a message to all subscribers of a topic.
    ///
    /// # Errors
    /// If some subscribers may not receive the message.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the message may or may not have been published.
    fn publish(&self, topic: &str, message: Bytes) -> impl Future<Output = Result<()>> + Send;

    /// Subscribes to topics. Messages that are published after this returns are delivered, or reported as missed. The stream
    /// ends if no more messages can arrive; its subscriber then subscribes again, and treats this as [`Delivery::Missed`].
    ///
    /// The queue of a subscriber is bounded. If the subscriber is too slow, or a connection was lost, the subscription reports
    /// missed messages.
    ///
    /// # Errors
    /// If the bus cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe.
    fn subscribe(
        &self,
        topics: &[&str],
    ) -> impl Future<Output = Result<BoxStream<'static, Delivery>>> + Send;
}

impl<B: Bus> Bus for Arc<B> {
    async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        (**self).publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        (**self).subscribe(topics).await
    }
}

/// An item of a subscription to a [`Bus`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// A message.
    Message {
        /// The topic on which it was published.
        topic: Arc<str>,
        /// The message.
        message: Bytes,
    },
    /// Messages were possibly lost: any number, of any of the topics, before those that follow.
    Missed,
}
