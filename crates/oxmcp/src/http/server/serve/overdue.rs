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

use super::heads::{Awaited, Heads};
use crate::Limits;

/// How long the head of a request may take at least.
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

/// How long a connection may take for what, besides the [head](HEAD) of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// To begin with the next request.
    idle: Duration,
    /// To take anything of what is written to it.
    stall: Duration,
}

impl Patience {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            idle: limits.http_connection_idle,
            stall: limits.http_stall,
        }
    }

    /// How often connections are looked at.
    pub(super) fn pause(self) -> Duration {
        (self.stall.min(self.idle).min(HEAD) / LOOKS).max(SHORTEST)
    }
}

/// One connection, as it was seen of late.
#[derive(Debug)]
pub(super) struct Watch {
    signs: Signs,
    head: Since<Awaited>,
    write: Since<u64>,
}

impl Watch {
    pub(super) fn new(signs: Signs) -> Self {
        Self {
            signs,
            head: Since(None),
            write: Since(None),
        }
    }

    /// Says it where the client has taken longer for something than it may.
    pub(super) fn is_overdue(&mut self, patience: Patience) -> Option<&'static str> {
        let awaited = self.signs.heads.waiting();
        let (limit, why) = match awaited {
            Some(Awaited::Rest(_)) => (HEAD, "a client did not finish the head of its request"),
            _ => (patience.idle, "a connection was idle for too long"),
        };
        if self.head.has_lasted(limit, awaited) {
            return Some(why);
        }
        let waiting = self.signs.writes.waiting();
        let is_stalled = self.write.has_lasted(patience.stall, waiting);
        is_stalled.then_some("a client took nothing of what was written to it")
    }
}

/// What is waited for, and when that was seen first.
#[derive(Debug)]
struct Since<T>(Option<(T, Instant)>);

impl<T: Copy + PartialEq> Since<T> {
    fn has_lasted(&mut self, limit: Duration, waiting: Option<T>) -> bool {
        let now = Instant::now();
        let begun = match self.0 {
            Some((same, begun)) if waiting == Some(same) => begun,
            _ => now,
        };
        self.0 = waiting.map(|it| (it, begun));
        self.0.is_some() && now - begun >= limit
    }
}
