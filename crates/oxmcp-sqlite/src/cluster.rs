//! Implementation of `Cluster` for a single node that restarts: its keys, and a bus in memory.

use bytes::Bytes;
use futures_core::stream::BoxStream;
use oxmcp::{
    Result,
    http::Cluster,
    keys::SharedKeys,
    store::{Bus, Delivery},
};

use crate::store::Sqlite;

impl Bus for Sqlite {
    async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        self.bus.publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        self.bus.subscribe(topics).await
    }
}

impl Cluster for Sqlite {
    fn shared_keys(&self) -> SharedKeys {
        self.keys.clone()
    }

    /// Nothing to compare with, since no other process can open the file.
    async fn compare(&self, _fact: &str, _value: &str) -> Result<Option<String>> {
        Ok(None)
    }
}
