//! Method `subscriptions/listen`: a request that stays open, and delivers notifications until one side ends it.
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::{convert::Infallible, mem, sync::Arc};

use oxmcp_protocol::{
    AcknowledgedParams, ListenParams, ListenResult, Meta, Method, Notification, RequestId,
    SubscriptionFilter,
    internal::{encode_result, into_text},
    method::{self, SubscriptionsAcknowledged},
};
use tokio::select;

use super::{
    changes::notify,
    open_subscriptions::{Due, OpenSubscription, Registration},
    quota::Reserved,
    subscribe::leave_connection_task,
    watched::{EndedWatch, ResourceSubscriptions, release},
};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::{
        dispatch::{Call, Served},
        session::ServerSession,
    },
    session::{
        connection::{Connection, RequestContext},
        inbound::body::Body,
    },
};

/// The filter of a request, and the hooks that must accept its resources.
struct Requested {
    filter: SubscriptionFilter,
    subscriptions: Option<ResourceSubscriptions>,
}

/// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
pub(crate) fn listen(call: &Call<'_>) -> Result<Served> {
    let params: ListenParams = call.read(method::Listen::NAME)?;
    let features = call.features;
    let mut filter = params.notifications;
    let of_extensions = mem::take(&mut filter.other);
    filter = filter.narrowed(&features.capabilities(call.cx.revision()));
    filter.other = features.extensions.granted(&call.cx, of_extensions)?;
    let requested = Box::new(Requested {
        filter,
        subscriptions: features.subscriptions.clone(),
    });
    // Its first poll registers the subscription and acknowledges it.
    Ok(Served::in_order(serve(call.cx.clone(), requested)))
}

/// Serves a subscription until the client cancels it, which ends it without a response, or the session ends, which ends it with
/// a result.
///
/// Thousands of subscriptions may be idle, so data that is needed only at the beginning, or for sending, is boxed.
async fn serve(cx: RequestContext, requested: Box<Requested>) -> Result<Body> {
    let connection = &cx.parts().connection;
    let Some(id) = cx.request_id().filter(|_| cx.parts().batch.is_none()) else {
        return Err(Error::invalid_request(
            "cannot subscribe in a batch: its responses would wait until the subscription ends; send \
             subscriptions/listen by itself",
        ));
    };
    let (filter, registration, _watches) = Box::pin(register(&cx, requested)).await?;
    select! {
        biased;
        () = cx.cancelled() => return Err(Error::cancelled("the client cancelled the subscription")),
        Err(error) = stream(&cx, &registration.listen, filter, id) => return Err(error),
        () = connection.in_flight().drained() => {}
    }
    let mut out = Vec::new();
    let mut result = ListenResult::default();
    result.meta = Meta::of_subscription(id);
    let info = connection.role().server_info();
    encode_result(&mut out, &mut result, cx.revision(), info)?;
    Ok(Body::Json(into_text(out)?))
}

/// Registers a subscription to the part of the filter that the hook accepts.
async fn register(
    cx: &RequestContext,
    requested: Box<Requested>,
) -> Result<(Box<SubscriptionFilter>, Registration<'_>, Watches)> {
    let Requested {
        mut filter,
        subscriptions,
    } = *requested;
    let connection = &cx.parts().connection;
    let session = cx
        .server_session()
        .ok_or_else(|| Error::internal("request has no session"))?;
    let role = session.role();
    let limit = role.max_subscriptions(&connection.limits);
    role.server().connected();
    let watches = Watches::begin(cx, session.clone(), subscriptions, &mut filter).await?;
    let topics = filter.clone().into();
    let open_subscriptions = &role.open_subscriptions;
    let registration = open_subscriptions.register(cx, topics, limit)?;
    Ok((Box::new(filter), registration, watches))
}

/// Acknowledges the filter, then sends notifications as they become due.
async fn stream(
    cx: &RequestContext,
    listen: &OpenSubscription,
    filter: Box<SubscriptionFilter>,
    id: &RequestId,
) -> Result<Infallible> {
    Box::pin(acknowledge(&cx.parts().connection, filter, id)).await?;
    listen.note_acknowledged();
    loop {
        let due = listen.next().await;
        Box::pin(send(cx, due, id)).await?;
    }
}

async fn acknowledge(
    connection: &Arc<Connection>,
    filter: Box<SubscriptionFilter>,
    id: &RequestId,
) -> Result<()> {
    let mut acknowledged = AcknowledgedParams::new(*filter);
    acknowledged.meta = Meta::of_subscription(id);
    connection
        .notify(SubscriptionsAcknowledged::NAME, acknowledged)
        .await
}

async fn send(cx: &RequestContext, mut due: Box<Due>, id: &RequestId) -> Result<()> {
    let connection = &cx.parts().connection;
    if let Some(session) = cx.server_session() {
        let features = session.role().server().features();
        features.retain_visible(&mut due.changed.uris, || Some(cx.clone()));
    }
    let meta = Meta::of_subscription(id);
    notify(connection, &due.changed, &meta).await;
    for event in due.events {
        let members = meta.as_object().cloned().unwrap_or_default();
        event.send(connection, members).await;
    }
    if due.overflown {
        return Err(Error::internal(format!(
            "subscription ended: the client reads too slowly, and more than {} notifications were queued; \
             subscribe again, and fetch the current state",
            connection.limits.max_queued_events
        )));
    }
    Ok(())
}

/// The resources that a subscription watches; dropping it ends the watches.
struct Watches {
    session: ServerSession,
    agreed: Vec<EndedWatch>,
    _reserved: Reserved,
}

impl Watches {
    /// Reserves quota, and removes resources from the filter that the hook refuses, or is not called for.
    ///
    /// # Errors
    /// If the quota is used up, or the budget of the endpoint.
    async fn begin(
        cx: &RequestContext,
        session: ServerSession,
        subscriptions: Option<ResourceSubscriptions>,
        filter: &mut SubscriptionFilter,
    ) -> Result<Self> {
        let reserved = session.role().quota().reserve_filter(filter, cx)?;
        let mut watches = Self {
            _reserved: reserved,
            session,
            agreed: Vec::new(),
        };
        let Some(hooks) = subscriptions.and_then(|subscriptions| subscriptions.hooks) else {
            return Ok(watches);
        };
        let mut wanted = mem::take(&mut filter.resource_subscriptions);
        // Each URI is matched with the templates, so the quota is checked first.
        {
            let features = watches.session.role().server().features();
            wanted.retain(|uri| features.calls_subscribe_hook(uri, cx));
        }
        if !wanted.is_empty() {
            leave_connection_task().await;
        }
        for uri in wanted {
            match (hooks.subscribe)(cx.clone(), uri.clone()).await {
                Ok(()) => {
                    watches
                        .agreed
                        .push((Arc::clone(&hooks), uri.as_str().into()));
                    filter.resource_subscriptions.push(uri);
                }
                Err(error) => {
                    tracing::debug!(error = %Logged(&error), uri, "subscribe handler refused a resource");
                }
            }
        }
        Ok(watches)
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        release(self.session.connection(), mem::take(&mut self.agreed));
    }
}
