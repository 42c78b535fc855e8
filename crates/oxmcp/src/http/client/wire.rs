//! One HTTP request and its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, Method, Request, Response, Uri,
    header::{ACCEPT, CONTENT_TYPE},
};
use url::Url;

use super::{
    http_client::{AnyClient, HttpBody},
    redirect::{self, MAX_REDIRECTS},
};
use crate::{Error, Result};

/// What reaches a server.
pub(super) struct Wire {
    pub(super) client: Arc<dyn AnyClient>,
    pub(super) url: Url,
    /// What the user adds to each request.
    pub(super) headers: HeaderMap,
}

/// What all answers to messages may be.
pub(super) const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

impl Wire {
    /// Sends a message to a URL of the server.
    pub(super) async fn post(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<HttpBody>> {
        headers.insert(ACCEPT, http::HeaderValue::from_static(JSON_OR_EVENTS));
        headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(JSON));
        self.send(Method::POST, url, headers, body).await
    }

    /// Asks for a stream of events.
    pub(super) async fn get(&self, mut headers: HeaderMap) -> Result<Response<HttpBody>> {
        headers.insert(ACCEPT, http::HeaderValue::from_static(EVENTS));
        self.send(Method::GET, &self.url, headers, Bytes::new())
            .await
    }

    /// Ends a session.
    pub(super) async fn delete(&self, headers: HeaderMap) -> Result<Response<HttpBody>> {
        self.send(Method::DELETE, &self.url, headers, Bytes::new())
            .await
    }

    /// Sends a request, to where it is redirected to in the end.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<HttpBody>> {
        let mut all = self.headers.clone();
        // What the protocol says is not the user's to change.
        for (name, value) in &headers {
            all.insert(name, value.clone());
        }
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri(&url)?;
            *request.headers_mut() = all.clone();
            let response = self
                .client
                .send_boxed(request)
                .await
                .map_err(|error| at(&error, &method, &url))?;
            match redirect::target(&url, &method, &response)? {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
        Err(Error::network(format!(
            "the server redirects more than {MAX_REDIRECTS} times in a row"
        )))
    }
}

fn uri(url: &Url) -> Result<Uri> {
    let uri = url.as_str().parse();
    uri.map_err(|_| Error::misuse("the URL cannot be sent to"))
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
