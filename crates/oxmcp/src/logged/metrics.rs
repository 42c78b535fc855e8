//! Metrics, as `tracing` events whose fields each name an instrument: `counter.…`, `monotonic_counter.…`, `histogram.…` and
//! `gauge.…`, which OpenTelemetry layers recognize.

#[cfg(feature = "http-server")]
use std::time::Duration;

/// The target of the events, by which programs enable them.
const TARGET: &str = "oxmcp::metrics";

/// Records a change of the number of open sessions.
pub(crate) fn sessions(change: i64) {
    tracing::trace!(target: TARGET, { counter.oxmcp.server.sessions = change }, "sessions");
}

/// An open event stream over HTTP, which is counted as long as this value exists.
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

/// Records the duration of a store call, and its error.
#[cfg(feature = "http-server")]
pub(crate) fn store_asked(store: &str, took: Duration, error: Option<&str>) {
    tracing::trace!(
        target: TARGET,
        {
            histogram.oxmcp.store.duration = took.as_secs_f64(),
            oxmcp.store = store,
            error.type = error
        },
        "store call"
    );
}

/// Records whether a store is available.
#[cfg(feature = "http-server")]
pub(crate) fn store_answers(store: &str, answers: bool) {
    tracing::trace!(
        target: TARGET,
        { gauge.oxmcp.store.up = u64::from(answers), oxmcp.store = store },
        "store availability"
    );
}

/// Records that messages of a bus may have been lost.
#[cfg(feature = "http-server")]
pub(crate) fn bus_gap() {
    tracing::trace!(target: TARGET, { monotonic_counter.oxmcp.bus.gaps = 1_u64 }, "gap");
}
