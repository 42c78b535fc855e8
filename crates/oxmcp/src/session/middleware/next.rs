//! The chain of middleware, and its two ends: the handler and the wire.

use std::{
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
};

use tower_service::Service;

use crate::{
    error::{Error, Result},
    logged::Logged,
    session::{
        inbound::run::handle_within_middleware,
        middleware::{
            request::{Direction, Request},
            response::Response,
        },
        task::BoxFuture,
    },
};

/// The rest of the middleware chain: the next middleware, or at the end the handler or the wire.
///
/// It is a [`tower::Service`](tower_service::Service), so tower's layers can wrap it.
#[derive(Clone)]
pub struct Next(Arc<NextFn>);

/// The function that a [`Next`] calls with a request.
type NextFn = dyn Fn(Request) -> BoxFuture<Result<Response>> + Send + Sync;

impl Next {
    /// A link of the chain.
    pub(crate) fn new(
        call: impl Fn(Request) -> BoxFuture<Result<Response>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(call))
    }

    /// The end of the chain for incoming messages, which calls the handler.
    pub(crate) fn handler() -> Self {
        Self::new(|request| {
            let Direction::Incoming(context, handle) = &request.direction else {
                return misplaced();
            };
            let (context, handle) = (Arc::clone(context.parts()), *handle);
            match request.is_notification() {
                true => handle(request),
                false => Box::pin(handle_within_middleware(context, move || handle(request))),
            }
        })
    }

    /// The end of the chain for outgoing messages, which sends them.
    pub(crate) fn wire() -> Self {
        Self::new(|request| match request.into_outgoing() {
            Some(message) => message.send(),
            None => misplaced(),
        })
    }

    /// [`run`](Self::run), with the future as it is stored.
    pub(crate) fn begin(&self, request: Request) -> BoxFuture<Result<Response>> {
        (self.0)(request)
    }

    /// Passes the request on. The future owns all its data, so that a closure can return it.
    ///
    /// ```
    /// use oxmcp::{Server, middleware};
    ///
    /// let server = Server::new("quiet", "1.0.0").layer(middleware::from_fn(|request, next| {
    ///     eprintln!("{}", request.method());
    ///     next.run(request)
    /// }));
    /// # let _ = server;
    /// ```
    ///
    /// # Errors
    /// Those of the rest of the chain. Also an error that [`is_cancelled`](Error::is_cancelled) if the request is cancelled:
    /// see [the end of a request](crate::middleware#the-end-of-a-request).
    ///
    /// # Cancel safety
    /// Dropping the future drops the rest of the chain; an outgoing call is cancelled on the wire.
    pub fn run(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response>> + Send + 'static + use<> {
        self.begin(request)
    }

    /// Passes on a notification, which has no answer.
    pub(crate) async fn pass(self, notification: Request) {
        if let Err(error) = self.run(notification).await {
            tracing::debug!(error = %Logged(&error), "middleware rejected a notification");
        }
    }
}

fn misplaced() -> BoxFuture<Result<Response>> {
    Box::pin(async {
        Err(Error::misuse(
            "a middleware passed on a request of the wrong direction",
        ))
    })
}

impl Service<Request> for Next {
    type Response = Response;
    type Error = Error;
    type Future = BoxFuture<Result<Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.begin(request)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}
