//! When a connection has had time enough: one timer looks now and then whether it still waits for the same.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::heads::Heads;

/// How long the head of a request may take at least, and how long a connection over HTTP/1 may wait for the next one. Clients
/// give up their idle connections after 90 s at most: so it is them who do, and no request is lost on its way.
pub(super) const HEAD: Duration = Duration::from_secs(100);

/// How often the timer looks while something may not last longer than it may: what it finds is late by that much at most,
/// twice.
const LOOKS: u32 = 4;
/// It never looks more often than that.
const SHORTEST: Duration = Duration::from_millis(10);

/// Whether a connection takes what is written to it: a number that is odd while it takes nothing, and never the same again.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes(Arc<AtomicU64>);

impl Writes {
    /// Something was to be written. Only the connection's own task says so.
    pub(super) fn note(&self, written: &Poll<io::Result<usize>>) {
        let number = self.0.load(Ordering::Relaxed);
        if written.is_pending() != is_odd(number) {
            self.0.store(number + 1, Ordering::Relaxed);
        }
    }

    /// The number of the write that waits.
    fn waiting(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|number| is_odd(*number))
    }
}

fn is_odd(number: u64) -> bool {
    number % 2 == 1
}

/// Waits until a connection has waited too long for a head, or has taken nothing of what is written to it for as long as
/// `stall`. Says which.
pub(super) async fn overdue(
    heads: Option<&Heads>,
    writes: &Writes,
    stall: Duration,
) -> &'static str {
    let shortest = heads.map_or(stall, |_| stall.min(HEAD));
    let pause = (shortest / LOOKS).max(SHORTEST);
    let (mut head, mut write) = (Since::default(), Since::default());
    loop {
        sleep(pause).await;
        if head.has_lasted(HEAD, heads.and_then(Heads::waiting)) {
            return "a connection was idle for too long";
        }
        if write.has_lasted(stall, writes.waiting()) {
            return "a client took nothing of what was written to it";
        }
    }
}

/// What is waited for, and when that was seen first.
#[derive(Debug, Default)]
struct Since(Option<(u64, Instant)>);

impl Since {
    fn has_lasted(&mut self, limit: Duration, waiting: Option<u64>) -> bool {
        let now = Instant::now();
        let begun = match self.0 {
            Some((same, begun)) if waiting == Some(same) => begun,
            _ => now,
        };
        self.0 = waiting.map(|number| (number, begun));
        self.0.is_some() && now - begun >= limit
    }
}
