//! An HTTP client that adds a token to each request, which may change each time.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::AUTHORIZATION};

use crate::{
    error::{Error, Result},
    http::client::transport::http_client::{DynHttpClient, HttpBody, HttpClient},
    session::task::BoxFuture,
};

/// The source of the token for each request.
pub(crate) type TokenSource = Arc<dyn Fn() -> BoxFuture<Result<String>> + Send + Sync>;

/// A client that adds a token to each of its requests.
pub(crate) struct WithToken {
    client: Arc<dyn DynHttpClient>,
    token: TokenSource,
}

impl WithToken {
    pub(crate) fn new(client: Arc<dyn DynHttpClient>, token: TokenSource) -> Self {
        Self { client, token }
    }
}

impl HttpClient for WithToken {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let token = (self.token)().await.map_err(|error| {
            let text = format!("could not get a token: {}", error.message());
            error.saying(text)
        })?;
        let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
        // The value is secret.
        let value = value.map_err(|_| Error::misuse("the token is not valid in a header"));
        let mut value = value?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        self.client.send_boxed(request).await
    }
}
