//! Extensions of a client, and what it sends for them.

use crate::{
    client::{client::Client, session::ClientSession},
    error::Result,
    extension::{Extension, members, say},
    protocol::{JsonObject, Notification, method},
    session::Side,
};

impl Client {
    /// Adds an extension: the client declares it to servers, and takes its notifications; from legacy servers its requests,
    /// too. What is wrong with it is reported when the client connects. See [`extension`](crate::extension).
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        let mut added = Ok(());
        self.change(|features| added = features.extensions.add(extension, Side::Client));
        if let Err(problem) = added {
            self.report(problem);
        }
        self
    }
}

impl ClientSession {
    /// Sends a notification of an extension to the server. A modern server is told with it who sends it, as with a request.
    ///
    /// ```
    /// # use oxmcp::protocol::{Notification, NotificationParams};
    /// # struct Wound;
    /// # impl Notification for Wound {
    /// #     const NAME: &'static str = "notifications/com.example/clock/wound";
    /// #     type Params = NotificationParams;
    /// # }
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// session.notify::<Wound>(NotificationParams::default()).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) where the server's revision does not have the notification, or
    /// the server has not declared the extension. Where the notification is the protocol's own. Where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let params = members::<N>(params)?;
        self.may_send(&[], N::NAME)?;
        let envelope = self.connection().role().envelope();
        let envelope = envelope.map(|members| format!("{{{members}}}"));
        let meta: Option<JsonObject> = envelope.and_then(|it| serde_json::from_str(&it).ok());
        say(self.connection(), N::NAME, params, meta.unwrap_or_default()).await
    }

    /// Whether the revision that is spoken has a method, by itself or by an extension that the server knows.
    pub(crate) fn has_method(&self, name: &str) -> Result<()> {
        if method::is_in(method::REQUESTS_TO_SERVER, name, self.revision()) {
            return Ok(());
        }
        self.may_send(method::REQUESTS_TO_SERVER, name)
    }

    fn may_send(&self, table: &'static [method::Row], name: &str) -> Result<()> {
        let declared = self.server_capabilities().extensions.as_ref();
        let features = self.client().features().clone();
        features
            .extensions
            .may_send(table, name, self.revision(), declared)
    }
}
