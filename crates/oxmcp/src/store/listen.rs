//! The listener of a bus: a subscription to a topic, which is renewed when it ends.

use std::{future::poll_fn, sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{AnyBus, Delivery};
use crate::logged::Logged;

/// The pause before a node subscribes again.
const RESUBSCRIBE: Duration = Duration::from_secs(1);

/// Passes the deliveries of a topic to a listener until `upgrade` returns `None`. Each subscription begins with
/// [`Delivery::Missed`].
pub(crate) async fn listen<T>(
    bus: Arc<dyn AnyBus>,
    topic: &str,
    upgrade: impl Fn() -> Option<T>,
    take: impl Fn(&T, &Delivery),
) {
    loop {
        let subscription = bus.subscribe(&[topic]).await;
        let Some(listener) = upgrade() else {
            return;
        };
        match subscription {
            Ok(mut subscription) => {
                take(&listener, &Delivery::Missed);
                drop(listener);
                while let Some(delivery) = poll_fn(|cx| subscription.as_mut().poll_next(cx)).await {
                    let Some(listener) = upgrade() else {
                        return;
                    };
                    take(&listener, &delivery);
                }
            }
            Err(error) => {
                drop(listener);
                tracing::warn!(topic, error = %Logged(&error), "could not subscribe to the bus; messages of other nodes are missed");
            }
        }
        sleep(RESUBSCRIBE).await;
    }
}
