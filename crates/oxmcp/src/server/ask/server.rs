//! Requests of a server to a client in an open session, and the settings for asking.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{
    CreateMessageParams, ElicitParams, ElicitationCompleteParams, EmptyParams, InputRequest,
    Method, Notification, Revision, Root, method,
};

use super::{SessionCall, check, live_session::assign_id, settings::AskKeys};
#[cfg(feature = "http-server")]
use crate::session::shared_keys::SharedKeys;
use crate::{
    error::Result,
    server::{server::Server, session::ServerSession},
    session::{
        handler::state_scope::StateScope,
        sealing::{KeyRing, StateKey},
    },
};

impl Server {
    /// Sets the keys that seal the state of handlers while the client is asked.
    ///
    /// The first key seals, and each of the keys opens. To rotate keys, put the new one first, and remove the old one after
    /// [`state_lifetime`](Self::state_lifetime).
    ///
    /// By default, a server generates a random key. Processes that serve the same clients, such as several nodes behind a load
    /// balancer, need the same keys and the same server name. If no keys are set here, nodes use those of their
    /// [`Cluster`](crate::http::Cluster).
    /// See [server requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow).
    ///
    /// ```
    /// use oxmcp::{Server, keys::StateKey};
    ///
    /// # fn secret(_name: &str) -> [u8; 32] { [1; 32] }
    /// let server = Server::new("files", "1.0.0")
    ///     .state_keys([StateKey::new(secret("this month")), StateKey::new(secret("last month"))]);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn state_keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        let keys = Arc::new(AskKeys::new(KeyRing::new(keys.into_iter().collect())));
        self.with(|features| features.ask.keys = keys)
    }

    /// Uses the keys that the nodes of a cluster share, unless keys were given.
    #[cfg(feature = "http-server")]
    pub(crate) fn share_keys(&self, keys: &SharedKeys) {
        self.features().ask.keys.share(keys);
    }

    /// Sets the maximum time between a question and the request with its answer (2026-07-28 and later). A later answer is
    /// refused, and the client must start again. Default: 10 minutes.
    #[must_use]
    pub fn state_lifetime(self, lifetime: Duration) -> Self {
        self.with(|features| features.ask.lifetime = lifetime)
    }

    /// Sets the timeout for questions sent as requests to the client (up to 2025-11-25). Default: 10 minutes.
    #[must_use]
    pub fn ask_timeout(self, timeout: Duration) -> Self {
        self.with(|features| features.ask.timeout = timeout)
    }

    /// Sets a handler that is called when the roots of a client have changed (up to 2025-11-25; modern clients do not send this
    /// notification). Calls run one after another. [`ServerSession::roots`] returns the new roots.
    /// See [root list changes](https://modelcontextprotocol.io/specification/2025-11-25/client/roots#root-list-changes).
    ///
    /// ```
    /// use oxmcp::{Server, ServerSession};
    ///
    /// let server = Server::new("files", "1.0.0").on_roots_changed(|session: ServerSession| async move {
    ///     if let Ok(roots) = session.roots().await {
    ///         eprintln!("the client has {} roots", roots.len());
    ///     }
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    #[doc(alias = "notifications/roots/list_changed")]
    pub fn on_roots_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ServerSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = ServerSession::erased(handler);
        self.with(|features| features.on_roots_changed = Some(hook))
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Sets the handler of [`Server::on_roots_changed`], which takes the state as its first argument.
    pub fn on_roots_changed<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, ServerSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.role().build(|server| {
            server.on_roots_changed(move |session| handler(state.clone(), session))
        });
        self
    }
}

impl ServerSession {
    /// Asks the user, by a form or a URL (2025-06-18 to 2025-11-25). In a handler,
    /// [`RequestContext::ask`](crate::RequestContext::ask) works in newer revisions as well.
    /// See [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation).
    #[doc(alias = "elicitation/create")]
    pub fn elicit(&self, params: impl Into<ElicitParams>) -> SessionCall<method::Elicit> {
        let mut params = params.into();
        let request = InputRequest::Elicit(params.clone());
        let ready = self
            .check_question(method::Elicit::NAME, &request)
            .and_then(|revision| assign_id(&mut params, revision));
        SessionCall::new(self, ready.map(|()| Box::new(params))).question(request)
    }

    /// Asks the client to generate a message with a model (up to 2025-11-25). In a handler,
    /// [`RequestContext::sample`](crate::RequestContext::sample) works in newer revisions as well.
    /// See [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling).
    #[doc(alias("sampling/createMessage", "sample"))]
    pub fn create_message(
        &self,
        params: CreateMessageParams,
    ) -> SessionCall<method::CreateMessage> {
        let mut request = InputRequest::CreateMessage(Box::new(params));
        if let Some(client) = self.client() {
            request.fit_capabilities(&client.capabilities, client.revision);
        }
        let ready = self.check_question(method::CreateMessage::NAME, &request);
        let params = match &request {
            InputRequest::CreateMessage(params) => params.clone(),
            _ => Box::default(),
        };
        SessionCall::new(self, ready.map(|_| params)).question(request)
    }

    /// Asks for the client's roots (up to 2025-11-25). [`roots`](Self::roots) caches them. In a handler,
    /// [`RequestContext::roots`](crate::RequestContext::roots) works in newer revisions as well.
    /// See [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots).
    #[doc(alias = "roots/list")]
    pub fn list_roots(&self) -> SessionCall<method::ListRoots> {
        let request = InputRequest::ListRoots(EmptyParams::default());
        let ready = self.check_question(method::ListRoots::NAME, &request);
        SessionCall::new(self, ready.map(|_| Box::default())).question(request)
    }

    /// Returns the client's roots. They are cached until the client notifies the server of a change; a client that does not
    /// declare such notifications is asked each time.
    ///
    /// # Errors
    /// Those of [`list_roots`](Self::list_roots).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request on the wire.
    pub async fn roots(&self) -> Result<Arc<[Root]>> {
        self.roots_by(async { Ok(self.list_roots().await?.roots) })
            .await
    }

    /// The cached roots; if there are none, the roots that `ask` returns.
    pub(crate) async fn roots_by(
        &self,
        ask: impl Future<Output = Result<Vec<Root>>>,
    ) -> Result<Arc<[Root]>> {
        let Some(cache) = self.role().legacy_session().roots() else {
            return ask.await.map(Into::into);
        };
        if let Some(roots) = cache.get() {
            return Ok(roots);
        }
        let as_of = cache.version();
        let roots: Arc<[Root]> = ask.await?.into();
        let capabilities = self.client_capabilities();
        let roots_capability = capabilities.and_then(|it| it.roots.as_ref());
        if roots_capability.is_some_and(|roots| roots.list_changed) {
            cache.set(as_of, &roots);
        }
        Ok(roots)
    }

    /// Notifies the client that the user is done at the URL of an elicitation (2025-11-25 only). `id` identifies the
    /// elicitation. Clients of other revisions do not know the notification, and get none.
    /// See [completion notifications](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    ///
    /// # Errors
    /// If the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for space in the outbox, nothing has been sent.
    #[doc(alias = "notifications/elicitation/complete")]
    pub async fn notify_elicitation_complete(&self, id: impl Into<String>) -> Result<()> {
        let revision = self.revision();
        if !revision.is_some_and(|revision| revision.has_elicitation_ids()) {
            return Ok(());
        }
        let params = ElicitationCompleteParams::new(id);
        self.connection()
            .notify(method::ElicitationComplete::NAME, params)
            .await
    }

    /// Sends a request of an extension to the client of a legacy session (up to 2025-11-25; modern clients accept no requests).
    ///
    /// The call fails with [`Error::is_unsupported`](crate::Error::is_unsupported), and nothing is sent, if the client is
    /// modern, its revision does not have the method, or it does not know the extension.
    pub fn request<M: Method>(&self, params: M::Params) -> SessionCall<M> {
        let ready = self.check_extension(
            method::REQUESTS_TO_CLIENT,
            M::NAME,
            "modern clients accept no requests",
        );
        SessionCall::new(self, ready.map(|()| Box::new(params)))
    }

    /// Refuses a question that the client cannot be asked. Returns the client's revision.
    fn check_question(&self, method: &str, request: &InputRequest) -> Result<Revision> {
        let client = self.takes_requests(method)?;
        check::question(request, &client.capabilities, client.revision)?;
        Ok(client.revision)
    }
}
