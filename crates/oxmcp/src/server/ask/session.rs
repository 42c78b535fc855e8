//! Asking a client outside of its requests, where a session is open.

use std::sync::Arc;

use super::{SessionCall, capability, live};
use crate::{
    Error, Result,
    protocol::{
        CreateMessageParams, ElicitParams, ElicitationCompleteParams, EmptyParams, InputRequest,
        Method, Notification, Root, method,
    },
    server::ServerSession,
};

impl ServerSession {
    /// Asks the user, by a form or a URL (2025-06-18 to 2025-11-25). In a handler,
    /// [`RequestContext::ask`](crate::RequestContext::ask) works in newer revisions as well.
    /// See [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation).
    pub fn elicit(&self, params: impl Into<ElicitParams>) -> SessionCall<method::Elicit> {
        let mut params = params.into();
        let request = InputRequest::Elicit(params.clone());
        let ready = self
            .can(method::Elicit::NAME, &request)
            .and_then(|revision| live::identify(&mut params, revision));
        SessionCall::new(self, ready.map(|()| Box::new(params))).question(request)
    }

    /// Asks a model of the client (until 2025-11-25). In a handler,
    /// [`RequestContext::sample`](crate::RequestContext::sample) works in newer revisions as well.
    /// See [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling).
    pub fn create_message(
        &self,
        params: CreateMessageParams,
    ) -> SessionCall<method::CreateMessage> {
        let params = Box::new(params);
        let request = InputRequest::CreateMessage(params.clone());
        let ready = self.can(method::CreateMessage::NAME, &request);
        SessionCall::new(self, ready.map(|_| params)).question(request)
    }

    /// Asks for the client's roots (until 2025-11-25). [`roots`](Self::roots) remembers them, and in a handler
    /// [`RequestContext::roots`](crate::RequestContext::roots) works in newer revisions as well.
    /// See [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots).
    pub fn list_roots(&self) -> SessionCall<method::ListRoots> {
        let request = InputRequest::ListRoots(EmptyParams::default());
        let ready = self.can(method::ListRoots::NAME, &request);
        SessionCall::new(self, ready.map(|_| Box::default())).question(request)
    }

    /// The client's roots, which are asked for when they are first needed, and again after the client has said that they
    /// have changed. A client that does not say so is asked each time.
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

    /// The same, where `ask` asks for them if they are not known.
    pub(crate) async fn roots_by(
        &self,
        ask: impl Future<Output = Result<Vec<Root>>>,
    ) -> Result<Arc<[Root]>> {
        let Some(cache) = self.peer().callers().roots() else {
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

    /// Tells the client that what the user was sent to a URL for is done (2025-11-25 only). `id` is the one that the
    /// elicitation had. Clients of other revisions know of no such thing and are told nothing.
    /// See [completion notifications](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    ///
    /// # Errors
    /// Where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
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

    fn can(&self, name: &str, request: &InputRequest) -> Result<crate::Revision> {
        let (Some(capabilities), Some(revision)) = (self.client_capabilities(), self.revision())
        else {
            return Err(Error::unsupported(format!(
                "{name} needs a client that opened a session with initialize; modern clients take no requests"
            )));
        };
        capability::check(request, capabilities, revision).map(|()| revision)
    }
}
