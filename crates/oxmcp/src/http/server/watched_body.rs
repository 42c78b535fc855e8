//! Body whose client is given up once it takes nothing of it for too long.
//!
//! Over HTTP/2 a client that opens no window is not polled for, so that nothing within a body runs any more: the timer is a task
//! beside it. That holds whatever serves the endpoint; where it is served by itself, the connection ends, too.

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

use crate::{
    http::server::serve::Activity,
    session::{driver::budget::Budget, task::spawn},
    sync::Mutex,
};

/// The longest frame of a body: an HTTP server that got more at once would hold it, whatever the client takes.
pub(super) const MAX_FRAME: usize = 32 << 10;
/// A client may have this part of its time more: it is not looked at more often.
const CHECKS_PER_STALL: u32 = 8;
/// The shortest time between two looks at a body, however short the time is.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Takes the next frame of these bytes.
pub(super) fn next_frame(bytes: &mut Bytes) -> Bytes {
    bytes.split_to(bytes.len().min(MAX_FRAME))
}

/// The source of a body that streams.
pub(super) trait EventSource: Stream<Item = Bytes> + Send {
    /// Whether there is something that the client has not taken, where nothing else gives it up.
    fn has_data(&self) -> bool {
        false
    }

    /// Whether what comes next is the rest of an event, and there already. Only a source that divides its events says so.
    #[cfg(feature = "auth")]
    fn is_within_item(&self) -> bool {
        false
    }

    /// Whether what it hands out counts in the budget already.
    fn is_counted(&self) -> bool {
        false
    }

    /// Whether what feeds the source gives up a client that takes nothing.
    fn is_watched(&self) -> bool {
        false
    }

    /// The activity of the connection that ends when the client is given up.
    fn on_stall(&self, _activity: &Activity) {}
}

/// A body with its timer.
pub(super) struct WatchedBody {
    slot: Arc<Slot>,
    timer: AbortHandle,
}

/// What is left of a body. The timer takes it out where the client is given up.
struct Slot(Mutex<State>);

struct State {
    content: Content,
    /// When it was first seen that the client does not take what is there.
    waits_since: Option<Instant>,
    activity: Option<Activity>,
}

enum Content {
    Nothing,
    Full(Bytes),
    Stream {
        source: Pin<Box<dyn EventSource>>,
        /// The rest of the last item.
        rest: Bytes,
        budget: Arc<Budget>,
    },
}

impl WatchedBody {
    /// A body that is all there.
    pub(super) fn full(bytes: Bytes, stall: Duration) -> Self {
        Self::new(Content::Full(bytes), stall)
    }

    /// A body whose bytes count in the budget from when they leave the source.
    pub(super) fn stream(
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

    pub(super) fn on_stall(&self, activity: &Activity) {
        self.slot.0.lock().activity = Some(activity.clone());
    }

    /// How many bytes are left, where that is known.
    pub(super) fn left(&self) -> Option<usize> {
        match &self.slot.0.lock().content {
            Content::Nothing => Some(0),
            Content::Full(bytes) => Some(bytes.len()),
            Content::Stream { .. } => None,
        }
    }

    /// The next frame. `None` at the end, and once the client was given up.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
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
    /// Gives the client up where it has taken nothing for as long as `stall`. Returns whether there is nothing left to watch.
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
        tracing::debug!("a client takes nothing of its answer, and is given up");
        // It cancels what is still done for it.
        drop(content);
        if let Some(activity) = activity {
            activity.note_stall();
        }
        true
    }
}

/// Watches a body until its end.
async fn give_up(slot: Weak<Slot>, stall: Duration) {
    loop {
        sleep((stall / CHECKS_PER_STALL).max(MIN_INTERVAL)).await;
        if slot.upgrade().is_none_or(|slot| slot.check(stall)) {
            return;
        }
    }
}
