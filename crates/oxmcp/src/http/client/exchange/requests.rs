//! The HTTP requests to an endpoint, with their headers and redirects.

use std::{borrow::Cow, error::Error as _, io, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, Uri,
    header::{ACCEPT, CONTENT_TYPE},
};
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::{
        reconnect::redirect::{MAX_REDIRECTS, redirect_target},
        redaction::{Answering, redacted_url},
        transport::http_client::{DynHttpClient, HttpBody},
    },
};

/// The sender of requests to one endpoint.
pub(crate) struct RequestSender {
    client: Arc<dyn DynHttpClient>,
    pub(crate) target: Target,
    /// The headers that the user adds to each request.
    headers: HeaderMap,
    /// The headers of all messages, with those of the user.
    pub(crate) post_headers: HeaderMap,
}

/// A URL of the server, which is parsed once.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) uri: Uri,
}

impl Target {
    /// # Errors
    /// If the URL is not one for HTTP.
    pub(crate) fn new(url: Url) -> Result<Self> {
        let uri = url.as_str().parse();
        let uri = uri.map_err(|_| Error::misuse("the URL is not valid for HTTP"))?;
        Ok(Self { url, uri })
    }
}

/// The usual number of headers that a message adds to those of all messages.
const MESSAGE_HEADERS: usize = 4;
/// The media types of responses to messages.
const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";

impl RequestSender {
    pub(crate) fn new(client: Arc<dyn DynHttpClient>, target: Target, headers: HeaderMap) -> Self {
        let mut post_headers = headers.clone();
        // The headers of the protocol win over those of the user.
        post_headers.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        post_headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        // Clones of the map have the same capacity.
        post_headers.reserve(MESSAGE_HEADERS);
        Self {
            client,
            target,
            headers,
            post_headers,
        }
    }

    /// Sends a message to a URL of the server, with all its headers.
    pub(crate) async fn post(
        &self,
        target: &Target,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<Response<HttpBody>> {
        self.send(Method::POST, target, headers, body).await
    }

    /// Requests a stream of events.
    pub(crate) async fn get(
        &self,
        add_headers: impl Fn(&mut HeaderMap),
    ) -> Result<Response<HttpBody>> {
        let headers = || {
            let mut headers = self.headers.clone();
            headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
            add_headers(&mut headers);
            headers
        };
        self.send(Method::GET, &self.target, headers, Bytes::new())
            .await
    }

    /// Ends a session.
    pub(crate) async fn delete(
        &self,
        add_headers: impl Fn(&mut HeaderMap),
    ) -> Result<Response<HttpBody>> {
        let headers = || {
            let mut headers = self.headers.clone();
            add_headers(&mut headers);
            headers
        };
        self.send(Method::DELETE, &self.target, headers, Bytes::new())
            .await
    }

    /// Sends a request, and follows redirects. The headers are rebuilt for each request, because redirects are rare.
    async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<Response<HttpBody>> {
        let mut target = Cow::Borrowed(target);
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.uri_mut() = target.uri.clone();
            *request.headers_mut() = headers();
            let response = self.client.send_boxed(request).await;
            let mut response =
                response.map_err(|error| with_request(error, &method, &target.url))?;
            if !response.status().is_success() {
                let url = redacted_url(&target.url);
                response.extensions_mut().insert(Answering(url));
            }
            match redirect_target(&target.url, &method, &response)? {
                Some(url) => target = Cow::Owned(Target::new(url)?),
                None => return Ok(response),
            }
        }
        Err(Error::network(format!(
            "the server redirects more than {MAX_REDIRECTS} times in a row"
        )))
    }
}

/// An error of the client, with the request that failed.
fn with_request(error: Error, method: &Method, url: &Url) -> Error {
    let url = redacted_url(url);
    let text = format!("{method} {url} failed: {}", error.message());
    if error.is_unreachable() {
        Error::unreachable(text)
    } else if error.is_network() || error.source().is_some_and(|it| it.is::<io::Error>()) {
        Error::network(text)
    } else {
        // The error does not come from the network, but from a client of the user or from the source of tokens.
        error.saying(text)
    }
}
