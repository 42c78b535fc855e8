//! What a client does with what its connection brings.

use std::{any::Any, sync::Arc};

use crate::{
    Error, Result,
    client::{
        cache::Change,
        methods::{self, Served},
        peer::ClientPeer,
    },
    json::Text,
    jsonrpc::{Params, RawNotification, RequestId},
    protocol::{
        Method, RequestParams, SubscriptionFilter,
        method::{CreateMessage, Elicit},
    },
    session::{
        Arrival, Asking, Body, BoxFuture, Connection, Pace, RequestContext, Role, Side, Work,
        guarded,
        middleware::{Next, Request, Response},
        respond_now, serve,
    },
};

impl ClientPeer {
    /// What is to be done for a notification: by a handler of the user, or of an extension.
    fn heard(
        &self,
        cx: impl FnOnce() -> RequestContext,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Option<BoxFuture<()>> {
        let job = self.hook(method, params);
        job.or_else(|| {
            let features = self.client().features();
            let params = params.unwrap_or(Text::EMPTY);
            features.extensions.heard(cx(), method, params)
        })
    }

    fn begin(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        let Arrival {
            id,
            method,
            params,
            batch,
        } = arrival;
        let params = params.unwrap_or(&RequestParams::UNREAD);
        let mut context = self.context(connection, Some(id));
        context.batch = batch;
        context.progress_token = params.meta.progress_token();
        context.meta = params.meta.raw().map(Into::into);
        let context = Arc::new(context);
        connection.note_wish(&context);
        if let Err(error) = params.check() {
            return respond_now(&context, Err(error.into()));
        }
        let cx = RequestContext::new(Arc::clone(&context));
        let features = self.client().features();
        let asks = matches!(method, Elicit::NAME | CreateMessage::NAME);
        let asking = asks.then(|| Asking::begin(connection));
        if let Some(next) = features.incoming.next().cloned() {
            let request = Request::incoming(cx, method, Some(params.whole));
            let future = Box::pin(async move {
                let _asking = asking;
                let response = next.run(request).await;
                response.map(|response| Body::Json(response.into_text()))
            });
            let work = Work {
                future,
                pace: Some(Arc::clone(self.pace())),
                begun: None,
            };
            return serve(context, work);
        }
        match guarded(|| methods::serve(&features, cx, method, params.whole)) {
            Ok(Served::Now(body)) => respond_now(&context, Ok(body)),
            Ok(Served::Later(future)) => {
                let work = Work {
                    future: Box::pin(async move {
                        let _asking = asking;
                        future.await
                    }),
                    // Who asks a person or a model is not quick.
                    pace: Some(Arc::new(Pace::slow())),
                    begun: None,
                };
                serve(context, work);
            }
            Err(error) => respond_now(&context, Err(error)),
        }
    }
}

impl Role for ClientPeer {
    fn side(&self) -> Side {
        Side::Client
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        if self.revision().is_modern() {
            // Modern clients must not write responses, so there is no way to refuse.
            return tracing::warn!(
                method = arrival.method,
                "a modern server made a request, which it must not; it was ignored"
            );
        }
        self.begin(connection, arrival);
    }

    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
    ) {
        let bytes = notification.bytes();
        let RawNotification { method, params } = notification;
        let params = params.map(|params| params.whole);
        let change = Change::read(&method, params);
        if let Some(change) = &change {
            self.forget(change);
        }
        // What was missed is forgotten before anybody hears that something was.
        let resumed = |filter: &SubscriptionFilter| self.missed(filter);
        let for_handlers =
            !self.revision().is_modern() || self.listeners().take(&method, params, resumed);
        if let (true, Some(Change::Resource(update))) = (for_handlers, &change) {
            self.updates().updated(update);
        }
        let features = self.client().features();
        let cx = || RequestContext::new(Arc::new(self.context(connection, None)));
        let Some(next) = features.incoming.next().cloned() else {
            if for_handlers && let Some(handler) = self.heard(cx, &method, params) {
                connection.lane().push(handler, bytes);
            }
            return;
        };
        let cx = cx();
        let request = Request::incoming(cx, &method, params);
        connection.lane().push(Box::pin(next.pass(request)), bytes);
    }

    fn ended(&self, connection: &Arc<Connection>, id: &RequestId) -> bool {
        self.listeners().end(connection, id)
    }

    fn has_batches(&self) -> bool {
        self.revision().has_batches()
    }

    fn handle(&self, request: Request) -> BoxFuture<Result<Response>> {
        if request.is_notification() {
            let params = request.raw_params().map(Text::from);
            let for_handlers =
                !self.revision().is_modern() || self.listeners().is_for_handlers(params);
            let handler = request.context().filter(|_| for_handlers);
            let handler =
                handler.and_then(|cx| self.heard(|| cx.clone(), request.method(), params));
            return Box::pin(async move {
                if let Some(handler) = handler {
                    handler.await;
                }
                Ok(Response::empty())
            });
        }
        let Some(cx) = request.context().cloned() else {
            return Box::pin(async { Err(Error::misuse("only what came in can be handled")) });
        };
        let revision = cx.revision();
        let params = request.raw_params().map_or(Text::EMPTY, Text::from);
        let served = methods::serve(&self.client().features(), cx, request.method(), params);
        Box::pin(async move {
            let body = served?.body().await?;
            body.into_json(revision, None).map(Response::from_text)
        })
    }

    fn outgoing(&self) -> Option<Next> {
        let client = self.client();
        if !client.for_calls().has_outgoing() {
            return None;
        }
        client.features().outgoing.next().cloned()
    }

    fn envelope(&self) -> Option<&str> {
        self.negotiated()?.envelope.as_deref()
    }

    fn closed(&self, connection: &Arc<Connection>) {
        self.client().forget(connection);
    }
}
