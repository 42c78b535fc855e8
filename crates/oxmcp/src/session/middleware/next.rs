use std::{
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
};

use tower_service::Service;

use super::{Request, Response, request::Origin};
use crate::{Error, Result, json::Logged, session::BoxFuture};

/// What comes after a middleware: the next one, or in the end the handler or the wire.
///
/// It is a [`tower::Service`](tower_service::Service), so that tower's layers can wrap it.
#[derive(Clone)]
pub struct Next(Arc<dyn Fn(Request) -> BoxFuture<Result<Response>> + Send + Sync>);

impl Next {
    /// The end of the line for what arrives.
    pub(crate) fn handler() -> Self {
        Self(Arc::new(|request| match &request.origin {
            Origin::Incoming(context) => {
                Arc::clone(context.parts().connection.role()).handle(request)
            }
            Origin::Outgoing(..) | Origin::Told(_) => misplaced(),
        }))
    }

    /// The end of the line for what is sent.
    pub(crate) fn wire() -> Self {
        Self(Arc::new(|request| match &request.origin {
            Origin::Outgoing(connection, _) => Box::pin(Arc::clone(connection).send(request)),
            Origin::Told(context) => Box::pin(context.clone().send_told(request)),
            Origin::Incoming(_) => misplaced(),
        }))
    }

    /// Hands the request on.
    ///
    /// # Errors
    /// Those of whatever comes next.
    ///
    /// # Cancel safety
    /// Dropping the future drops what comes next; a call on its way out is cancelled on the wire.
    pub async fn run(&self, request: Request) -> Result<Response> {
        (self.0)(request).await
    }

    /// Hands on a notification, which nobody answers.
    pub(crate) async fn pass(self, notification: Request) {
        if let Err(error) = self.run(notification).await {
            tracing::debug!(error = %Logged(&error), "the middleware refused a notification");
        }
    }

    /// A line that begins with `f`.
    pub(super) fn new(
        f: impl Fn(Request) -> BoxFuture<Result<Response>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(f))
    }
}

fn misplaced() -> BoxFuture<Result<Response>> {
    Box::pin(async {
        Err(Error::misuse(
            "a middleware handed on a request of the other direction",
        ))
    })
}

impl Service<Request> for Next {
    type Response = Response;
    type Error = Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        (self.0)(request)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}
