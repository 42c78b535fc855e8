//! A client at its end of one connection.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    Error, Result, Revision,
    client::{Client, ClientSession, listener::Listeners, session::WeakSession},
    json::Text,
    jsonrpc::{RawNotification, RequestId},
    protocol::{
        ClientCapabilities, Implementation, Meta, Method, RequestParams, ServerCapabilities,
        method::Ping,
    },
    session::{
        Arrival, Body, BoxFuture, Connection, ContextParts, Pace, Peer, RequestContext, Role, Side,
        Work,
        middleware::{Next, Request, Response},
        respond_now, serve,
    },
};

/// A client at its end of one connection: what the server said of itself.
pub(crate) struct ClientPeer {
    client: Client,
    negotiated: OnceLock<Negotiated>,
    /// What handlers are given.
    session: OnceLock<WeakSession>,
    /// What is subscribed to.
    listeners: Arc<Listeners>,
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
    /// What every modern request carries, as JSON members without braces.
    pub(crate) envelope: Option<Arc<str>>,
}

impl ClientPeer {
    pub(crate) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            negotiated: OnceLock::new(),
            session: OnceLock::new(),
            listeners: Arc::default(),
            pace: Arc::new(Pace::new()),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
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

    /// What a modern request must carry.
    pub(crate) fn envelope(&self, revision: Revision) -> Meta {
        let features = self.client.features();
        let capabilities = serde_json::to_value(features.capabilities());
        let info = serde_json::to_value(&features.info);
        let mut meta = Meta::default();
        meta.insert(Meta::PROTOCOL_VERSION, revision.as_str());
        meta.insert(Meta::CLIENT_INFO, info.expect("strings are always JSON"));
        meta.insert(
            Meta::CLIENT_CAPABILITIES,
            capabilities.expect("settings are always JSON"),
        );
        meta
    }

    /// The user's handler for a notification that something has changed.
    fn changed(&self, method: &str) -> Option<BoxFuture<()>> {
        let features = self.client.features();
        let handler = match method {
            "notifications/tools/list_changed" => &features.on_tools_changed,
            "notifications/prompts/list_changed" => &features.on_prompts_changed,
            "notifications/resources/list_changed" => &features.on_resources_changed,
            _ => return None,
        };
        let handler = Arc::clone(handler.as_ref()?);
        let session = self.session.get()?.clone();
        // The handler is called in its lane, not here: it is a user's code. Where nobody holds on to the session any
        // more, nobody is interested in it.
        Some(Box::pin(async move {
            if let Some(session) = session.upgrade() {
                handler(session).await;
            }
        }))
    }

    fn revision(&self) -> Revision {
        self.negotiated()
            .map_or(Revision::LATEST_LEGACY, |negotiated| negotiated.revision)
    }

    fn context(&self, connection: &Arc<Connection>) -> ContextParts {
        let peer = Peer {
            revision: self.revision(),
            implementation: self.negotiated().and_then(|it| it.server_info.clone()),
            capabilities: ClientCapabilities::default(),
        };
        ContextParts::new(connection, None, Arc::new(peer))
    }
}

/// What a client does for each method.
fn respond(method: &str) -> Result<Body> {
    match method {
        Ping::NAME => Ok(Body::Json("{}".into())),
        _ => Err(Error::method_not_found(method)),
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
            let method = &*arrival.request.method;
            return tracing::warn!(
                method,
                "a modern server made a request, which it must not; it was ignored"
            );
        }
        let mut context = self.context(connection);
        context.id = Some(arrival.request.id);
        context.batch = arrival.batch;
        let context = Arc::new(context);
        let method = &arrival.request.method;
        let Some(next) = self.client.features().incoming.next().cloned() else {
            return respond_now(&context, respond(method));
        };
        let cx = RequestContext::new(Arc::clone(&context));
        let request = Request::incoming(cx, method, arrival.request.params.map(|it| it.whole));
        let future = Box::pin(async move {
            next.run(request)
                .await
                .map(|response| Body::Json(response.into_text()))
        });
        let work = Work {
            future,
            pace: Some(Arc::clone(&self.pace)),
            begun: None,
        };
        serve(context, work);
    }

    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
    ) {
        let RawNotification { method, params } = notification;
        let params = params.map(|params| params.whole);
        let for_handlers = !self.revision().is_modern() || self.listeners.take(&method, params);
        let features = self.client.features();
        let Some(next) = features.incoming.next().cloned() else {
            if let Some(handler) = self.changed(&method).filter(|_| for_handlers) {
                connection.lane.push(handler);
            }
            return;
        };
        let cx = RequestContext::new(Arc::new(self.context(connection)));
        let request = Request::incoming(cx, &method, params);
        connection.lane.push(Box::pin(async move {
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
            let handler = self.changed(request.method()).filter(|_| for_handlers);
            return Box::pin(async move {
                if let Some(handler) = handler {
                    handler.await;
                }
                Ok(Response::empty())
            });
        }
        let revision = self.revision();
        let body = respond(request.method());
        Box::pin(async move { body?.into_json(revision, None).map(Response::from_text) })
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
