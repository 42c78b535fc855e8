//! The exchanges that run, driven by whoever reads.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;

use crate::{Error, jsonrpc::RequestId, session::waiting};

/// How many events may wait for the reader. One who does not read holds the exchanges up, and those their servers.
pub(crate) const QUEUED: usize = 16;
/// How often exchanges go on before whoever drives them has to do with other things again.
const TURNS: usize = 64;

/// What the reader is told.
#[derive(Debug)]
pub(crate) enum Event {
    Message(Bytes),
    /// One call failed.
    Failed(RequestId, Error),
    /// The connection is over.
    End(Error),
}

pub(crate) type Exchange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All exchanges of a connection. They need no tasks of their own: the driver of the connection polls them as it reads.
///
/// What they do to each other and to themselves wakes nobody: whoever drives them sees it before it sleeps. A task that
/// wakes itself is polled once more for nothing, and makes the scheduler wake a thread to help.
pub(crate) struct Engine {
    slots: Vec<Slot>,
    /// Those in which nothing runs.
    free: Vec<usize>,
    inlet: Inlet,
}

/// A place for an exchange, and for others after it.
struct Slot {
    exchange: Option<Exchange>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// What wakes an exchange.
struct Bell {
    slot: usize,
    /// Whether it has rung, and nobody has come yet.
    has_rung: AtomicBool,
    inlet: Inlet,
}

/// The way into an engine.
#[derive(Clone)]
pub(crate) struct Inlet(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    begun: VecDeque<Exchange>,
    /// The slots of those that can go on.
    ready: VecDeque<usize>,
    events: VecDeque<Event>,
    /// Who has something to tell, and no room for it.
    tellers: VecDeque<Waker>,
    /// The task that drives the exchanges, and whether it does so just now.
    driver: Option<Waker>,
    is_running: bool,
    /// The engine is gone.
    is_over: bool,
}

impl Engine {
    pub(crate) fn new() -> (Self, Inlet) {
        let inlet = Inlet(Arc::default());
        let engine = Self {
            slots: Vec::new(),
            free: Vec::new(),
            inlet: inlet.clone(),
        };
        (engine, inlet)
    }

    /// The next event. Until there is one, all that runs goes on.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.inlet.hear() {
            return Poll::Ready(event);
        }
        self.run(cx);
        // What runs may have said something just now.
        match self.inlet.hear() {
            Some(event) => Poll::Ready(event),
            None => Poll::Pending,
        }
    }

    /// Goes on with all that runs and can go on, without a look at what it says. It waits then until that is read.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) {
        self.inlet.lock().start(cx.waker());
        for _ in 0..TURNS {
            let Some(slot) = self.next() else {
                return;
            };
            self.go_on(slot);
        }
        self.inlet.lock().is_running = false;
        cx.waker().wake_by_ref();
    }

    /// Whose turn it is. With nobody left the engine does not run any more.
    fn next(&mut self) -> Option<usize> {
        loop {
            let mut state = self.inlet.lock();
            if let Some(exchange) = state.begun.pop_front() {
                drop(state);
                return Some(self.settle(exchange));
            }
            if let Some(slot) = state.ready.pop_front() {
                return Some(slot);
            }
            let Some(teller) = state.next_teller() else {
                state.is_running = false;
                return None;
            };
            drop(state);
            teller.wake();
        }
    }

    /// Gives an exchange a slot.
    fn settle(&mut self, exchange: Exchange) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.slots.len();
            self.slots.push(Slot::new(slot, &self.inlet));
            slot
        });
        if let Some(place) = self.slots.get_mut(slot) {
            place.exchange = Some(exchange);
        }
        slot
    }

    fn go_on(&mut self, slot: usize) {
        let Some(place) = self.slots.get_mut(slot) else {
            return;
        };
        // Whatever happens from here on is news. It is a swap, since a plain store could be seen after the poll, and who rang
        // in between would be heard by nobody.
        place.bell.has_rung.swap(false, Ordering::AcqRel);
        let Some(exchange) = &mut place.exchange else {
            return;
        };
        let cx = &mut Context::from_waker(&place.waker);
        if exchange.as_mut().poll(cx).is_ready() {
            place.exchange = None;
            self.free.push(slot);
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // What waits there has a way into the engine, and would keep itself alive.
        let state = {
            let mut state = self.inlet.lock();
            let over = State {
                is_over: true,
                ..State::default()
            };
            mem::replace(&mut *state, over)
        };
        drop(state);
    }
}

impl Slot {
    fn new(slot: usize, inlet: &Inlet) -> Self {
        let bell = Arc::new(Bell {
            slot,
            has_rung: AtomicBool::new(false),
            inlet: inlet.clone(),
        });
        Self {
            exchange: None,
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            let mut state = self.inlet.lock();
            state.ready.push_back(self.slot);
            rouse(state);
        }
    }
}

impl Inlet {
    /// Begins an exchange, which goes on while somebody reads.
    pub(crate) fn begin(&self, exchange: impl Future<Output = ()> + Send + 'static) {
        let exchange: Exchange = Box::pin(exchange);
        let mut state = self.lock();
        // After the end of the connection nothing is begun.
        if !state.is_over {
            state.begun.push_back(exchange);
        }
    }

    /// Makes whoever reads go on with what has begun. Waking `me`, who reads next in any case, is not needed.
    pub(crate) fn rouse(&self, me: &Waker) {
        let state = self.lock();
        if !state.driver.as_ref().is_some_and(|it| it.will_wake(me)) {
            rouse(state);
        }
    }

    /// Tells the reader.
    pub(crate) async fn tell(&self, event: Event) {
        let mut event = Some(event);
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.is_over {
                return Poll::Ready(());
            }
            if state.events.len() >= QUEUED {
                state.wait(cx.waker());
                return Poll::Pending;
            }
            state.events.extend(event.take());
            rouse(state);
            Poll::Ready(())
        })
        .await;
    }

    /// What was told first.
    fn hear(&self) -> Option<Event> {
        self.lock().events.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn start(&mut self, driver: &Waker) {
        self.is_running = true;
        waiting::note(&mut self.driver, driver);
    }

    /// Who has waited longest for room, where there is some.
    fn next_teller(&mut self) -> Option<Waker> {
        if self.events.len() >= QUEUED {
            return None;
        }
        self.tellers.pop_front()
    }

    /// Keeps in mind who waits for room.
    fn wait(&mut self, teller: &Waker) {
        if !self.tellers.iter().any(|it| it.will_wake(teller)) {
            self.tellers.push_back(teller.clone());
        }
    }
}

/// Wakes the task that drives the exchanges, unless it does so just now.
fn rouse(mut state: MutexGuard<'_, State>) {
    if state.is_running {
        return;
    }
    let driver = state.driver.take();
    drop(state);
    if let Some(driver) = driver {
        driver.wake();
    }
}
