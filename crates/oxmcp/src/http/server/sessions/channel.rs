//! Channel from one task to another: short, and without memory while it is empty.
//!
//! tokio's allocates 32 slots with its first item; here most streams are silent, and there may be thousands.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, Waker},
};

use crate::{session::task::store_waker, sync::Mutex};

/// A channel with room for `capacity` items.
pub(super) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        capacity,
        state: Mutex::new(State {
            items: VecDeque::new(),
            sender: None,
            receiver: None,
            is_closed: false,
            is_abandoned: false,
        }),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The end where items are added. Once it is dropped no more will come.
pub(super) struct Sender<T>(Arc<Shared<T>>);

/// The end where items are taken.
pub(super) struct Receiver<T>(Arc<Shared<T>>);

struct Shared<T> {
    capacity: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    items: VecDeque<T>,
    /// The task that waits to add one, or for the end of the reader: there is no more than one.
    sender: Option<Waker>,
    /// The task that waits for one.
    receiver: Option<Waker>,
    /// Whether the sender was dropped.
    is_closed: bool,
    /// Whether the receiver was dropped.
    is_abandoned: bool,
}

impl<T> Sender<T> {
    /// Adds an item once there is room. Returns false where the receiver was dropped. Cancel safe: dropped before, the item is not
    /// added. One task at a time may wait.
    pub(super) async fn send(&self, item: T) -> bool {
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

    /// Puts an item in the place of all that were not taken. Returns false where the receiver was dropped.
    pub(super) fn put(&self, item: T) -> bool {
        let mut state = self.0.state.lock();
        if state.is_abandoned {
            return false;
        }
        state.items.clear();
        state.items.push_back(item);
        wake(state, |state| &mut state.receiver);
        true
    }

    /// Waits until the receiver was dropped. Cancel safe. One task at a time may wait.
    pub(super) async fn abandoned(&self) {
        poll_fn(|cx| {
            let mut state = self.0.state.lock();
            if state.is_abandoned {
                return Poll::Ready(());
            }
            store_waker(&mut state.sender, cx.waker());
            Poll::Pending
        })
        .await;
    }
}

impl<T> Receiver<T> {
    /// Takes the next item; `None` once there will be no more.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Option<T>> {
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

    /// Takes the next item, if it is there.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.0.state.lock();
        let item = state.pop();
        wake(state, |state| &mut state.sender);
        item
    }

    /// The same as [`poll`](Self::poll) as a future. Cancel safe.
    pub(super) async fn next(&self) -> Option<T> {
        poll_fn(|cx| self.poll(cx)).await
    }
}

impl<T> State<T> {
    fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front();
        if self.items.is_empty() {
            self.items = VecDeque::new();
        }
        item
    }
}

/// Wakes a task that waits, without holding the lock.
fn wake<T>(mut state: MutexGuard<'_, State<T>>, waiter: fn(&mut State<T>) -> &mut Option<Waker>) {
    let waker = waiter(&mut state).take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        wake(state, |state| &mut state.receiver);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_abandoned = true;
        let items = std::mem::take(&mut state.items);
        wake(state, |state| &mut state.sender);
        drop(items);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::{join, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn items_come_in_order_and_then_the_end() {
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
    async fn a_sender_waits_for_room() {
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
    async fn an_item_that_is_put_replaces_those_not_taken() {
        let (sender, receiver) = channel(1);
        assert!(sender.put(1) && sender.put(2));
        assert_eq!(receiver.take(), Some(2));
        assert_eq!(receiver.take(), None);
        assert_eq!(receiver.next().now_or_never(), None);
        drop(receiver);
        assert!(!sender.put(3));
    }

    #[tokio::test]
    async fn a_sender_that_waits_learns_that_the_receiver_is_gone() {
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
}
