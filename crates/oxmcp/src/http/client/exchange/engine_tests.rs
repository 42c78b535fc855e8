//! Who is woken by what, and who is not.

use std::{
    future::poll_fn,
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::http::client::exchange::engine::{Engine, Event, Inlet, QUEUED};

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Driver {
    engine: Engine,
    inlet: Inlet,
    wakes: Arc<Wakes>,
}

impl Driver {
    fn new() -> Self {
        let (engine, inlet) = Engine::new();
        Self {
            engine,
            inlet,
            wakes: Arc::default(),
        }
    }

    /// The number in the next event.
    fn next(&mut self) -> Option<usize> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        match self.engine.poll_event(&mut Context::from_waker(&waker)) {
            Poll::Ready(Event::Message(message)) => Some(message.len()),
            _ => None,
        }
    }

    fn wakes(&self) -> usize {
        self.wakes.0.swap(0, Ordering::Relaxed)
    }
}

fn event(number: usize) -> Event {
    Event::Message(vec![b' '; number].into())
}

/// Waits once, having woken itself `times` times.
async fn turn(times: usize) {
    let mut waited = false;
    poll_fn(|cx| {
        (0..times).for_each(|_| cx.waker().wake_by_ref());
        match mem::replace(&mut waited, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

#[test]
fn what_exchanges_do_to_themselves_wakes_nobody() {
    let mut driver = Driver::new();
    let inlet = driver.inlet.clone();
    driver.inlet.begin(async move {
        turn(3).await;
        let other = inlet.clone();
        inlet.begin(async move { other.tell(event(2)).await });
        inlet.tell(event(1)).await;
    });
    assert_eq!((driver.next(), driver.next()), (Some(1), Some(2)));
    assert_eq!((driver.next(), driver.wakes()), (None, 0));
}

#[test]
fn one_that_never_pauses_lets_the_driver_have_its_turn() {
    let mut driver = Driver::new();
    driver.inlet.begin(async {
        loop {
            turn(1).await;
        }
    });
    assert_eq!((driver.next(), driver.wakes()), (None, 1));
    assert_eq!((driver.next(), driver.wakes()), (None, 1));
}

#[test]
fn whoever_reads_hears_of_what_happens_elsewhere() {
    let mut driver = Driver::new();
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let inlet = driver.inlet.clone();
    driver.inlet.begin(async move {
        let _ = receiver.await;
        inlet.tell(event(1)).await;
    });
    assert_eq!((driver.next(), driver.wakes()), (None, 0));
    drop(sender);
    assert_eq!((driver.wakes(), driver.next()), (1, Some(1)));
    assert_eq!(driver.next(), None);
    driver.inlet.begin(std::future::ready(()));
    driver.inlet.rouse(&Waker::from(Arc::clone(&driver.wakes)));
    assert_eq!(driver.wakes(), 0, "it reads next");
    driver.inlet.rouse(Waker::noop());
    assert_eq!(driver.wakes(), 1);
}

#[test]
fn all_is_told_in_the_end_however_little_room_there_is() {
    let mut driver = Driver::new();
    let (give_up, given_up) = tokio::sync::watch::channel(false);
    for number in 0..QUEUED * 3 {
        let (inlet, mut given_up) = (driver.inlet.clone(), given_up.clone());
        driver.inlet.begin(async move {
            // Every other gives up when it is asked.
            let given_up = given_up.wait_for(|it| *it && number % 2 == 1);
            tokio::select! {
                biased;
                _ = given_up => {}
                () = inlet.tell(event(number)) => {}
            }
        });
    }
    assert_eq!(driver.next(), Some(0));
    give_up.send_replace(true);
    let mut told: Vec<_> = std::iter::from_fn(|| driver.next()).collect();
    // In which order they are asked is not for the engine to say.
    told.sort_unstable();
    let later = (QUEUED..QUEUED * 3).step_by(2);
    assert_eq!(told, (1..QUEUED).chain(later).collect::<Vec<_>>());
}

#[test]
fn nothing_keeps_itself_alive_after_the_end() {
    let kept = Arc::new(());
    let mut driver = Driver::new();
    let begin = |driver: &Driver| {
        let (inlet, kept) = (driver.inlet.clone(), Arc::clone(&kept));
        driver.inlet.begin(async move {
            for _ in 0..=QUEUED {
                inlet.tell(event(1)).await;
            }
            drop(kept);
        });
    };
    begin(&driver);
    driver.engine.run(&mut Context::from_waker(Waker::noop()));
    begin(&driver);
    let Driver { engine, inlet, .. } = driver;
    drop(engine);
    inlet.begin(std::future::ready(()));
    assert_eq!(Arc::strong_count(&kept), 1);
}
