//! Metrics of an endpoint and its stores, as the events that layers for OpenTelemetry turn into metrics.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use oxmcp::{
    Result,
    http::StreamableHttp,
    store::{Bus, Delivery, MemoryBus},
};
use tokio::time::sleep;

use crate::{
    http::{log_lines::LogLines, server::peer::Session},
    support::{calculator, subscribe},
};

/// A bus that may hang.
#[derive(Default)]
struct Hanging(MemoryBus, AtomicBool);

impl Bus for Hanging {
    async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        if self.1.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.0.publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        self.0.subscribe(topics).await
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_streams_stores_and_gaps_are_measured() {
    let log = LogLines::default();
    let _guard = subscribe(log.clone());
    let metrics = || {
        let mut lines = log.take();
        lines.retain(|line| line.contains(".oxmcp."));
        lines.dedup();
        lines
    };
    let bus = Arc::new(Hanging::default());
    let server = calculator().subscriptions();
    let endpoint = StreamableHttp::from(server.clone()).bus(Arc::clone(&bus));
    let endpoint = endpoint.without_event_store();
    tokio::task::yield_now().await;
    // The new subscription to the bus counts as a gap, since any message may have been missed before it.
    let subscribed = [
        "histogram.oxmcp.store.duration: 0.0",
        "gauge.oxmcp.store.up: 1",
        "monotonic_counter.oxmcp.bus.gaps: 1",
    ];
    assert_eq!(metrics(), subscribed);
    let session = Session::open(&endpoint).await;
    assert_eq!(metrics(), ["counter.oxmcp.server.sessions: 1"]);
    let stream = session.get().await;
    assert_eq!(metrics(), ["counter.oxmcp.server.streams: 1"]);
    drop(stream);
    assert_eq!(metrics(), ["counter.oxmcp.server.streams: -1"]);
    session.delete().await;
    while server.sessions().count() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(metrics(), ["counter.oxmcp.server.sessions: -1"]);
    bus.1.store(true, Ordering::Relaxed);
    server.resource_updated("test://a");
    sleep(Duration::from_secs(3)).await;
    let down = [
        "histogram.oxmcp.store.duration: 2.0",
        "gauge.oxmcp.store.up: 0",
    ];
    assert_eq!(metrics(), down);
    bus.1.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(6)).await;
    let up = [
        "histogram.oxmcp.store.duration: 0.0",
        "gauge.oxmcp.store.up: 1",
    ];
    assert_eq!(metrics(), up);
}
