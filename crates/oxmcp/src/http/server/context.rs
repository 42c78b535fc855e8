//! What a handler can know and do that is served over HTTP.

use std::time::Duration;

use http::request::Parts;

use crate::{RequestContext, http::server::detached::Detached};

impl RequestContext {
    /// The HTTP request that brought the one that is served: its headers, and in its extensions what the middleware in front
    /// of the endpoint has found out. `None` over any other transport.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool, http::Principal};
    ///
    /// let tool = Tool::new("whoami", "Say who is calling", |cx: RequestContext| async move {
    ///     let request = cx.http_request();
    ///     let caller = request.and_then(|request| request.extensions.get::<Principal>());
    ///     caller.map_or("nobody", Principal::as_str).to_owned()
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn http_request(&self) -> Option<&Parts> {
        let request = self.parts().connection.origin().request.as_ref()?;
        let detached = || request.downcast_ref().map(Detached::parts);
        request.downcast_ref().or_else(detached)
    }

    /// Ends the stream that answers this request before there is an answer, and tells the client when to come back for it:
    /// for handlers that take minutes, in which connections cost something or do not last. The handler goes on, and what it
    /// sends is kept for the client.
    ///
    /// It is possible in sessions of revision 2025-11-25 over HTTP whose endpoint has a store of events. Anywhere else it
    /// does nothing, so that a handler need not care.
    /// See [polling](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// let tool = Tool::new("report", "Write the report", |cx: RequestContext| async move {
    ///     cx.close_stream(Duration::from_secs(5));
    ///     // … work for an hour …
    ///     "done"
    /// });
    /// # let _ = tool;
    /// ```
    pub fn close_stream(&self, retry: Duration) {
        let parts = self.parts();
        let connection = &parts.connection;
        if connection.origin().request.is_some() && parts.peer.revision.has_polling() {
            connection.outbox.part(retry);
        }
    }
}
