//! Dispatch of a request: the identity of its client, its context, the middleware, and its method.

use std::sync::Arc;

use oxmcp_json::Text;
use oxmcp_protocol::{
    ErrorCode, Method, Notification, RequestId, Revision,
    internal::{Params, RawNotification, RequestMeta, RequestParams},
    method,
};

use crate::{
    error::{Error, Result},
    server::{
        dispatch::methods,
        dispatch::{Served, ServerRole},
        features::Features,
        registry::Feature,
        subscriptions::release,
        tool::RegisteredTool,
    },
    session::{
        connection::{Arrival, Connection, ContextParts, Peer, RequestContext, Role, Side},
        inbound::{
            body::Body,
            run::{Work, respond_inline, run},
        },
        middleware::{Next, Request, Response},
        outbound::outgoing::Outgoing,
        panics::catch_panic,
        task::BoxFuture,
        tolerance::Tolerance,
        trace::span,
    },
    transport::principal::Principal,
};

impl Role for ServerRole {
    fn side(&self) -> Side {
        Side::Server
    }

    fn revision(&self) -> Option<Revision> {
        let client = self.legacy_session().client();
        client.map(|client| client.revision)
    }

    fn tolerance(&self) -> Arc<Tolerance> {
        match self.is_strict() {
            true => Arc::new(Tolerance::strict()),
            false => Arc::clone(&self.server().features().tolerance),
        }
    }

    fn peer_name(&self) -> Option<String> {
        let client = self.legacy_session().client()?;
        client.implementation.as_ref().map(|info| info.name.clone())
    }

    /// Identifies the client, whose revision decides how the request is served, and makes the context of the request.
    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        let Arrival {
            id,
            method,
            params,
            sender,
            batch,
        } = arrival;
        let features = self.server().features();
        let params = params.unwrap_or(&RequestParams::UNREAD);
        let mut context = match self.context(&features, connection, (&id, method), params) {
            Ok(context) => context,
            Err(error) => {
                // Only a request that names a revision is refused because of the revision, and its client knows the modern
                // errors.
                let peer = match error.code() {
                    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => Peer::unknown_modern(),
                    _ => Peer::unknown(),
                };
                let mut context = ContextParts::new(connection, Some(id), Arc::new(peer));
                context.sender = sender;
                context.batch = batch;
                return self.refuse(&context, error);
            }
        };
        context.sender = sender;
        context.batch = batch;
        let context = Arc::new(context);
        connection.note_progress_token(&context);
        let cx = || RequestContext::new(Arc::clone(&context));
        let redirected = redirected(&features, cx, method, params);
        let params = &redirected
            .as_deref()
            .map_or(*params, |text| RequestParams::of(Text::checked(text)));
        #[cfg(all(feature = "auth", feature = "http-server"))]
        if let Err(error) = self.check_scopes(&features, &context, method, params) {
            return self.refuse(&context, error);
        }
        self.dispatch(&features, context, method, params);
    }

    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
        sender: Option<&Principal>,
    ) {
        let session = self.legacy_session();
        if notification.method == method::Initialized::NAME && session.set_initialized() {
            self.server().keep_connection_alive(connection.trunk());
            if let Some(hook) = &self.server().features().on_initialized {
                connection.notifications().push(hook.call(connection), 0);
            }
        }
        let features = self.server().features();
        let bytes = notification.bytes();
        let RawNotification { method, params } = notification;
        if method == method::RootsListChanged::NAME
            && let Some(roots) = session.roots()
        {
            roots.changed(connection, features.on_roots_changed.as_ref());
        }
        let meta = params.map(|it| &it.meta);
        let cx = self.notification_context(connection, &features, sender, meta);
        let params = params.map(|it| it.raw);
        let Some(next) = features.incoming.next().cloned() else {
            let params = params.unwrap_or(Text::EMPTY);
            if let Some(job) = features.extensions.handle_notification(cx, &method, params) {
                connection.notifications().push(job, bytes);
            }
            return;
        };
        let request = Request::incoming(cx, handle, &method, params);
        connection
            .notifications()
            .push(Box::pin(next.pass(request)), bytes);
    }

    fn has_batches(&self) -> bool {
        let client = self.legacy_session().client();
        client.is_some_and(|client| client.revision.has_batches())
    }

    fn server_info(&self) -> Option<&str> {
        Some(&self.info_json)
    }

    fn has_incoming(&self) -> bool {
        self.server().features().incoming.next().is_some()
    }

    fn has_outgoing(&self) -> bool {
        self.server().features().outgoing.next().is_some()
    }

    fn pass_outgoing(&self, message: Outgoing) -> BoxFuture<Result<Response>> {
        self.server().features().outgoing.pass_outgoing(message)
    }

    fn has_meta_key(&self, key: &str) -> bool {
        self.server().features().extensions.has_meta_key(key)
    }

    fn closed(&self, connection: &Arc<Connection>) {
        self.server().remove_connection(connection);
        release(connection, self.watched.close());
    }
}

/// Handles a message after all incoming middleware, by the role of the connection on which it arrived.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the last middleware hands the request over"
)]
fn handle(request: Request) -> BoxFuture<Result<Response>> {
    let cx = request.context().cloned();
    let role = cx
        .as_ref()
        .and_then(|cx| cx.parts().connection.role_as::<ServerRole>());
    let (Some(cx), Some(role)) = (cx, role) else {
        return Box::pin(async {
            Err(Error::misuse("cannot handle this request: no peer sent it"))
        });
    };
    role.handle(cx, &request)
}

impl ServerRole {
    /// Handles a message of the client after all incoming middleware.
    fn handle(&self, cx: RequestContext, request: &Request) -> BoxFuture<Result<Response>> {
        let features = self.server().features();
        if request.is_notification() {
            // Its effects were applied on arrival; only extensions have handlers for it.
            let params = request.raw_params().map_or(Text::EMPTY, Text::from);
            let job = features
                .extensions
                .handle_notification(cx, request.method(), params);
            return Box::pin(async move {
                if let Some(job) = job {
                    job.await;
                }
                Ok(Response::empty())
            });
        }
        let revision = cx.revision();
        let info = Arc::clone(&self.info_json);
        let params = request
            .raw_params()
            .map(|raw| RequestParams::of(Text::from(raw)));
        let params = params.unwrap_or_default();
        // Middleware may have replaced the params.
        let redirected = redirected(&features, || cx.clone(), request.method(), &params);
        let params = redirected
            .as_deref()
            .map_or(params, |text| RequestParams::of(Text::checked(text)));
        #[cfg(all(feature = "auth", feature = "http-server"))]
        if let Some(original) = request.original_params() {
            let original = RequestParams::of(Text::from(original));
            let params = (&original, &params);
            if let Err(error) = self.check_replaced(&features, &cx, request.method(), params) {
                return Box::pin(async { Err(error) });
            }
        }
        let served = params
            .check()
            .map_err(Error::from)
            .and_then(|()| methods::serve(self, &features, cx, request.method(), &params));
        Box::pin(async move {
            let body = match served? {
                Served::Ready(body) => body,
                Served::Pending(work) => work.future.await?,
            };
            body.into_json(revision, Some(&info))
                .map(Response::from_text)
        })
    }
}

/// The params of a call that is made through the [search](crate::Server::search_tools), as those of a call of the tool found.
/// `None` for other requests.
fn redirected(
    features: &Features,
    cx: impl FnOnce() -> RequestContext,
    method: &str,
    params: &RequestParams<'_>,
) -> Option<Box<str>> {
    let search = features.tool_search.as_deref()?;
    if method != method::CallTool::NAME {
        return None;
    }
    // A visibility function that panics hides the tool.
    let sees = |tool: &RegisteredTool| catch_panic(|| Ok(tool.is_visible(&cx()))).unwrap_or(false);
    search.redirected(params, features.has_strict_arguments, sees)
}

impl ServerRole {
    /// The context of a request, which identifies the client to its handler and to the visibility checks.
    ///
    /// # Errors
    /// If the params are invalid, or the revision is unknown.
    pub(crate) fn context(
        &self,
        features: &Features,
        connection: &Arc<Connection>,
        (id, method): (&RequestId, &str),
        params: &RequestParams<'_>,
    ) -> Result<ContextParts> {
        params.check()?;
        let clients = self.server().clients();
        let session = self.legacy_session();
        let revisions = self.revisions(features);
        let client = session.client_of_request(clients, revisions, method, &params.meta)?;
        let mut context = ContextParts::new(connection, Some(id.clone()), client);
        context.log_level = params.meta.log_level()?;
        context.progress_token = params.meta.progress_token();
        context.meta = params.meta.raw().map(Into::into);
        Ok(context)
    }

    fn dispatch(
        &self,
        features: &Features,
        context: Arc<ContextParts>,
        method: &str,
        params: &RequestParams<'_>,
    ) {
        let cx = RequestContext::new(Arc::clone(&context));
        let span = span::inbound(&context, method, params);
        if let Some(next) = features.incoming.next().cloned() {
            let work = self.through_middleware(next, cx, method, params);
            return run(context, span.around(work));
        }
        let serve = || catch_panic(|| methods::serve(self, features, cx, method, params));
        match span.in_scope(serve) {
            Ok(Served::Ready(body)) => {
                span.finish(Ok(&body));
                respond_inline(&context, Ok(body));
            }
            Ok(Served::Pending(work)) => run(context, span.around(work)),
            Err(error) => {
                span.finish(Err(&error));
                self.refuse(&context, error);
            }
        }
    }

    /// The work of a request that passes through the middleware, and ends in [`handle`].
    fn through_middleware(
        &self,
        next: Next,
        cx: RequestContext,
        method: &str,
        params: &RequestParams<'_>,
    ) -> Work {
        // The client's next messages rely on the session that it opens, or on the level that it sets.
        let settles = matches!(method, method::Initialize::NAME | method::SetLevel::NAME);
        let hold = settles.then(|| cx.parts().connection.hold());
        let request = Request::incoming(cx, handle, method, Some(params.raw));
        let future = Box::pin(async move {
            let response = next.run(request).await;
            drop(hold);
            response.map(|response| Body::Json(response.into_text()))
        });
        Work {
            future,
            inline: (!settles).then(|| Arc::clone(self.server().inline_execution())),
        }
    }

    /// Responds to a request with an error, without calling its handler.
    fn refuse(&self, context: &ContextParts, error: Error) {
        self.set_refused(&error);
        respond_inline(context, Err(error));
    }

    fn notification_context(
        &self,
        connection: &Arc<Connection>,
        features: &Features,
        sender: Option<&Principal>,
        meta: Option<&RequestMeta<'_>>,
    ) -> RequestContext {
        let clients = self.server().clients();
        let session = self.legacy_session();
        let client = session.client_of_notification(clients, self.revisions(features), meta);
        let mut context = ContextParts::new(connection, None, client);
        context.sender = sender.cloned();
        context.meta = meta.and_then(RequestMeta::raw).map(Into::into);
        RequestContext::new(Arc::new(context))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::{limits::Limits, server::Server};

    #[tokio::test]
    async fn concurrently_admitted_requests_cannot_share_an_id() {
        let peer = ServerRole::new(Server::new("s", "1"));
        let connection = Connection::new(peer, Limits::default());
        let id = RequestId::from(1);
        let context = || {
            let peer = Arc::new(Peer::unknown());
            Arc::new(ContextParts::new(&connection, Some(id.clone()), peer))
        };
        let in_flight = connection.in_flight();
        assert!(in_flight.admit(&id, "x").is_ok() && in_flight.admit(&id, "x").is_ok());
        assert!(in_flight.enter(&id, context()).is_ok());
        assert!(in_flight.enter(&id, context()).is_err());
        assert!(in_flight.admit(&id, "x").is_err());
    }

    /// A request to a handler that never responds.
    fn stuck(connection: &Arc<Connection>, id: i64) -> Arc<ContextParts> {
        let peer = Arc::new(Peer::unknown());
        let context = Arc::new(ContextParts::new(connection, Some(id.into()), peer));
        let future = Box::pin(pending());
        let inline = None;
        run(Arc::clone(&context), Work { future, inline });
        context
    }

    /// All bytes that were sent so far.
    fn said(connection: &Connection) -> String {
        let mut said = Vec::new();
        connection.outbox.try_take(&mut said);
        String::from_utf8(said).unwrap()
    }

    #[tokio::test]
    async fn second_request_with_the_same_id_is_refused() {
        let peer = ServerRole::new(Server::new("s", "1"));
        let connection = Connection::new(peer, Limits::default());
        let [first, second] = [(); 2].map(|()| stuck(&connection, 1));
        assert!(said(&connection).contains("in flight"));
        assert!(connection.in_flight().cancel(&1.into()));
        assert!(first.cancel.is_set() && !second.cancel.is_set());
    }

    #[tokio::test]
    async fn cancelled_request_gets_no_error_at_the_end() {
        let peer = ServerRole::new(Server::new("s", "1"));
        let connection = Connection::new(peer, Limits::default());
        let wanted = stuck(&connection, 1);
        stuck(&connection, 2);
        connection.in_flight().cancel(&2.into());
        connection.end_drain();
        let said = said(&connection);
        assert!(
            said.contains(r#""id":1"#) && !said.contains(r#""id":2"#),
            "{said}"
        );
        assert!(wanted.cancel.is_set(), "its handler is told");
    }
}
