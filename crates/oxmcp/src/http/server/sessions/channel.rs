//! A short channel between two tasks that does not use memory while it is empty.
//!
//! Tokio's channel allocates 32 slots with its first item. Here most streams are silent, and there may be thousands.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::{select, time::sleep};

use crate::{
    http::server::serve::{Activity, MAX_FRAME, next_frame},
    session::task::store_waker,
    sync::Mutex,
};

/// Creates a channel for up to `capacity` items.
pub(crate) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        capacity,
        state: Mutex::new(State {
            items: VecDeque::new(),
            taken: 0,
            is_split: false,
            sender: None,
            watcher: None,
            receiver: None,
            is_closed: false,
            is_abandoned: false,
            was_emptied: false,
            activity: None,
        }),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The end where items are added. When it is dropped, the channel is closed.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// The end where items are taken.
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

struct Shared<T> {
    capacity: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    items: VecDeque<T>,
    /// The number of times that an item, or a part of an item, was taken.
    taken: u64,
    /// Whether the first item is the rest of a split item.
    is_split: bool,
    /// The task of the sender that waits until items are taken. There is at most one.
    sender: Option<Waker>,
    /// The task of the sender that waits for the end of the receiver. There is at most one.
    watcher: Option<Waker>,
    /// The waiting task of the receiver.
    receiver: Option<Waker>,
    /// Whether the channel is closed, or the sender was dropped.
    is_closed: bool,
    /// Whether the receiver was dropped.
    is_abandoned: bool,
    /// Whether the receiver had taken all items when it was dropped.
    was_emptied: bool,
    /// The activity of the connection that carries the items.
    activity: Option<Activity>,
}

impl<T> Sender<T> {
    /// Adds an item when the channel has capacity. Returns false if the receiver was dropped. Cancel safe: if the future is dropped
    /// before that, the item is not added. Only one task at a time may wait.
    pub(crate) async fn send(&self, item: T) -> bool {
        let mut item = Some(item);
        poll_fn(|cx| {
            let mut state = self.0.state.lock();
            if state.is_abandoned {
                return Poll::Ready(false);
            }
            if state.items.len() >= self.0.capacity {
                store_waker(&mut state.sender, cx.waker());
                return Poll::Pending;
            }
            state.items.extend(item.take());
            wake(state, |state| &mut state.receiver);
            Poll::Ready(true)
        })
        .await
    }

    /// Replaces all remaining items with this item. Returns false if the receiver was dropped.
    pub(crate) fn put(&self, item: T) -> bool {
        let mut state = self.0.state.lock();
        if state.is_abandoned {
            return false;
        }
        state.items.clear();
        state.items.push_back(item);
        wake(state, |state| &mut state.receiver);
        true
    }

    /// The total size of the remaining items.
    pub(crate) fn waiting(&self, size: fn(&T) -> usize) -> usize {
        self.0.state.lock().items.iter().map(size).sum()
    }

    /// The number of times that an item, or a part of an item, was taken.
    pub(crate) fn taken(&self) -> u64 {
        self.0.state.lock().taken
    }

    /// Whether all items were taken, even if the receiver was dropped later.
    pub(crate) fn is_all_taken(&self) -> bool {
        let state = self.0.state.lock();
        if state.is_abandoned {
            return state.was_emptied;
        }
        state.items.is_empty()
    }

    /// Waits until the receiver has not taken anything for the duration `stall`. It checks only at that interval, so it may take
    /// twice as long. Cancel safe.
    pub(crate) async fn stalled(&self, stall: Duration) {
        loop {
            let before = self.taken();
            sleep(stall).await;
            if self.taken() == before {
                return;
            }
        }
    }

    /// Closes the channel: the receiver sees the end together with the last item.
    fn close(&self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        wake(state, |state| &mut state.receiver);
    }

    /// Waits until all items are taken, or the receiver was dropped. Cancel safe. Only one task at a time may wait.
    pub(crate) async fn drained(&self) {
        poll_fn(|cx| {
            let mut state = self.0.state.lock();
            // Dropping the receiver also drops all items.
            if state.items.is_empty() {
                return Poll::Ready(());
            }
            store_waker(&mut state.sender, cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Drops the remaining items.
    pub(crate) fn discard(self) {
        let items = std::mem::take(&mut self.0.state.lock().items);
        drop(items);
    }

    /// Drops the remaining items, and ends the connection that carries them.
    pub(crate) fn give_up(self) {
        let activity = self.0.state.lock().activity.take();
        self.discard();
        if let Some(activity) = activity {
            activity.note_stall();
        }
    }

    /// Waits until the receiver was dropped. Cancel safe. Only one task at a time may wait.
    pub(crate) async fn abandoned(&self) {
        poll_fn(|cx| {
            let mut state = self.0.state.lock();
            if state.is_abandoned {
                return Poll::Ready(());
            }
            store_waker(&mut state.watcher, cx.waker());
            Poll::Pending
        })
        .await;
    }
}

impl<T> Receiver<T> {
    /// Takes the next item; `None` once the channel is closed and empty.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.state.lock();
        let item = state.pop();
        if item.is_some() {
            wake(state, |state| &mut state.sender);
            return Poll::Ready(item);
        }
        if state.is_closed {
            return Poll::Ready(None);
        }
        store_waker(&mut state.receiver, cx.waker());
        Poll::Pending
    }

    /// Takes the next item, if there is one.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.0.state.lock();
        let item = state.pop();
        wake(state, |state| &mut state.sender);
        item
    }

    /// Like [`poll`](Self::poll), as a future. Cancel safe.
    pub(crate) async fn next(&self) -> Option<T> {
        poll_fn(|cx| self.poll(cx)).await
    }
}

impl Receiver<Bytes> {
    /// Takes the next bytes, at most as many as fit into a frame; `None` once the channel is closed and empty.
    pub(crate) fn poll_frame(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.0.state.lock();
        if let Some(first) = state.items.front_mut()
            && first.len() > MAX_FRAME
        {
            let frame = next_frame(first);
            state.taken += 1;
            state.is_split = true;
            return Poll::Ready(Some(frame));
        }
        drop(state);
        self.poll(cx)
    }

    /// Whether the next bytes are the rest of an item.
    #[cfg(feature = "auth")]
    pub(crate) fn is_within_item(&self) -> bool {
        self.0.state.lock().is_split
    }

    /// Sets the activity of the connection that carries the items.
    pub(crate) fn carried_by(&self, activity: &Activity) {
        self.0.state.lock().activity = Some(activity.clone());
    }
}

impl<T> State<T> {
    fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front();
        self.is_split = false;
        self.taken += u64::from(item.is_some());
        if self.items.is_empty() {
            self.items = VecDeque::new();
        }
        item
    }
}

/// Wakes a waiting task, without holding the lock.
fn wake<T>(mut state: MutexGuard<'_, State<T>>, waiter: fn(&mut State<T>) -> &mut Option<Waker>) {
    let waker = waiter(&mut state).take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_abandoned = true;
        state.was_emptied = state.items.is_empty();
        let items = std::mem::take(&mut state.items);
        let wakers = [state.sender.take(), state.watcher.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        drop(items);
    }
}

/// The number of bytes that a reader has not read.
pub(crate) fn unread(reader: &Sender<Bytes>) -> usize {
    reader.waiting(Bytes::len)
}

/// Closes the stream of a reader, and ends the reader's connection if it does not read the remaining bytes. When `overdue` is
/// ready, the remaining bytes are only dropped: other streams on the same connection may belong to other sessions.
pub(crate) async fn finish(
    reader: Sender<Bytes>,
    stall: Duration,
    overdue: impl Future<Output = ()>,
) {
    reader.close();
    select! {
        biased;
        () = reader.drained() => {}
        () = overdue => reader.discard(),
        () = reader.stalled(stall) => reader.give_up(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::FutureExt;
    use tokio::{join, task::yield_now, time::timeout};

    use super::*;

    #[tokio::test]
    async fn items_arrive_in_order_before_the_end() {
        let (sender, receiver) = channel(2);
        let all = async {
            while let Some(item) = receiver.next().await {
                assert!(item < 10);
            }
        };
        let sent = async move {
            for item in 0..10 {
                assert!(sender.send(item).await);
            }
        };
        join!(all, sent);
        let (sender, receiver) = channel(2);
        assert!(sender.send(1).await && sender.send(2).await);
        drop(sender);
        let rest = [
            receiver.next().await,
            receiver.next().await,
            receiver.next().await,
        ];
        assert_eq!(rest, [Some(1), Some(2), None]);
    }

    #[tokio::test]
    async fn full_channel_makes_the_sender_wait() {
        let (sender, receiver) = channel(1);
        assert_eq!(sender.send(1).now_or_never(), Some(true));
        assert_eq!(sender.send(2).now_or_never(), None);
        let (sent, ()) = join!(sender.send(3), async {
            yield_now().await;
            assert_eq!(receiver.next().await, Some(1));
        });
        assert!(sent);
        assert_eq!(
            receiver.next().await,
            Some(3),
            "what was not sent is not there"
        );
    }

    #[tokio::test]
    async fn replacement_item_supersedes_unread_ones() {
        let (sender, receiver) = channel(1);
        assert!(sender.put(1) && sender.put(2));
        assert_eq!(receiver.take(), Some(2));
        assert_eq!(receiver.take(), None);
        assert_eq!(receiver.next().now_or_never(), None);
        drop(receiver);
        assert!(!sender.put(3));
    }

    #[tokio::test]
    async fn channel_counts_received_items_and_frees_memory() {
        let (sender, receiver) = channel(4);
        for length in [MAX_FRAME + 1, 1] {
            assert!(sender.send(Bytes::from(vec![0; length])).await);
        }
        let frame = || poll_fn(|cx| receiver.poll_frame(cx));
        for taken in 1..=3 {
            assert!(frame().await.is_some());
            assert_eq!(sender.taken(), taken);
            let capacity = sender.0.state.lock().items.capacity();
            assert_eq!(capacity == 0, taken == 3);
        }
        assert!(receiver.take().is_none());
        assert_eq!(sender.taken(), 3);
    }

    #[tokio::test]
    async fn sender_knows_how_much_a_lost_receiver_read() {
        for taken in [1, 2] {
            let (sender, receiver) = channel(2);
            assert!(sender.is_all_taken() && sender.send(1).await && sender.send(2).await);
            for _ in 0..taken {
                receiver.next().await;
            }
            drop(receiver);
            assert_eq!(sender.is_all_taken(), taken == 2);
        }
    }

    #[tokio::test]
    async fn waiting_sender_learns_that_receiver_is_gone() {
        let (sender, receiver) = channel(1);
        assert!(sender.send(Arc::new(())).await);
        assert_eq!(sender.abandoned().now_or_never(), None);
        let kept = Arc::new(());
        let (sent, ()) = join!(sender.send(Arc::clone(&kept)), async {
            yield_now().await;
            drop(receiver);
        });
        assert!(!sent);
        sender.abandoned().await;
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[tokio::test]
    async fn waiter_for_receivers_end_ignores_single_items() {
        let (sender, receiver) = channel(1);
        assert!(sender.send(1).await);
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let waiting = tokio::spawn(async move {
            let mut abandoned = pin!(sender.abandoned());
            poll_fn(|cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                abandoned.as_mut().poll(cx)
            })
            .await;
        });
        yield_now().await;
        assert_eq!(receiver.take(), Some(1));
        yield_now().await;
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        drop(receiver);
        waiting.await.unwrap();
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    const STALL: Duration = Duration::from_secs(30);

    /// Takes a frame more often than once per stall duration, and returns the number of bytes.
    async fn read_slowly(receiver: Receiver<Bytes>) -> usize {
        let mut read = 0;
        while let Some(frame) = poll_fn(|cx| receiver.poll_frame(cx)).await {
            read += frame.len();
            sleep(STALL * 3 / 4).await;
        }
        read
    }

    #[tokio::test(start_paused = true)]
    async fn slow_but_steady_reader_gets_the_whole_stream() {
        let (sender, receiver) = channel(2);
        let rest = vec![0; MAX_FRAME * 10];
        assert!(sender.send(rest.into()).await);
        let (read, ()) = join!(read_slowly(receiver), finish(sender, STALL, pending()));
        assert_eq!(read, MAX_FRAME * 10);
    }

    #[tokio::test]
    async fn reader_learns_of_the_end_with_last_item() {
        let (sender, receiver) = channel(2);
        assert!(sender.send(Bytes::from_static(b"data")).await);
        let mut finishing = Box::pin(finish(sender, STALL, pending()));
        assert_eq!((&mut finishing).now_or_never(), None);
        let next = || poll_fn(|cx| receiver.poll_frame(cx)).now_or_never();
        assert_eq!(next(), Some(Some(Bytes::from_static(b"data"))));
        assert_eq!(next(), Some(None));
        assert_eq!(finishing.now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_reader_of_final_items_is_dropped() {
        let (sender, receiver) = channel(2);
        assert!(sender.send(vec![0; MAX_FRAME * 2].into()).await);
        let finished = timeout(STALL * 3, finish(sender, STALL, pending())).await;
        assert!(finished.is_ok());
        assert!(receiver.take().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_stalled_reader_ends_its_connection() {
        let finished = async |overdue: Duration| {
            let (sender, receiver) = channel(2);
            let activity = Activity::new();
            receiver.carried_by(&activity);
            assert!(sender.send(Bytes::from_static(b"data")).await);
            finish(sender, STALL, sleep(overdue)).await;
            assert!(receiver.take().is_none());
            activity.has_stalled()
        };
        assert!(
            !finished(Duration::from_secs(1)).await,
            "the session has ended, and no more"
        );
        assert!(finished(STALL * 2).await);
    }
}
