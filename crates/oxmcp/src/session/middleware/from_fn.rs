use std::{
    fmt,
    future::Future,
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;

use super::{Next, Request, Response};
use crate::{Error, Result};

/// Makes a middleware of an async function of a [`Request`] and the [`Next`] in line. See the [module](super).
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
