//! A client at its end of one connection.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    Error, Result, Revision,
    client::{
        Client, ClientSession,
        cache::{Change, Seat},
        listener::Listeners,
        logs::RequestLevel,
        methods::{self, Served},
        mirrored::Mirrored,
        session::WeakSession,
        updates::Updates,
        visits::Visits,
    },
    json::Text,
    jsonrpc::{Params, RawNotification, RequestId},
    protocol::{
        ClientCapabilities, Implementation, Meta, Method, Project, RequestParams,
        ServerCapabilities, SubscriptionFilter,
        method::{self, CreateMessage, Elicit},
    },
    session::{
        Arrival, Asking, Body, BoxFuture, Connection, ContextParts, Pace, Peer, RequestContext,
        Role, Side, Work, guarded,
        middleware::{Next, Request, Response},
        respond_now, serve,
    },
    transport::Mirror,
};

/// A client at its end of one connection: what the server said of itself.
pub(crate) struct ClientPeer {
    client: Client,
    negotiated: OnceLock<Negotiated>,
    /// What handlers are given.
    session: OnceLock<WeakSession>,
    /// What is subscribed to.
    listeners: Arc<Listeners>,
    /// What is heard of for handlers, and for those who watch resources.
    updates: Updates,
    /// Where the server has sent the user to.
    visits: Visits,
    request_level: RequestLevel,
    /// What the client's cache knows of the session.
    seat: Seat,
    /// What of calls the transport repeats in headers.
    mirrored: Mirrored,
    /// How quick the middleware is, where there is any.
    pace: Arc<Pace>,
}

/// What was agreed on when the session was opened.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    pub(crate) server_info: Option<Implementation>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
    /// What the server was told that the client can do.
    pub(crate) declared: ClientCapabilities,
    /// What every modern request carries, as JSON members without braces.
    pub(crate) envelope: Option<Arc<str>>,
}

impl ClientPeer {
    pub(super) fn new(client: Client, seat: Seat, mirror: Option<Mirror>) -> Arc<Self> {
        Arc::new(Self {
            seat,
            mirrored: Mirrored::new(mirror),
            client,
            negotiated: OnceLock::new(),
            session: OnceLock::new(),
            listeners: Arc::default(),
            updates: Updates::default(),
            visits: Visits::default(),
            request_level: RequestLevel::default(),
            pace: Arc::new(Pace::new()),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// From which level on modern requests want to hear of the log.
    pub(super) fn request_level(&self) -> &RequestLevel {
        &self.request_level
    }

    pub(super) fn session(&self) -> Option<&WeakSession> {
        self.session.get()
    }

    pub(super) fn updates(&self) -> &Updates {
        &self.updates
    }

    pub(super) fn seat(&self) -> &Seat {
        &self.seat
    }

    pub(super) fn mirrored(&self) -> &Mirrored {
        &self.mirrored
    }

    /// Looks at a result before it is handed out. Legacy servers know nothing of headers.
    pub(super) fn screen<T: 'static>(&self, result: &mut T) {
        if self.revision().is_modern() {
            self.mirrored.screen(result);
        }
    }

    /// What every request says: answers depend on it.
    pub(super) fn terms(&self) -> Arc<str> {
        let envelope = self.negotiated().and_then(|it| it.envelope.clone());
        envelope.unwrap_or_else(|| self.revision().as_str().into())
    }

    pub(crate) fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.get()
    }

    /// Notes what was agreed on. It is said once, before the session is handed out.
    pub(crate) fn agree(&self, negotiated: Negotiated) {
        // The first agreement stands.
        let _ = self.negotiated.set(negotiated);
    }

    /// Notes the session that is handed out. It is said once, after [`agree`](Self::agree).
    pub(crate) fn open(&self, session: &ClientSession) {
        // There is one session for each connection.
        let _ = self.session.set(session.downgrade());
    }

    /// What a modern request must carry, and what it says that the client can do.
    pub(crate) fn envelope(&self, revision: Revision) -> (Meta, ClientCapabilities) {
        let features = self.client.features();
        let mut declared = features.capabilities();
        declared.project(revision);
        let mut info = features.info.clone();
        info.project(revision);
        let mut meta = Meta::default();
        meta.insert(Meta::PROTOCOL_VERSION, revision.as_str());
        let info = serde_json::to_value(&info);
        meta.insert(Meta::CLIENT_INFO, info.expect("strings are always JSON"));
        let capabilities = serde_json::to_value(&declared);
        meta.insert(
            Meta::CLIENT_CAPABILITIES,
            capabilities.expect("settings are always JSON"),
        );
        (meta, declared)
    }

    pub(super) fn visits(&self) -> &Visits {
        &self.visits
    }

    /// The user's handler for a notification.
    pub(super) fn hook(&self, method: &str, params: Option<Text<'_>>) -> Option<BoxFuture<()>> {
        if !method::is_in(method::NOTIFICATIONS_TO_CLIENT, method, self.revision()) {
            return None;
        }
        let features = self.client.features();
        let job = features.hooks.job(method, params, &self.visits)?;
        let session = self.session.get()?.clone();
        // The handler is called in its lane, not here: it is a user's code. Where nobody holds on to the session any
        // more, nobody is interested in it.
        Some(Box::pin(async move {
            if let Some(session) = session.upgrade() {
                job(session).await;
            }
        }))
    }

    /// Forgets answers that may be others now, since for a while nobody heard what passes a filter.
    pub(super) fn missed(&self, filter: &SubscriptionFilter) {
        for change in Change::unheard(filter) {
            self.forget(&change);
        }
    }

    /// Forgets answers that are others now.
    fn forget(&self, change: &Change) {
        self.client.response_cache().change(&self.seat, change);
    }

    /// What is to be done for a notification: by a handler of the user, or of an extension.
    fn heard(
        &self,
        cx: impl FnOnce() -> RequestContext,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Option<BoxFuture<()>> {
        let job = self.hook(method, params);
        job.or_else(|| {
            let features = self.client.features();
            let params = params.unwrap_or(Text::EMPTY);
            features.extensions.heard(cx(), method, params)
        })
    }

    fn revision(&self) -> Revision {
        self.negotiated()
            .map_or(Revision::LATEST_LEGACY, |negotiated| negotiated.revision)
    }

    /// The context of what the server sent, or asked within an answer.
    pub(super) fn context(
        &self,
        connection: &Arc<Connection>,
        id: Option<RequestId>,
    ) -> ContextParts {
        let negotiated = self.negotiated();
        let peer = Peer {
            revision: self.revision(),
            implementation: negotiated.and_then(|it| it.server_info.clone()),
            capabilities: negotiated.map_or_else(Default::default, |it| it.declared.clone()),
        };
        ContextParts::new(connection, id, Arc::new(peer))
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
        if let Err(error) = params.check() {
            return respond_now(&context, Err(error));
        }
        let cx = RequestContext::new(Arc::clone(&context));
        let features = self.client.features();
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
                pace: Some(Arc::clone(&self.pace)),
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
        let RawNotification { method, params } = notification;
        let params = params.map(|params| params.whole);
        let change = Change::read(&method, params);
        if let Some(change) = &change {
            self.forget(change);
        }
        // What was missed is forgotten before anybody hears that something was.
        let resumed = |filter: &SubscriptionFilter| self.missed(filter);
        let for_handlers =
            !self.revision().is_modern() || self.listeners.take(&method, params, resumed);
        if let (true, Some(Change::Resource(update))) = (for_handlers, &change) {
            self.updates.updated(update);
        }
        let features = self.client.features();
        let cx = || RequestContext::new(Arc::new(self.context(connection, None)));
        let Some(next) = features.incoming.next().cloned() else {
            if for_handlers && let Some(handler) = self.heard(cx, &method, params) {
                connection.lane().push(handler);
            }
            return;
        };
        let cx = cx();
        let request = Request::incoming(cx, &method, params);
        connection.lane().push(Box::pin(async move {
            if let Err(error) = next.run(request).await {
                tracing::debug!(%error, "the middleware refused a notification");
            }
        }));
    }

    fn ended(&self, connection: &Arc<Connection>, id: &RequestId) -> bool {
        self.listeners.end(connection, id)
    }

    fn has_batches(&self) -> bool {
        self.revision().has_batches()
    }

    fn handle(&self, request: Request) -> BoxFuture<Result<Response>> {
        if request.is_notification() {
            let params = request.raw_params().map(Text::from);
            let for_handlers =
                !self.revision().is_modern() || self.listeners.is_for_handlers(params);
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
        let served = methods::serve(&self.client.features(), cx, request.method(), params);
        Box::pin(async move {
            let body = served?.body().await?;
            body.into_json(revision, None).map(Response::from_text)
        })
    }

    fn outgoing(&self) -> Option<Next> {
        self.client.features().outgoing.next().cloned()
    }

    fn envelope(&self) -> Option<&str> {
        self.negotiated()?.envelope.as_deref()
    }

    fn closed(&self, connection: &Arc<Connection>) {
        self.client.forget(connection);
    }
}

impl fmt::Debug for ClientPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientPeer")
            .field("negotiated", &self.negotiated)
            .finish_non_exhaustive()
    }
}
