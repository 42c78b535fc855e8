//! The HTTP requests to an endpoint, with their headers and redirects.

use std::{borrow::Cow, sync::Arc};

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
        redaction::redacted_url,
        transport::http_client::{DynHttpClient, HttpBody},
    },
};

/// The sender of requests to one endpoint.
pub(crate) struct RequestSender {
    client: Arc<dyn DynHttpClient>,
    pub(crate) url: Url,
    /// The headers that the user adds to each request.
    headers: HeaderMap,
    /// The headers of all messages, with those of the user.
    pub(crate) post_headers: HeaderMap,
}

/// The media types of responses to messages.
const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";

impl RequestSender {
    pub(crate) fn new(client: Arc<dyn DynHttpClient>, url: Url, headers: HeaderMap) -> Self {
        let mut post_headers = headers.clone();
        // The headers of the protocol win over those of the user.
        post_headers.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        post_headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        Self {
            client,
            url,
            headers,
            post_headers,
        }
    }

    /// Sends a message to a URL of the server, with all its headers.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<HttpBody>> {
        self.send(Method::POST, url, headers, body).await
    }

    /// Asks for a stream of events.
    pub(crate) async fn get(
        &self,
        add_headers: impl FnOnce(&mut HeaderMap),
    ) -> Result<Response<HttpBody>> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        add_headers(&mut headers);
        self.send(Method::GET, &self.url, headers, Bytes::new())
            .await
    }

    /// Ends a session.
    pub(crate) async fn delete(
        &self,
        add_headers: impl FnOnce(&mut HeaderMap),
    ) -> Result<Response<HttpBody>> {
        let mut headers = self.headers.clone();
        add_headers(&mut headers);
        self.send(Method::DELETE, &self.url, headers, Bytes::new())
            .await
    }

    /// Sends a request, and follows redirects.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<HttpBody>> {
        let mut url = Cow::Borrowed(url);
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri_of(&url)?;
            *request.headers_mut() = headers.clone();
            let response = self.client.send_boxed(request).await;
            let response = response.map_err(|error| with_request(&error, &method, &url))?;
            match redirect_target(&url, &method, &response)? {
                Some(target) => url = Cow::Owned(target),
                None => return Ok(response),
            }
        }
        Err(Error::network(format!(
            "the server redirects more than {MAX_REDIRECTS} times in a row"
        )))
    }
}

/// A URL in the form of the crate http.
///
/// # Errors
/// Where it is no URL for HTTP.
pub(crate) fn uri_of(url: &Url) -> Result<Uri> {
    let uri = url.as_str().parse();
    uri.map_err(|_| Error::misuse("the URL cannot be sent to"))
}

/// An error of the client, with the request that failed.
fn with_request(error: &Error, method: &Method, url: &Url) -> Error {
    let url = redacted_url(url);
    let text = format!("{method} {url} failed: {}", error.message());
    if error.is_unreachable() {
        Error::unreachable(text)
    } else {
        Error::network(text)
    }
}
