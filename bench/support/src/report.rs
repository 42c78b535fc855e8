//! The report of a run, and the latencies in it.

use std::time::Duration;

use serde::Serialize;

/// The report of a driver or client: one line of JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The calls answered in the measured window.
    pub calls: u64,
    /// The duration of the window, in seconds.
    pub seconds: f64,
    /// The number of calls per second.
    pub calls_per_second: f64,
    /// Half of the calls took at most this many microseconds.
    pub p50_us: f64,
    /// All but one in a hundred of the calls took at most this many microseconds.
    pub p99_us: f64,
    /// The CPU time, in seconds, that the reporting process used in the window.
    pub cpu_seconds: f64,
    /// The CPU time, in seconds, that the server used in the window.
    pub server_cpu_seconds: f64,
}

impl Report {
    /// Summarizes a window.
    #[must_use]
    pub fn new(
        latencies: Latencies,
        wall: Duration,
        own_cpu: Duration,
        server_cpu: Duration,
    ) -> Self {
        let calls = latencies.0.len() as u64;
        let (p50_us, p99_us) = latencies.percentiles();
        Self {
            calls,
            seconds: wall.as_secs_f64(),
            calls_per_second: calls as f64 / wall.as_secs_f64(),
            p50_us,
            p99_us,
            cpu_seconds: own_cpu.as_secs_f64(),
            server_cpu_seconds: server_cpu.as_secs_f64(),
        }
    }

    /// The line of JSON, without a newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers are always valid JSON")
    }
}

/// The latency of each call.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Adds the latency of one call.
    pub fn push(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// Adds the latencies of `other`.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    fn percentiles(mut self) -> (f64, f64) {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let index = (self.0.len().saturating_sub(1)) * percent / 100;
            self.0
                .get(index)
                .map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
        };
        (at(50), at(99))
    }
}
