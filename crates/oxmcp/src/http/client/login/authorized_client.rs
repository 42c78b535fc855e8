//! An HTTP client whose requests are authorized, and sent again after a refusal.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    error::Result,
    http::client::{
        exchange::response::read_body,
        login::authorizer::{DynAuthorizer, RefusedRequest, RequestToAuthorize},
        transport::http_client::{DynHttpClient, HttpBody, HttpClient},
    },
};

/// The maximum number of refusals after which a request is sent again: for lack of a token, of a nonce, of a newer token, and of
/// scopes.
const MAX_REFUSALS: usize = 4;
/// The number of bytes that are read of a refusal, and the time limit for that: the connection is not held while a person logs in.
const MAX_BODY: usize = 64 << 10;
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// A client whose requests are authorized.
pub(crate) struct AuthorizedClient {
    client: Arc<dyn DynHttpClient>,
    authorizer: Arc<dyn DynAuthorizer>,
}

impl AuthorizedClient {
    pub(crate) fn new(client: Arc<dyn DynHttpClient>, authorizer: Arc<dyn DynAuthorizer>) -> Self {
        Self { client, authorizer }
    }
}

impl HttpClient for AuthorizedClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let (head, body) = request.into_parts();
        let (method, url) = (&head.method, &head.uri);
        let mut refused_before = 0;
        loop {
            let to_authorize = RequestToAuthorize { method, url };
            let headers = self.authorizer.authorize_boxed(to_authorize).await?;
            let mut request = Request::from_parts(head.clone(), body.clone());
            for (name, value) in &headers {
                request.headers_mut().insert(name, sensitive(value));
            }
            let response = self.client.send_boxed(request).await?;
            let status = response.status();
            let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if refused_before > 0 && status.is_success() {
                self.authorizer.notify_served(&operation(&body));
            }
            if !is_refused || refused_before >= MAX_REFUSALS {
                return Ok(response);
            }
            let response = read_whole(response).await;
            let refused = RefusedRequest {
                method,
                url,
                operation: &operation(&body),
                status,
                headers: response.headers(),
                authorized_by: &headers,
                refused_before,
            };
            if !self.authorizer.refused_boxed(refused).await? {
                return Ok(response);
            }
            refused_before += 1;
        }
    }
}

fn sensitive(value: &HeaderValue) -> HeaderValue {
    let mut value = value.clone();
    value.set_sensitive(true);
    value
}

/// Reads the whole body of a response, which releases its connection. A body that is too long or too slow is left out: the status
/// is sufficient.
async fn read_whole(response: Response<HttpBody>) -> Response<HttpBody> {
    let (head, mut body) = response.into_parts();
    let read = timeout(READ_TIMEOUT, read_body(&mut body, MAX_BODY)).await;
    let body = match read {
        Ok(Ok(Some(body))) => body,
        _ => Bytes::new(),
    };
    Response::from_parts(head, HttpBody::from(body))
}

/// The method of a message, and the name or URI in its params.
fn operation(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Message {
        method: String,
        #[serde(default)]
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(default, alias = "uri")]
        name: Option<String>,
    }
    let Ok(message) = serde_json::from_slice::<Message>(body) else {
        return String::new();
    };
    match message.params.and_then(|params| params.name) {
        Some(name) => format!("{} {name}", message.method),
        None => message.method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_is_the_method_and_its_target() {
        for (body, expected) in [
            (
                r#"{"method": "tools/call", "params": {"name": "add", "arguments": {}}}"#,
                "tools/call add",
            ),
            (
                r#"{"method": "resources/read", "params": {"uri": "file:///a"}}"#,
                "resources/read file:///a",
            ),
            (r#"{"method": "tools/list"}"#, "tools/list"),
            (r#"{"method": "tools/list", "params": {}}"#, "tools/list"),
            (r#"{"result": {}}"#, ""),
            ("", ""),
        ] {
            assert_eq!(operation(body.as_bytes()), expected);
        }
    }
}
