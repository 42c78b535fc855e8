//! Middleware layers: those of tower, and those that wrap a function.

use std::{
    fmt,
    future::Future,
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;

use crate::{
    error::{Error, Result},
    session::middleware::{next::Next, request::Request, response::Response},
    sync::Mutex,
};

/// A layer that can be added as a middleware: any [`tower::Layer`](Layer) around a [`Next`] whose service takes a [`Request`]
/// and returns a [`Response`].
///
/// It is implemented for all such layers; do not implement it yourself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a middleware",
    label = "not a layer for requests",
    note = "wrap an `async fn(Request, Next) -> oxmcp::Result<Response>` in `oxmcp::middleware::from_fn`",
    note = "or pass a `tower::Layer<Next>` whose service is `Service<Request, Response = Response> + Clone + Send`",
    note = "each request runs on a clone of the service: wrap a service that is not `Clone`, such as that of tower's `RateLimitLayer`, in one that is"
)]
pub trait MiddlewareLayer: Send + Sync + 'static {
    /// Wraps the rest of the chain in the layer.
    #[doc(hidden)]
    fn wrap(&self, next: Next) -> Next;
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[diagnostic::do_not_recommend]
impl<L> MiddlewareLayer for L
where
    L: Layer<Next> + Send + Sync + 'static,
    L::Service: Service<Request, Response = Response> + Clone + Send + 'static,
    <L::Service as Service<Request>>::Error: Into<BoxError>,
    <L::Service as Service<Request>>::Future: Send,
{
    fn wrap(&self, next: Next) -> Next {
        // A service need not be `Sync`, and each call works on its own clone.
        let service = Mutex::new(self.layer(next));
        Next::new(move |request| {
            let mut service = service.lock().clone();
            Box::pin(async move {
                let called = async {
                    std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
                    service.call(request).await
                };
                called.await.map_err(|error| from_box(error.into()))
            })
        })
    }
}

fn from_box(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::internal(other.to_string()).with_source(other),
    }
}

/// Creates a middleware from an async function of a [`Request`] and the [`Next`] in the chain. See the [module](super).
pub fn from_fn<F, Fut>(f: F) -> FromFnLayer<F>
where
    F: Fn(Request, Next) -> Fut + Clone,
    Fut: Future<Output = Result<Response>>,
{
    FromFnLayer(f)
}

/// The [`Layer`] that [`from_fn`] makes.
#[derive(Clone, Copy)]
pub struct FromFnLayer<F>(F);

/// The [`Service`] of a [`FromFnLayer`].
#[derive(Clone)]
pub struct FromFn<F> {
    f: F,
    next: Next,
}

impl<F: Clone> Layer<Next> for FromFnLayer<F> {
    type Service = FromFn<F>;

    fn layer(&self, next: Next) -> FromFn<F> {
        FromFn {
            f: self.0.clone(),
            next,
        }
    }
}

impl<F, Fut> Service<Request> for FromFn<F>
where
    F: Fn(Request, Next) -> Fut,
    Fut: Future<Output = Result<Response>>,
{
    type Response = Response;
    type Error = Error;
    type Future = Fut;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Fut {
        (self.f)(request, self.next.clone())
    }
}

impl<F> fmt::Debug for FromFnLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromFnLayer")
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromFn")
    }
}
