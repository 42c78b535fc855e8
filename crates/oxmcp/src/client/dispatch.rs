//! Dispatch of a server's requests and notifications to the client's handlers.

use std::sync::{Arc, Weak};

use oxmcp_json::Text;
use oxmcp_protocol::{
    Method, RequestId, Revision, SubscriptionFilter,
    internal::{Params, RawNotification, RequestParams},
    method::{CreateMessage, Discover, Elicit, Initialize},
};

use crate::{
    client::{
        cache::key::Invalidation, methods, session::SessionState,
        subscriptions::listener::subscription_id,
    },
    error::{Error, Result},
    session::{
        connection::{Arrival, Connection, RequestContext, Role, Side},
        inbound::{
            inline_execution::InlineExecution,
            run::{Work, respond_inline, run},
        },
        middleware::{Request, Response},
        outbound::{call::DeadlinePause, outgoing::Outgoing},
        panics::catch_panic,
        task::BoxFuture,
        tolerance::Tolerance,
        trace::span,
    },
    transport::principal::Principal,
};

/// Handles a message after all incoming middleware, by the role of the connection on which it arrived.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the last middleware hands the request over"
)]
pub(crate) fn handle(request: Request) -> BoxFuture<Result<Response>> {
    let cx = request.context().cloned();
    let role = cx
        .as_ref()
        .and_then(|cx| cx.parts().connection.role_as::<SessionState>());
    let (Some(cx), Some(role)) = (cx, role) else {
        return Box::pin(async {
            Err(Error::misuse("cannot handle this request: no peer sent it"))
        });
    };
    role.handle(cx, &request)
}

impl SessionState {
    /// Handles a message of the server after all incoming middleware.
    fn handle(&self, cx: RequestContext, request: &Request) -> BoxFuture<Result<Response>> {
        let params = request.raw_params().map(Text::from);
        if request.is_notification() {
            let connection = &cx.parts().connection;
            let subscription = self.subscription(connection, params);
            let is_for_handlers = subscription.is_none_or(|id| self.listeners.is_for_handlers(&id));
            let handler = is_for_handlers
                .then(|| self.handler_of(|| cx.clone(), connection, request.method(), params));
            return Box::pin(async move {
                if let Some(handler) = handler.flatten() {
                    handler.await;
                }
                Ok(Response::empty())
            });
        }
        let revision = cx.revision();
        let params = params.unwrap_or(Text::EMPTY);
        let served = methods::serve(&self.client.features(), cx, request.method(), params);
        Box::pin(async move {
            let body = served?.await?;
            body.into_json(revision, None).map(Response::from_text)
        })
    }

    /// The subscription to which a notification belongs. Notifications of legacy servers belong to none.
    fn subscription(&self, connection: &Connection, params: Option<Text<'_>>) -> Option<RequestId> {
        let modern = self.revision().is_modern().then_some(params);
        modern.and_then(|params| subscription_id(connection, params))
    }

    /// The future of the handler for a notification: the user's handler, or that of an extension.
    fn handler_of(
        &self,
        cx: impl FnOnce() -> RequestContext,
        connection: &Arc<Connection>,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Option<BoxFuture<()>> {
        let run = self.notification_handler(connection, method, params);
        run.or_else(|| {
            let features = self.client.features();
            let params = params.unwrap_or(Text::EMPTY);
            features
                .extensions
                .handle_notification(cx(), method, params)
        })
    }

    /// Begins to serve a request, on the connection's task if that is quick.
    fn begin(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        let method = arrival.method;
        let params = arrival.params.unwrap_or(&RequestParams::UNREAD);
        let mut context = self.context(connection, Some(arrival.id));
        context.batch = arrival.batch;
        context.progress_token = params.meta.progress_token();
        context.meta = params.meta.raw().map(Into::into);
        let context = Arc::new(context);
        connection.note_progress_token(&context);
        if let Err(error) = params.check() {
            return respond_inline(&context, Err(error.into()));
        }
        let cx = RequestContext::new(Arc::clone(&context));
        let features = self.client.features();
        let asks = matches!(method, Elicit::NAME | CreateMessage::NAME);
        let asking = asks.then(|| DeadlinePause::begin(connection));
        let span = span::inbound(&context, method, params);
        let begin = || catch_panic(|| methods::begin(&features, (cx, handle), method, params.raw));
        let future = match span.in_scope(begin) {
            Ok(future) => future,
            Err(error) => {
                span.finish(Err(&error));
                return respond_inline(&context, Err(error));
            }
        };
        let inline = if features.incoming.next().is_some() {
            Some(Arc::clone(&self.inline))
        } else {
            // A handler that asks a person or a model is slow, and may block.
            methods::has_handler(method).then(|| Arc::new(InlineExecution::never()))
        };
        let work = Work {
            future: Box::pin(async move {
                let _asking = asking;
                future.await
            }),
            inline,
        };
        run(context, span.around(work));
    }
}

impl Role for SessionState {
    fn side(&self) -> Side {
        Side::Client
    }

    fn revision(&self) -> Option<Revision> {
        self.negotiated().map(|negotiated| negotiated.revision)
    }

    fn tolerance(&self) -> Arc<Tolerance> {
        Arc::clone(&self.tolerance)
    }

    fn peer_name(&self) -> Option<String> {
        Some(self.server_name.clone())
    }

    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        if self.negotiated().is_none()
            && matches!(arrival.method, Discover::NAME | Initialize::NAME)
        {
            // Servers do not send these requests to clients.
            self.note_echo();
            return connection.break_off("the server echoes every message");
        }
        if self.revision().is_modern() {
            // Modern clients must not write responses, so the request cannot be refused.
            return tracing::warn!(
                method = arrival.method,
                "ignoring a request of a modern server, which must not make any"
            );
        }
        self.begin(connection, arrival);
    }

    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
        _: Option<&Principal>,
    ) {
        let bytes = notification.bytes();
        let RawNotification { method, params } = notification;
        let params = params.map(|params| params.raw);
        let change = Invalidation::read(connection, &method, params);
        if let Some(change) = &change {
            self.invalidate(change);
        }
        // The cache drops outdated responses before any handler or subscriber is told of a gap.
        let resumed = |filter: &SubscriptionFilter| self.missed(filter);
        let subscription = self.subscription(connection, params);
        let for_handlers = subscription.as_ref().is_none_or(|id| {
            self.listeners
                .deliver(connection, id, (&method, params), resumed)
        });
        if let (true, Some(Invalidation::Resource(update))) = (for_handlers, &change) {
            self.desired.push_update(update);
        }
        let features = self.client.features();
        let cx = || RequestContext::new(Arc::new(self.context(connection, None)));
        let handler = match features.incoming.next().cloned() {
            Some(next) => {
                let request = Request::incoming(cx(), handle, &method, params);
                Some(Box::pin(next.pass(request)) as BoxFuture<()>)
            }
            None if for_handlers => self.handler_of(cx, connection, &method, params),
            None => None,
        };
        let Some(handler) = handler else { return };
        if subscription.is_some() {
            // The notification of a subscription is independent of all calls: later responses need not wait for its
            // handler.
            connection.notifications().push(handler, bytes);
        } else {
            connection
                .notifications()
                .push_before_answers(handler, bytes);
        }
    }

    fn ended(&self, connection: &Arc<Connection>, id: &RequestId) -> bool {
        self.listeners.end(connection, id)
    }

    fn has_batches(&self) -> bool {
        self.revision().has_batches()
    }

    fn has_incoming(&self) -> bool {
        self.client.features().incoming.next().is_some()
    }

    fn has_outgoing(&self) -> bool {
        self.client.features().outgoing.next().is_some()
    }

    fn pass_outgoing(&self, message: Outgoing) -> BoxFuture<Result<Response>> {
        self.client.features().outgoing.pass_outgoing(message)
    }

    fn envelope(&self) -> Option<&str> {
        self.negotiated()?.envelope.as_deref()
    }

    fn outlives_peer(&self) -> bool {
        // Each request carries all that a modern server needs.
        self.negotiated()
            .is_some_and(|negotiated| negotiated.revision.is_modern())
    }

    fn restarted(&self, connection: &Arc<Connection>) {
        let handler = self.client.features().notifications.restarted.clone();
        if let Some(handler) = handler {
            let handler = handler((), Arc::downgrade(connection));
            connection.notifications().push_before_answers(handler, 0);
        }
    }

    fn has_meta_key(&self, key: &str) -> bool {
        self.client.features().extensions.has_meta_key(key)
    }

    fn closed(&self, connection: &Arc<Connection>) {
        let is_open =
            |it: &Weak<Connection>| it.strong_count() > 0 && it.as_ptr() != Arc::as_ptr(connection);
        self.client.connections().retain(is_open);
    }
}
