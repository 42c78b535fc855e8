//! One HTTP request and its answer.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, Uri,
    header::{ACCEPT, CONTENT_TYPE},
};
use url::Url;

use crate::http::client::reconnect::redirect::{self, MAX_REDIRECTS};
use crate::http::client::transport::http_client::{AnyClient, HttpBody};
use crate::{Error, Result};

/// What reaches a server.
pub(crate) struct Wire {
    pub(crate) client: Arc<dyn AnyClient>,
    pub(crate) target: Target,
    /// What the user adds to each request.
    headers: HeaderMap,
    /// The headers of all messages.
    pub(crate) posted: HeaderMap,
}

/// A URL of the server, which is read once.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) uri: Uri,
}

impl Target {
    pub(crate) fn new(url: Url) -> Result<Self> {
        let uri = url.as_str().parse();
        let uri = uri.map_err(|_| Error::misuse("the URL cannot be sent to"))?;
        Ok(Self { url, uri })
    }
}

/// What all answers to messages may be.
pub(crate) const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";

impl Wire {
    pub(crate) fn new(client: Arc<dyn AnyClient>, target: Target, headers: HeaderMap) -> Self {
        let mut posted = headers.clone();
        // What the protocol says is not the user's to change.
        posted.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        posted.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        Self {
            client,
            target,
            headers,
            posted,
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

    /// Asks for a stream of events.
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

    /// Sends a request, to where it is redirected to in the end. Its headers are made for each request, which takes them
    /// along: redirects are rare.
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
            let response = self
                .client
                .send_boxed(request)
                .await
                .map_err(|error| at(&error, &method, &target.url))?;
            match redirect::target(&target.url, &method, &response)? {
                Some(url) => target = Cow::Owned(Target::new(url)?),
                None => return Ok(response),
            }
        }
        Err(Error::network(format!(
            "the server redirects more than {MAX_REDIRECTS} times in a row"
        )))
    }
}

/// An error of the client, with what it was about.
fn at(error: &Error, method: &Method, url: &Url) -> Error {
    let url = redirect::shown(url);
    let text = format!("{method} {url} failed: {}", error.message());
    if error.is_unreachable() {
        Error::unreachable(text)
    } else {
        Error::network(text)
    }
}
