//! Metrics, as events of `tracing` whose fields name an instrument each: `counter.…`, `monotonic_counter.…`, `histogram.…` and
//! `gauge.…`, which layers for OpenTelemetry know.

#[cfg(feature = "http-server")]
use std::time::Duration;

/// The target of the events, which programs switch on by it.
const TARGET: &str = "oxmcp::metrics";

/// More sessions are open than before, or fewer.
pub(crate) fn sessions(change: i64) {
    tracing::trace!(target: TARGET, { counter.oxmcp.server.sessions = change }, "sessions");
}

/// A stream of events over HTTP, which is open for as long as this lives.
#[cfg(feature = "http-server")]
#[derive(Debug)]
pub(crate) struct OpenStream(());

#[cfg(feature = "http-server")]
impl OpenStream {
    pub(crate) fn new() -> Self {
        streams(1);
        Self(())
    }
}

#[cfg(feature = "http-server")]
impl Drop for OpenStream {
    fn drop(&mut self) {
        streams(-1);
    }
}

#[cfg(feature = "http-server")]
fn streams(change: i64) {
    tracing::trace!(target: TARGET, { counter.oxmcp.server.streams = change }, "streams");
}

/// A store was asked, and has answered or failed after so long.
#[cfg(feature = "http-server")]
pub(crate) fn store_asked(store: &str, took: Duration, error: Option<&str>) {
    tracing::trace!(
        target: TARGET,
        {
            histogram.oxmcp.store.duration = took.as_secs_f64(),
            oxmcp.store = store,
            error.type = error
        },
        "a store was asked"
    );
}

/// A store answers, or does not any more.
#[cfg(feature = "http-server")]
pub(crate) fn store_answers(store: &str, answers: bool) {
    tracing::trace!(
        target: TARGET,
        { gauge.oxmcp.store.up = u64::from(answers), oxmcp.store = store },
        "a store answers, or not"
    );
}

/// Messages of a bus may have been lost.
#[cfg(feature = "http-server")]
pub(crate) fn bus_gap() {
    tracing::trace!(target: TARGET, { monotonic_counter.oxmcp.bus.gaps = 1_u64 }, "gap");
}
