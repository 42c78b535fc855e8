//! One session of Streamable HTTP, for programs that route requests themselves.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::{
    debug::opaque_debug,
    http::server::{
        endpoint::{State, StreamableHttp},
        response::ResponseBody,
    },
};

/// One session of Streamable HTTP, for programs that keep sessions and route requests themselves. Other programs use
/// [`StreamableHttp`].
///
/// It accepts the `initialize` request that opens the session, and then all requests that name its ID in `Mcp-Session-Id`. Requests
/// with another ID get 404. It has the settings of the endpoint that created it, including the checks of `Host` and `Origin`, but
/// shares only the endpoint's byte budget, not its other state. Cloning is cheap, and all clones are the same session. Dropping the
/// last clone ends the session like [`close`](Self::close); its record stays in a session store.
///
/// ```
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use oxmcp::{Server, http::{ResponseBody, StreamableHttp, StreamableSession}};
///
/// # async fn example(server: Server, request: Request<Full<bytes::Bytes>>) -> Response<ResponseBody> {
/// let endpoint = StreamableHttp::from(server);
/// // For an `initialize`: a session with an ID that you choose, and find again for later requests.
/// let session = endpoint.session("5e55-1001");
/// session.respond(request).await
/// # }
/// ```
///
/// See [session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
#[derive(Clone)]
pub struct StreamableSession {
    endpoint: StreamableHttp,
    id: Arc<str>,
    _end: Arc<EndOnDrop>,
}

/// Ends the session when the last handle is dropped. Otherwise it would last until it expires.
struct EndOnDrop(Arc<State>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.begin_close(Duration::ZERO);
        self.0.sessions.close_all();
    }
}

impl StreamableHttp {
    /// Creates a session with this ID and the settings of this endpoint, for programs that route requests themselves. The session
    /// is open when it has answered an `initialize` request. The ID must meet the requirements of
    /// [`session_ids`](Self::session_ids).
    #[must_use]
    pub fn session(&self, id: impl Into<Arc<str>>) -> StreamableSession {
        let id = id.into();
        let mut settings = (*self.settings).clone();
        let own = Arc::clone(&id);
        settings.session_ids = Some(Arc::new(move |_| own.to_string()));
        settings.limits.http.max_sessions = 1;
        let state = State::new(Arc::clone(&self.state.budget));
        StreamableSession {
            _end: Arc::new(EndOnDrop(Arc::clone(&state))),
            endpoint: Self {
                settings: Arc::new(settings),
                state,
            },
            id,
        }
    }
}

impl StreamableSession {
    /// Returns the ID of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Responds to a request.
    ///
    /// # Cancel safety
    /// If the future is dropped, the request continues in its session, as when a connection breaks.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    {
        let Ok(response) = self.endpoint.clone().call(request).await;
        response
    }

    /// Ends the session. Requests in flight, and those that arrive in the meantime, may finish within
    /// [`Limits::drain`](crate::Limits::drain); then they are cancelled.
    ///
    /// # Cancel safety
    /// If the future is dropped, closing continues.
    pub async fn close(&self) {
        self.endpoint.close().await;
    }
}

opaque_debug!(StreamableSession, |it| { state: it.endpoint.state });

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::StatusCode;
    use http_body_util::Full;
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;
    use crate::server::Server;

    async fn initialize(session: &StreamableSession) -> Response<ResponseBody> {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(Bytes::from(message.to_string())));
        session.respond(request.unwrap()).await
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_initialize_reopens_the_session() {
        let session = StreamableHttp::from(Server::new("s", "1")).session("one");
        for _ in 0..3 {
            let opened = initialize(&session).await;
            assert_eq!(opened.status(), StatusCode::OK);
            assert_eq!(opened.headers()["mcp-session-id"], "one");
            sleep(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn session_ends_with_its_last_handle() {
        let session = StreamableHttp::from(Server::new("s", "1")).session("one");
        initialize(&session).await;
        let state = Arc::downgrade(&session.endpoint.state);
        let other = session.clone();
        drop(session);
        sleep(Duration::from_secs(1)).await;
        assert!(state.upgrade().is_some_and(|it| !it.closing.is_set()));
        drop(other);
        sleep(Duration::from_secs(1)).await;
        assert!(state.upgrade().is_none());
    }
}
