//! When a connection has had time enough: one timer for all of them looks now and then whether each still waits for the same.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::Instant;

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

/// What a connection shows of itself.
#[derive(Clone, Debug)]
pub(super) struct Signs {
    pub(super) heads: Heads,
    pub(super) writes: Writes,
}

impl Signs {
    pub(super) fn new() -> Self {
        Self {
            heads: Heads::new(),
            writes: Writes::default(),
        }
    }
}

/// How often connections are looked at, of which none may take nothing of what is written to it for as long as `stall`.
pub(super) fn pause(stall: Duration) -> Duration {
    (stall.min(HEAD) / LOOKS).max(SHORTEST)
}

/// One connection, as it was seen of late.
#[derive(Debug)]
pub(super) struct Watch {
    signs: Signs,
    head: Since,
    write: Since,
}

impl Watch {
    pub(super) fn new(signs: Signs) -> Self {
        Self {
            signs,
            head: Since::default(),
            write: Since::default(),
        }
    }

    /// Says it where the connection has waited too long for a head, or has taken nothing of what is written to it for as long
    /// as `stall`.
    pub(super) fn is_overdue(&mut self, stall: Duration) -> Option<&'static str> {
        if self.head.has_lasted(HEAD, self.signs.heads.waiting()) {
            return Some("a connection was idle for too long");
        }
        let is_stalled = self.write.has_lasted(stall, self.signs.writes.waiting());
        is_stalled.then_some("a client took nothing of what was written to it")
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
