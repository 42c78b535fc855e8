//! Extensions of a server, and what it sends for them.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Error, Extension, Result,
    extension::{members, say},
    protocol::{
        JsonObject, Method, Notification,
        method::{self, Row},
    },
    server::{Server, ServerSession, SessionCall, listen::Event},
    session::{RequestContext, Side},
};

impl Server {
    /// Adds an extension: the server declares it, serves its methods and takes its notifications. What is wrong with it is
    /// reported when the server connects. See [`extension`](crate::extension).
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        let mut added = Ok(());
        self.change(|features| added = features.extensions.add(extension, Side::Server));
        self.note(added);
        self
    }

    /// Sends a notification of an extension to all who want to hear it: modern clients that have subscribed to `value` under
    /// the extension's `key`, and legacy clients that have declared the extension, since they cannot subscribe.
    ///
    /// A subscription wants to hear of a value that its filter has under the key, by itself or in a list; `true` is all of
    /// them. What is published for one client reaches it in order. It may be called from any thread. A subscription that does not read is ended, with an error,
    /// when more than [`Limits::max_queued_events`](crate::Limits::max_queued_events) wait.
    ///
    /// ```
    /// use oxmcp::{Extension, Server, protocol::{Notification, NotificationParams}};
    ///
    /// struct Entered;
    /// impl Notification for Entered {
    ///     const NAME: &'static str = "notifications/com.example/rooms/entered";
    ///     type Params = NotificationParams;
    /// }
    ///
    /// # fn main() -> oxmcp::Result<()> {
    /// let rooms = Extension::new("com.example/rooms").listen_key("com.example/rooms");
    /// let server = Server::new("house", "1.0.0").extension(rooms);
    /// server.publish::<Entered>("com.example/rooms", "kitchen", NotificationParams::default())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where no extension of the server has the key, or the params are no JSON object.
    pub fn publish<N: Notification>(
        &self,
        key: &str,
        value: impl Into<Value>,
        params: N::Params,
    ) -> Result<()> {
        let features = self.features();
        let Some(publisher) = features.extensions.publisher(key) else {
            return Err(Error::misuse(format!(
                "no extension of this server has the key {key:?}: say so with Extension::listen_key"
            )));
        };
        let params = members::<N>(params)?;
        let (value, name) = (value.into(), N::NAME);
        let event = Event::new(name, params);
        let limit = features.limits.max_queued_events;
        self.listens()
            .publish(limit, (key, &value), &event, &publisher);
        for session in self.sessions() {
            let peer = session.peer();
            let event = event.clone();
            let limit = session.connection().limits.max_queued_events;
            peer.listens()
                .publish(limit, (key, &value), &event, &publisher);
            if let Some(client) = peer.callers().ready()
                && publisher.tells(name, client.revision, &client.capabilities)
            {
                let connection = Arc::clone(session.connection());
                let lane = Arc::clone(peer.outgoing_lane(&connection));
                let job = Box::pin(async move {
                    event.send(&connection, JsonObject::new()).await;
                });
                // It is this side's own, and all who hear of it share it.
                lane.push(job, 0);
            }
        }
        Ok(())
    }
}

impl ServerSession {
    /// Makes a request of an extension to a client that has opened a session with `initialize` (2025-11-25 and earlier;
    /// modern clients take no requests).
    ///
    /// It fails with [`Error::is_unsupported`], and nothing is sent, where the client is modern, its revision does not have
    /// the method, or it does not know the extension.
    pub fn request<M: Method>(&self, params: M::Params) -> SessionCall<M> {
        let ready = self.may_send(
            method::REQUESTS_TO_CLIENT,
            M::NAME,
            "modern clients take no requests",
        );
        SessionCall::new(self, ready.map(|()| Box::new(params)))
    }

    /// Sends a notification of an extension to a client that has opened a session with `initialize` (2025-11-25 and
    /// earlier). Modern clients hear of what belongs to a request, by [`RequestContext::notify`], and of what they have
    /// subscribed to, by [`Server::publish`].
    ///
    /// # Errors
    /// [`Error::is_unsupported`] where the client is modern, its revision does not have the notification, or it does not know
    /// the extension. Where the notification is the protocol's own. Where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let name = N::NAME;
        let params = members::<N>(params)?;
        let modern = "modern clients hear of their requests and subscriptions only: use RequestContext::notify or \
                      Server::publish";
        self.may_send(&[], name, modern)?;
        say(self.connection(), name, params, JsonObject::new()).await
    }

    /// Whether a message may be sent to the client. `modern` says what holds for those that opened no session.
    fn may_send(&self, table: &'static [Row], name: &str, modern: &str) -> Result<()> {
        let Some(client) = self.peer().callers().legacy() else {
            return Err(Error::unsupported(format!(
                "{name} needs a client that opened a session with initialize; {modern}"
            )));
        };
        let declared = client.capabilities.extensions.as_ref();
        let features = self.server().features().clone();
        let extensions = &features.extensions;
        extensions.may_send(table, name, client.revision, declared)
    }
}

impl RequestContext {
    /// Sends a notification of an extension that belongs to this request. What is sent before the handler returns is on the
    /// wire before its answer, and what is sent later is dropped. On a server only.
    ///
    /// ```
    /// # use oxmcp::{RequestContext, protocol::{Notification, NotificationParams}};
    /// # struct Ticked;
    /// # impl Notification for Ticked {
    /// #     const NAME: &'static str = "notifications/com.example/clock/ticked";
    /// #     type Params = NotificationParams;
    /// # }
    /// async fn wind(cx: RequestContext) -> oxmcp::Result<()> {
    ///     cx.notify::<Ticked>(NotificationParams::default()).await
    /// }
    /// # let _ = wind;
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unsupported`] where the client's revision does not have the notification, or the client has not declared the
    /// extension. Where the notification is the protocol's own.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let params = members::<N>(params)?;
        let session = self
            .server_session()
            .ok_or_else(|| Error::misuse("only servers send what belongs to a request"))?;
        let declared = self.client_capabilities().extensions.as_ref();
        let features = session.server().features().clone();
        features
            .extensions
            .may_send(&[], N::NAME, self.revision(), declared)?;
        self.tell(N::NAME, &params).await
    }
}
