//! A body that is dropped if its client stops reading (a stall).
//!
//! Over HTTP/2 a body is not polled while the client's flow-control window is closed, so no code within the body runs. The timer is
//! therefore a separate task, which works under any HTTP server. If the endpoint serves an address by itself, the connection also
//! ends.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep},
};

use super::activity::Activity;
use crate::{
    session::{driver::budget::Budget, task::spawn},
    sync::Mutex,
};

/// The longest frame of a body. An HTTP server would buffer a longer one, however slowly the client reads.
pub(crate) const MAX_FRAME: usize = 32 << 10;
/// The number of checks within the stall limit. A client may exceed the limit by one interval.
const CHECKS_PER_STALL: u32 = 8;
/// The minimum interval between two checks of a body, however short the stall limit is.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Takes the next frame from these bytes.
pub(crate) fn next_frame(bytes: &mut Bytes) -> Bytes {
    bytes.split_to(bytes.len().min(MAX_FRAME))
}

/// The source of a body that streams.
pub(crate) trait EventSource: Stream<Item = Bytes> + Send {
    /// Whether the source has data that the client has not read, if only this body's timer watches the client.
    fn has_data(&self) -> bool {
        false
    }

    /// Whether the next item is the rest of an event and already available. Only sources that split events override this.
    #[cfg(feature = "auth")]
    fn is_within_item(&self) -> bool {
        false
    }

    /// Whether the bytes of its items are already charged to the budget.
    fn is_counted(&self) -> bool {
        false
    }

    /// Whether the task that feeds the source watches for stalls of the client itself.
    fn is_watched(&self) -> bool {
        false
    }

    /// Sets the activity of the connection that ends when the client stalls.
    fn on_stall(&self, _activity: &Activity) {}
}

/// A body with its timer.
pub(crate) struct WatchedBody {
    slot: Arc<Slot>,
    timer: AbortHandle,
}

/// The rest of a body. The timer removes it when the client stalls.
struct Slot(Mutex<State>);

struct State {
    content: Content,
    /// The time of the first check that found unread data.
    waits_since: Option<Instant>,
    activity: Option<Activity>,
}

enum Content {
    Nothing,
    Full(Bytes),
    Stream {
        source: Pin<Box<dyn EventSource>>,
        /// The rest of the last item from the source.
        rest: Bytes,
        budget: Arc<Budget>,
    },
}

impl WatchedBody {
    /// A body whose bytes are all available.
    pub(crate) fn full(bytes: Bytes, stall: Duration) -> Self {
        Self::new(Content::Full(bytes), stall)
    }

    /// A body whose bytes are charged to the budget when they leave the source.
    pub(crate) fn stream(
        source: Pin<Box<dyn EventSource>>,
        budget: Arc<Budget>,
        stall: Duration,
    ) -> Self {
        let content = Content::Stream {
            source,
            rest: Bytes::new(),
            budget,
        };
        Self::new(content, stall)
    }

    fn new(content: Content, stall: Duration) -> Self {
        let slot = Arc::new(Slot(Mutex::new(State {
            content,
            waits_since: None,
            activity: None,
        })));
        let timer = spawn(give_up(Arc::downgrade(&slot), stall)).abort_handle();
        Self { slot, timer }
    }

    pub(crate) fn on_stall(&self, activity: &Activity) {
        self.slot.0.lock().activity = Some(activity.clone());
    }

    /// The number of bytes that are left, if it is known.
    pub(crate) fn left(&self) -> Option<usize> {
        match &self.slot.0.lock().content {
            Content::Nothing => Some(0),
            Content::Full(bytes) => Some(bytes.len()),
            Content::Stream { .. } => None,
        }
    }

    /// The next frame. `None` at the end, and after a stall.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.slot.0.lock();
        state.waits_since = None;
        let polled = state.content.poll_next(cx);
        if let Poll::Ready(None) = polled {
            let ended = mem::replace(&mut state.content, Content::Nothing);
            drop(state);
            drop(ended);
        }
        polled
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Content {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Nothing => Poll::Ready(None),
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(next_frame(bytes))),
            Self::Stream {
                source,
                rest,
                budget,
            } => {
                if rest.is_empty() {
                    let Some(item) = std::task::ready!(source.as_mut().poll_next(cx)) else {
                        return Poll::Ready(None);
                    };
                    *rest = if source.is_counted() {
                        item
                    } else {
                        budget.charge(item.len()).with(item)
                    };
                }
                Poll::Ready(Some(next_frame(rest)))
            }
        }
    }

    fn has_data(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Full(_) => true,
            Self::Stream { source, rest, .. } => !rest.is_empty() || source.has_data(),
        }
    }
}

impl Slot {
    /// Drops the body if the client has not read anything for the duration `stall`. Returns whether watching is over.
    fn check(&self, stall: Duration) -> bool {
        let now = Instant::now();
        let mut state = self.0.lock();
        if !state.content.has_data() {
            state.waits_since = None;
            return matches!(state.content, Content::Nothing);
        }
        let since = *state.waits_since.get_or_insert(now);
        if now.duration_since(since) < stall {
            return false;
        }
        let content = mem::replace(&mut state.content, Content::Nothing);
        let activity = state.activity.take();
        drop(state);
        tracing::debug!("dropping response: client stopped reading");
        // Dropping the content cancels the work for the response.
        drop(content);
        if let Some(activity) = activity {
            activity.note_stall();
        }
        true
    }
}

/// Watches a body for stalls until its end.
async fn give_up(slot: Weak<Slot>, stall: Duration) {
    loop {
        sleep((stall / CHECKS_PER_STALL).max(MIN_INTERVAL)).await;
        if slot.upgrade().is_none_or(|slot| slot.check(stall)) {
            return;
        }
    }
}
