//! The watchdog for handlers that block their thread. It is a separate thread, because a blocked runtime cannot report
//! anything.
//!
//! Each thread that polls handlers has a slot with a counter, which is odd during a poll. The watchdog checks the counters: a
//! handler whose counter stays the same odd number blocks its thread. So a poll need not read the clock.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    process, ptr,
    sync::{
        Arc, Once, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use crate::{logged::Logged, sync::Mutex};

/// The pause between two checks.
const LOOK: Duration = Duration::from_secs(1);
/// The numbers of checks that have found the same poll, after which a warning is logged.
const WARNINGS: [u32; 4] = [2, 10, 60, 600];
/// The number of checks without any poll after which the watchdog pauses, so that an idle process is not woken.
const IDLE: u32 = 10;
/// The longest such pause.
const LONG_PAUSE: Duration = Duration::from_secs(600);
/// The number of checks for which a blocked handler may delay a process that is expected to end.
const LOOKS_TO_END: u32 = 5;

/// A handler that can be watched.
pub(crate) trait Watched: Send + Sync + 'static {
    /// Its kind and name, for the log.
    fn label(&self) -> String;
}

/// The handler that a thread polls.
struct Slot {
    /// Counts the beginnings and ends of polls.
    polls: AtomicU64,
    handler: Mutex<Option<Weak<dyn Watched>>>,
    /// The counter at the last check, and how many checks in a row have found it. Only the watchdog uses them.
    seen: AtomicU64,
    looks: AtomicU32,
    /// The pause of the watchdog, which each poll ends.
    pause: &'static Pause,
}

thread_local! {
    static SLOT: Arc<Slot> = Slot::register();
}

static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());
static START: Once = Once::new();
static PAUSE: Pause = Pause::new();
/// Whether the process is expected to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Runs a handler's future, observed by the watchdog.
pub(crate) fn watched<'a, W: Watched, F: Future>(
    handler: &'a Arc<W>,
    mut future: Pin<&'a mut F>,
) -> impl Future<Output = F::Output> + use<'a, W, F> {
    poll_fn(move |cx| {
        let _poll = Poll::begin(handler);
        future.as_mut().poll(cx)
    })
}

/// Expects the process to end soon: if a handler keeps blocking its thread, the watchdog ends it.
pub(crate) fn expect_end() {
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// A poll of a handler. It ends when this is dropped, even by a panic.
struct Poll {
    is_outermost: bool,
}

impl Poll {
    fn begin<W: Watched>(handler: &Arc<W>) -> Self {
        let begun = SLOT.try_with(|slot| slot.begin(handler));
        Self {
            // A thread that is ending no longer has a slot.
            is_outermost: begun.unwrap_or(false),
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        if self.is_outermost {
            let _ = SLOT.try_with(|slot| slot.advance());
        }
    }
}

impl Slot {
    fn new(pause: &'static Pause) -> Self {
        Self {
            polls: AtomicU64::new(0),
            handler: Mutex::default(),
            seen: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            pause,
        }
    }

    fn register() -> Arc<Self> {
        let slot = Arc::new(Self::new(&PAUSE));
        let mut slots = SLOTS.lock();
        slots.retain(|it| it.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        drop(slots);
        START.call_once(|| {
            let thread = thread::Builder::new().name("oxmcp-watchdog".to_owned());
            // Without threads there is no watchdog.
            let _ = thread.spawn(watch);
        });
        slot
    }

    /// Begins a poll. Returns whether it is the outermost one: a handler may run others on its own thread.
    fn begin<W: Watched>(&self, handler: &Arc<W>) -> bool {
        if !self.polls.load(Ordering::Relaxed).is_multiple_of(2) {
            return false;
        }
        let mut current = self.handler.lock();
        let is_same = |it: &Weak<dyn Watched>| ptr::addr_eq(it.as_ptr(), Arc::as_ptr(handler));
        if !current.as_ref().is_some_and(is_same) {
            let handler: Weak<W> = Arc::downgrade(handler);
            *current = Some(handler);
        }
        drop(current);
        self.advance();
        self.pause.end();
        true
    }

    fn advance(&self) {
        // Only the thread of the slot changes it.
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Release);
    }

    /// Checks the slot. Returns whether there was a poll since the last check.
    fn look(&self) -> bool {
        let polls = self.polls.load(Ordering::Acquire);
        let is_same = self.seen.swap(polls, Ordering::Relaxed) == polls;
        if polls.is_multiple_of(2) || !is_same {
            self.looks.store(0, Ordering::Relaxed);
            return !is_same;
        }
        let looks = self.looks.load(Ordering::Relaxed).saturating_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        if WARNINGS.contains(&looks) {
            let handler = self.label();
            let blocked_for = LOOK * looks;
            tracing::warn!(
                handler = %Logged(&handler), ?blocked_for,
                "a handler is blocking its thread; move blocking work to tokio::task::spawn_blocking"
            );
        }
        true
    }

    fn label(&self) -> String {
        let handler = self.handler.lock().as_ref().and_then(Weak::upgrade);
        handler.map_or_else(|| "removed".to_owned(), |it| it.label())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the client is gone and `run` has returned, but the runtime waits for the handler"
)]
fn end_process() -> ! {
    process::exit(1)
}

/// The pause of the watchdog's thread while no handler is polled.
struct Pause {
    is_on: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Pause {
    const fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            thread: OnceLock::new(),
        }
    }

    /// Pauses the current thread until [`end`](Self::end) is called, at most this long. Only one thread uses it.
    fn begin(&self, longest: Duration) {
        let _ = self.thread.set(thread::current());
        self.is_on.store(true, Ordering::Relaxed);
        thread::park_timeout(longest);
        self.is_on.store(false, Ordering::Relaxed);
    }

    /// Each poll calls it, so it must be cheap while there is no pause.
    fn end(&self) {
        if self.is_on.load(Ordering::Relaxed)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

fn watch() {
    let mut quiet_looks = 0;
    let mut looks_to_end = 0;
    loop {
        thread::sleep(LOOK);
        let slots: Vec<Arc<Slot>> = SLOTS.lock().iter().filter_map(Weak::upgrade).collect();
        let mut is_active = false;
        for slot in &slots {
            is_active |= slot.look();
        }
        quiet_looks = if is_active { 0 } else { quiet_looks + 1 };
        let blocked = slots.iter().find(|it| it.looks.load(Ordering::Relaxed) > 0);
        match blocked.filter(|_| IS_ENDING.load(Ordering::Relaxed)) {
            Some(slot) => {
                looks_to_end += 1;
                if looks_to_end >= LOOKS_TO_END {
                    tracing::error!(
                        handler = %Logged(&slot.label()),
                        "a handler is still blocking its thread; exiting without waiting for it"
                    );
                    end_process();
                }
            }
            None => looks_to_end = 0,
        }
        drop(slots);
        if quiet_looks >= IDLE {
            PAUSE.begin(LONG_PAUSE);
            quiet_looks = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Handler;

    impl Watched for Handler {
        fn label(&self) -> String {
            "handler".to_owned()
        }
    }

    #[test]
    fn next_poll_ends_the_pause() {
        let pause: &'static Pause = Box::leak(Box::new(Pause::new()));
        let (ended, has_ended) = mpsc::channel();
        thread::spawn(move || {
            pause.begin(Duration::from_secs(3600));
            ended.send(()).unwrap();
        });
        while !pause.is_on.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        assert!(Slot::new(pause).begin(&Arc::new(Handler)));
        has_ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
