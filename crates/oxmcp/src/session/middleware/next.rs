//! The chain of middleware, and its two ends: the handler and the wire.

use std::{
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
};

use tower_service::Service;

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::Logged,
    session::{
        connection::{Direction, Next, Request},
        inbound::run::handle_within_middleware,
        middleware::{layer::MiddlewareLayer, response::Response},
        task::BoxFuture,
    },
};

impl Next {
    /// The end of the chain for incoming messages, which calls the handler.
    pub(crate) fn handler() -> Self {
        Self(Arc::new(|request| match &request.direction {
            Direction::Incoming(context) => {
                let context = Arc::clone(context.parts());
                let role = Arc::clone(context.connection.role());
                match request.is_notification() {
                    true => role.handle(request),
                    false => Box::pin(handle_within_middleware(context, move || {
                        role.handle(request)
                    })),
                }
            }
            Direction::Outgoing(..) | Direction::OfRequest(_) => misplaced(),
        }))
    }

    /// The end of the chain for outgoing messages, which sends them.
    pub(crate) fn wire() -> Self {
        Self(Arc::new(|request| match &request.direction {
            Direction::Outgoing(connection, _) => Box::pin(Arc::clone(connection).send(request)),
            Direction::OfRequest(context) => Box::pin(context.clone().send_of_request(request)),
            Direction::Incoming(_) => misplaced(),
        }))
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
        (self.0)(request)
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
        (self.0)(request)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// All middleware of one direction.
#[derive(Clone)]
pub(crate) struct Stack {
    layers: Vec<Arc<dyn MiddlewareLayer>>,
    innermost: Next,
    /// All layers around the innermost service, if there are any layers.
    whole: Option<Next>,
}

impl Stack {
    pub(crate) fn incoming() -> Self {
        Self {
            layers: Vec::new(),
            innermost: Next::handler(),
            whole: None,
        }
    }

    pub(crate) fn outgoing() -> Self {
        Self {
            layers: Vec::new(),
            innermost: Next::wire(),
            whole: None,
        }
    }

    /// Adds a layer inside the existing ones.
    pub(crate) fn push(&mut self, layer: impl MiddlewareLayer) {
        self.push_shared(Arc::new(layer));
    }

    /// Like [`push`](Self::push), for a layer that other stacks share.
    pub(crate) fn push_shared(&mut self, layer: Arc<dyn MiddlewareLayer>) {
        self.layers.push(layer);
        let innermost = self.innermost.clone();
        self.whole = Some(
            self.layers
                .iter()
                .rev()
                .fold(innermost, |next, layer| layer.wrap(next)),
        );
    }

    /// The chain to pass requests to. `None` if there is no middleware.
    pub(crate) fn next(&self) -> Option<&Next> {
        self.whole.as_ref()
    }
}

opaque_debug!(Stack, |it| { layers: it.layers.len() });
