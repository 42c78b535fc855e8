//! Bus over Redis pub/sub. Each subscription has its own connection, and ends with it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use oxmcp::{
    Result,
    store::{Bus, Delivery, MemoryBus},
};
use redis::Msg;
use tokio::task::JoinHandle;

use crate::{store::Redis, values::Values};

/// The kind of these values.
const MESSAGE: &str = "message";

impl Bus for Redis {
    async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        let channel = self.names.topic(topic);
        let kept = self.values.encode(MESSAGE, &channel, &message)?;
        let mut command = redis::cmd("PUBLISH");
        self.connection.run(command.arg(channel).arg(kept)).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        let topics = topics
            .iter()
            .map(|&it| (self.names.topic(it), it.to_owned()));
        let topics: HashMap<String, String> = topics.collect();
        let channels: Vec<_> = topics.keys().cloned().collect();
        let names: Vec<_> = topics.values().map(String::as_str).collect();
        let messages = self.connection.subscribe(&channels).await?;
        // This bus bounds the queue of messages, and reports missed ones.
        let waiting = Arc::new(MemoryBus::new());
        let deliveries = waiting.subscribe(&names).await?;
        let reader = read(messages, topics.clone(), self.values.clone(), waiting);
        let reader = Reader(tokio::spawn(reader));
        Ok(deliveries.take_until(reader).boxed())
    }
}

/// Reads messages until there are no more. Redis would buffer messages that are not read in time, and then close the connection.
async fn read(
    mut messages: BoxStream<'static, Msg>,
    topics: HashMap<String, String>,
    values: Values,
    waiting: Arc<MemoryBus>,
) {
    while let Some(message) = messages.next().await {
        let channel = message.get_channel_name();
        let opened = values.decode(MESSAGE, channel, message.get_payload_bytes());
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // The message is lost. The end of the subscription tells the subscriber.
                tracing::warn!(error = %error.error, "could not read a bus message; ending the subscription");
                return;
            }
        };
        if let Some(topic) = topics.get(channel)
            && waiting.publish(topic, opened.into()).await.is_err()
        {
            return;
        }
    }
}

/// A handle to the task that reads, which is aborted on drop.
struct Reader(JoinHandle<()>);

impl Future for Reader {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}
