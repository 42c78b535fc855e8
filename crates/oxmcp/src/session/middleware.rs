//! Code that sees requests and notifications, on their way in or on their way out.
//!
//! It sees every well-formed request whose sender is known and every notification, also those with methods that nobody
//! knows. It does not see `notifications/cancelled` and `notifications/progress`, which belong to calls in flight, nor what
//! is refused before it is looked at: what is malformed, an id that is in use, a request beyond the limits.
//!
//! A middleware is a function of a [`Request`] and the [`Next`] in line, made with [`from_fn`], or any
//! [`tower::Layer`](tower_layer::Layer) whose service takes a [`Request`] and gives a [`Response`]. It is added with
//! `Server::layer` and `Client::layer` for what arrives, and with `outgoing_layer` for what is sent. What was added first
//! is outermost: it sees a request first and its response last.
//!
//! ```
//! use std::time::Instant;
//! use oxmcp::{Server, middleware::{self, Next, Request}};
//!
//! let server = Server::new("timed", "1.0.0").layer(middleware::from_fn(
//!     |request: Request, next: Next| async move {
//!         let method = request.method().to_owned();
//!         let start = Instant::now();
//!         let response = next.run(request).await;
//!         eprintln!("{method}: {} after {:?}", if response.is_ok() { "ok" } else { "failed" }, start.elapsed());
//!         response
//!     },
//! ));
//! # let _ = server;
//! ```

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, Result,
    json::Text,
    session::{BoxFuture, CallOptions, Connection, RequestContext},
};

/// A request or a notification, seen by a middleware.
pub struct Request {
    method: Cow<'static, str>,
    params: Option<Box<RawValue>>,
    origin: Origin,
}

enum Origin {
    Incoming(RequestContext),
    /// Options are there for a request and not for a notification.
    Outgoing(Arc<Connection>, Option<Box<CallOptions>>),
}

impl Request {
    pub(crate) fn incoming(
        context: RequestContext,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Self {
        Self {
            method: Cow::Owned(method.to_owned()),
            params: params.map(Text::to_raw),
            origin: Origin::Incoming(context),
        }
    }

    pub(crate) fn outgoing(
        connection: &Arc<Connection>,
        method: &'static str,
        params: &impl Serialize,
        options: CallOptions,
    ) -> Result<Self> {
        let origin = Origin::Outgoing(Arc::clone(connection), Some(Box::new(options)));
        Ok(Self {
            method: Cow::Borrowed(method),
            params: Some(raw(params)?),
            origin,
        })
    }

    pub(crate) fn outgoing_notification(
        connection: &Arc<Connection>,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<Self> {
        let origin = Origin::Outgoing(Arc::clone(connection), None);
        Ok(Self {
            method: Cow::Borrowed(method),
            params: Some(raw(params)?),
            origin,
        })
    }

    pub(crate) fn into_outgoing(self) -> Result<OutgoingParts> {
        let Origin::Outgoing(_, options) = self.origin else {
            return Err(Error::misuse("a request that came in cannot be sent out"));
        };
        let params = match self.params {
            Some(params) => params,
            None => raw(&serde_json::Map::new())?,
        };
        Ok((self.method, params, options.map(|options| *options)))
    }

    /// The method, for example `tools/call`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Whether nobody waits for a response.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        match &self.origin {
            Origin::Incoming(context) => context.request_id().is_none(),
            Origin::Outgoing(_, options) => options.is_none(),
        }
    }

    /// The context that the handler will get. `None` for what is on its way out.
    #[must_use]
    pub fn context(&self) -> Option<&RequestContext> {
        match &self.origin {
            Origin::Incoming(context) => Some(context),
            Origin::Outgoing(..) => None,
        }
    }

    /// The params as JSON.
    #[must_use]
    pub fn raw_params(&self) -> Option<&RawValue> {
        self.params.as_deref()
    }

    /// The params as a type, for example [`CallToolParams`](crate::protocol::CallToolParams).
    ///
    /// # Errors
    /// [`ErrorCode::INVALID_PARAMS`](crate::ErrorCode::INVALID_PARAMS), where they are not what the type wants.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text)
            .map_err(|error| Error::invalid_params(format!("{}: {error}", self.method)))
    }

    /// Replaces the params.
    ///
    /// # Errors
    /// Where they cannot be serialized.
    pub fn set_params(&mut self, params: &impl Serialize) -> Result<()> {
        self.params = Some(raw(params)?);
        Ok(())
    }
}

type OutgoingParts = (Cow<'static, str>, Box<RawValue>, Option<CallOptions>);

fn raw(value: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(value)
        .map_err(|error| Error::misuse(format!("not serializable: {error}")).with_source(error))
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// What a request was answered with.
pub struct Response(Box<RawValue>);

impl Response {
    /// A response that `result` is the result of.
    ///
    /// It goes to the peer as it is: it must be what the peer's revision has for the method.
    ///
    /// # Errors
    /// Where `result` cannot be serialized.
    pub fn new(result: &impl Serialize) -> Result<Self> {
        raw(result).map(Self)
    }

    pub(crate) fn empty() -> Self {
        Self(raw(&serde_json::Map::new()).expect("an empty object is JSON"))
    }

    /// `json` has been checked.
    pub(crate) fn from_text(json: Box<str>) -> Self {
        Self(RawValue::from_string(json.into()).expect("it has been checked"))
    }

    pub(crate) fn into_text(self) -> Box<str> {
        self.0.into()
    }

    /// The result as JSON.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The result as a type, for example [`CallToolResult`](crate::protocol::CallToolResult).
    ///
    /// # Errors
    /// Where the result is not what the type wants.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.0.get()).map_err(|error| Error::decode(error.to_string()))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("bytes", &self.0.get().len())
            .finish()
    }
}

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
            Origin::Outgoing(..) => misplaced(),
        }))
    }

    /// The end of the line for what is sent.
    pub(crate) fn wire() -> Self {
        Self(Arc::new(|request| match &request.origin {
            Origin::Outgoing(connection, _) => Box::pin(Arc::clone(connection).send(request)),
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

    /// This line with `layer` around it.
    pub(crate) fn wrapped<L>(self, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<Request, Response = Response> + Clone + Send + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send,
    {
        // A service need not be `Sync`, and each call works on a clone of its own.
        let service = Mutex::new(layer.layer(self));
        Self(Arc::new(move |request| {
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
        }))
    }
}

fn misplaced() -> BoxFuture<Result<Response>> {
    Box::pin(async {
        Err(Error::misuse(
            "a middleware handed on a request of the other direction",
        ))
    })
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn from_box(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::internal(other.to_string()).with_source(other),
    }
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

/// All middleware of one direction.
#[derive(Clone)]
pub(crate) struct Stack {
    layers: Vec<Arc<dyn Fn(Next) -> Next + Send + Sync>>,
    innermost: Next,
    /// All layers around the innermost, where there are any.
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

    /// Adds a layer inside those that are there.
    pub(crate) fn push<L>(&mut self, layer: L)
    where
        L: Layer<Next> + Send + Sync + 'static,
        L::Service: Service<Request, Response = Response> + Clone + Send + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send,
    {
        self.layers.push(Arc::new(move |next| next.wrapped(&layer)));
        let innermost = self.innermost.clone();
        self.whole = Some(
            self.layers
                .iter()
                .rev()
                .fold(innermost, |next, layer| layer(next)),
        );
    }

    /// What to hand a request to. `None` where there is no middleware.
    pub(crate) fn next(&self) -> Option<&Next> {
        self.whole.as_ref()
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}

/// Makes a middleware of an async function of a [`Request`] and the [`Next`] in line. See the [module](self).
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
