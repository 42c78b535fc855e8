use std::sync::{Mutex, PoisonError};

use tower_layer::Layer;
use tower_service::Service;

use super::{Next, Request, Response};
use crate::Error;

/// What can be added as a middleware: any [`tower::Layer`](Layer) around a [`Next`] whose service takes a [`Request`] and
/// gives a [`Response`].
///
/// It is implemented for all of these, and made for nobody else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no middleware",
    label = "not a layer of requests",
    note = "wrap an `async fn(Request, Next) -> oxmcp::Result<Response>` in `oxmcp::middleware::from_fn`",
    note = "or give a `tower::Layer<Next>` whose service is `Service<Request, Response = Response> + Clone + Send`"
)]
pub trait MiddlewareLayer: Send + Sync + 'static {
    /// Puts the layer around what comes next.
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
        // A service need not be `Sync`, and each call works on a clone of its own.
        let service = Mutex::new(self.layer(next));
        Next::new(move |request| {
            let mut service = service
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
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
