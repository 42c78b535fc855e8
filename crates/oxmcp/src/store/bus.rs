//! Bus between nodes: the trait.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use futures_core::stream::BoxStream;

use crate::error::Result;

/// Carries messages between the nodes of a server: that a session has changed or is over, cancellations and progress that came to
/// another node than the one that they are for, and what lists and resources have changed.
///
/// A message comes at most once, and may be lost: a subscription then [says so](Delivery::Missed), and the node looks
/// at everything again. Those of one publisher on one topic come in their order. A node hears what it publishes itself.
/// Messages carry what clients and servers say: who can read the bus can read that.
///
/// # Writing one
/// Implement it with plain `async fn`s, and hold it against [the contract](crate::testing::bus_contract). Who uses it gives up each
/// call after two seconds. A node subscribes to one topic for sessions and one for changes, whose names are letters, digits, `.` and `-`,
/// and has one subscription to each at a time; a message has some hundred bytes, and at most a little more than
/// [`HttpLimits::max_body_bytes`](crate::HttpLimits).
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
    /// Tells all that have subscribed to a topic.
    ///
    /// # Errors
    /// Where it is known that not all were told, or that may be.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the message may be told or not.
    fn publish(&self, topic: &str, message: Bytes) -> impl Future<Output = Result<()>> + Send;

    /// Subscribes to topics: what is published once this returns is delivered, or said to be missed. The stream ends where no more can
    /// come; its subscriber then subscribes anew, and takes it for [`Delivery::Missed`].
    ///
    /// What waits to be taken is bounded: where a subscriber is too slow, or a connection was lost, it is told that it has missed
    /// something.
    ///
    /// # Errors
    /// Where the bus cannot be asked.
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

/// What a subscription to a [`Bus`] brings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// A message.
    Message {
        /// The topic that it was published on.
        topic: Arc<str>,
        /// The message.
        message: Bytes,
    },
    /// Any number of messages may have been lost, of any of the topics, before those that follow.
    Missed,
}
