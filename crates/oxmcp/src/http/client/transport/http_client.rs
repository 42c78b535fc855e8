//! The trait of HTTP clients, and the bodies of their responses.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use http::{Request, Response};

use crate::error::Result;

/// An HTTP client for an [`Endpoint`](crate::http::Endpoint): implement it to use your own client, with its proxies and
/// certificates, or to wrap a client and add a header to each request.
///
/// It must neither follow redirects nor retry: the endpoint does both, and knows which requests may be sent to which server. It
/// should not limit the time of a whole response either, because some responses are streams that stay open for hours.
///
/// ```
/// use bytes::Bytes;
/// use http::{HeaderValue, Request, Response};
/// use oxmcp::{Result, http::{HttpBody, HttpClient}};
///
/// /// Adds a token, which may change.
/// struct WithToken<C>(C);
///
/// impl<C: HttpClient> HttpClient for WithToken<C> {
///     async fn send(&self, mut request: Request<Bytes>) -> Result<Response<HttpBody>> {
///         request.headers_mut().insert("authorization", HeaderValue::from_static("Bearer …"));
///         self.0.send(request).await
///     }
/// }
/// ```
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request, whose URI is a whole URL, and waits for the head of its response. A response is never an error, whatever
    /// its status is.
    ///
    /// # Errors
    /// [`Error::unreachable`](crate::Error::unreachable) if nothing was sent, [`Error::network`](crate::Error::network) if
    /// something may have been sent.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of the response, cancels the request.
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<HttpBody>>> + Send;

    /// Returns the identity on whose behalf requests are sent: see
    /// [`Transport::authorization`](crate::transport::traits::Transport::authorization). `None`, the default, if it is not known.
    fn authorization(&self) -> Option<String> {
        None
    }
}

impl<C: HttpClient> HttpClient for Arc<C> {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<HttpBody>>> + Send {
        C::send(self, request)
    }

    fn authorization(&self) -> Option<String> {
        C::authorization(self)
    }
}

/// The body of an HTTP response: chunks of bytes, as they arrive.
pub struct HttpBody {
    chunks: Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>,
    /// The next chunk, if it was read ahead.
    ahead: Option<Result<Bytes>>,
}

impl HttpBody {
    /// Creates a body from a stream of chunks.
    pub fn new(chunks: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Self {
        Self {
            // A look ahead may have met the end.
            chunks: Box::pin(chunks.fuse()),
            ahead: None,
        }
    }

    /// The next chunk. `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        match self.ahead.take() {
            Some(chunk) => chunk.map(Some),
            None => self.chunks.next().await.transpose(),
        }
    }

    /// The next chunk, which stays in the body. `None` at the end, and before an error.
    pub(crate) async fn peek(&mut self) -> Option<&Bytes> {
        if self.ahead.is_none() {
            self.ahead = self.chunks.next().await;
        }
        self.ahead.as_ref()?.as_ref().ok()
    }

    /// The same body with a chunk in front of the rest, of which nothing was read ahead.
    pub(crate) fn after(mut self, first: Bytes) -> Self {
        self.ahead = Some(Ok(first));
        self
    }
}

impl From<Bytes> for HttpBody {
    fn from(whole: Bytes) -> Self {
        Self::new(stream::iter([Ok(whole)]))
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpBody")
    }
}

/// An [`HttpClient`] as a trait object.
pub(crate) trait DynHttpClient: Send + Sync {
    fn send_boxed(&self, request: Request<Bytes>) -> BoxSending<'_>;

    fn authorization(&self) -> Option<String>;
}

type BoxSending<'a> = Pin<Box<dyn Future<Output = Result<Response<HttpBody>>> + Send + 'a>>;

impl<C: HttpClient> DynHttpClient for C {
    fn send_boxed(&self, request: Request<Bytes>) -> BoxSending<'_> {
        Box::pin(self.send(request))
    }

    fn authorization(&self) -> Option<String> {
        HttpClient::authorization(self)
    }
}
