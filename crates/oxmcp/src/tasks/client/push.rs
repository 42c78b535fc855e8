//! [`Push`], the subscription to a task: a server that supports it sends the changes, so it is polled less often.

use std::{future::pending, time::Duration};

use oxmcp_protocol::{Notification, Payload, SubscriptionFilter};
use serde_json::json;
use tokio::{
    select,
    time::{Instant, sleep_until},
};

use super::{
    super::wire::{LISTEN_KEY, TaskChanged, TaskState},
    exchange::Exchange,
    pace::LONGEST,
};
use crate::{
    client::{Subscription, SubscriptionEvent},
    error::Result,
    session::task::{BoxFuture, after},
};

/// The subscription to a task, and its state.
pub(crate) enum Push {
    /// There is no subscription, or it has ended.
    None,
    /// The server has not acknowledged the subscription yet.
    Opening(BoxFuture<Result<Subscription>>),
    Open(Subscription),
}

/// The end of a pause.
pub(crate) enum Woken {
    /// The next poll is due.
    Due,
    /// The server has sent the state of the task.
    Told(Box<TaskState>),
}

impl Push {
    /// Requests a subscription to a task.
    pub(crate) fn open(exchange: &Exchange) -> Self {
        let ids = json!([&*exchange.id]);
        let filter = SubscriptionFilter::default().with_other(LISTEN_KEY, ids);
        let listen = exchange.session.listen(filter);
        Self::Opening(Box::pin(listen.into_future()))
    }

    /// Pauses before the next poll of the task. While the subscription is open, the pause is [`LONGEST`]. The pause ends early when
    /// the server sends the state, and when the subscription opens or is resumed, because changes may have been missed.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn pause(&mut self, id: &str, pause: Duration) -> Woken {
        let start = Instant::now();
        loop {
            let pause = match self {
                Self::Open(_) => LONGEST,
                _ => pause,
            };
            select! {
                biased;
                woken = self.next(id) => if let Some(woken) = woken {
                    return woken;
                },
                () = sleep_until(after(start, pause)) => return Woken::Due,
            }
        }
    }

    /// The next wake-up by the subscription. `None` if an event wakes nothing, and if the subscription has ended.
    async fn next(&mut self, id: &str) -> Option<Woken> {
        match self {
            Self::None => pending().await,
            Self::Opening(opening) => {
                let opened = opening.await.ok();
                let own = json!(id);
                let open = opened.filter(|it| it.filter().has_other(LISTEN_KEY, &own));
                *self = open.map_or(Self::None, Self::Open);
                matches!(self, Self::Open(_)).then_some(Woken::Due)
            }
            Self::Open(subscription) => match subscription.next().await {
                Some(SubscriptionEvent::Other { method, params })
                    if method == TaskChanged::NAME =>
                {
                    let state = TaskState::from_json(params?.get()).ok()?;
                    (state.task_id == id).then(|| Woken::Told(state.into()))
                }
                Some(SubscriptionEvent::Resumed(_)) => Some(Woken::Due),
                Some(_) => None,
                None => {
                    *self = Self::None;
                    None
                }
            },
        }
    }
}
