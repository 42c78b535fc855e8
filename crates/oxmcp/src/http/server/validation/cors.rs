//! CORS: the headers that let web pages of listed origins read responses, and the answers to preflight requests.
//!
//! See [the protocol](https://fetch.spec.whatwg.org/#http-cors-protocol).

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};

use super::{access::Policy, run::check_access};
use crate::http::server::response::{self, ResponseBody};

/// The methods of an endpoint.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// The response headers that clients need beyond those that every page can read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce");
/// The seconds for which a browser may cache a preflight result. No browser uses more than two hours.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const VARY: HeaderValue = HeaderValue::from_static("Origin");
const VARY_OF_PREFLIGHT: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
);

/// The origin of the page that makes a request, if the origin is listed.
#[derive(Debug)]
pub(crate) struct Cors(HeaderValue);

impl Cors {
    /// Returns `None` if the request does not come from a web page, or if the page's origin is not listed.
    pub(crate) fn of(policy: &Policy, parts: &Parts) -> Option<Self> {
        let origin = parts.headers.get(header::ORIGIN)?;
        let is_listed = policy.lists_origin(origin.to_str().ok()?);
        let is_allowed = is_listed && check_access(policy, parts).is_ok();
        is_allowed.then(|| Self(origin.clone()))
    }

    /// The response to a preflight request. `None` if it is another request.
    ///
    /// Pages may send any header, because tools choose the names of the headers that mirror arguments.
    pub(crate) fn preflight(&self, parts: &Parts) -> Option<Response<ResponseBody>> {
        let asks = parts.method == Method::OPTIONS
            && parts
                .headers
                .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks {
            return None;
        }
        let mut response = response::empty(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        headers.insert(header::VARY, VARY_OF_PREFLIGHT);
        if let Some(asked) = parts.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        Some(response)
    }

    /// Lets the page read a response.
    pub(crate) fn mark(self, response: &mut Response<ResponseBody>) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.insert(header::VARY, VARY);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, Request};
    use http_body_util::Full;
    use tower::ServiceExt;

    use super::*;
    use crate::{
        http::{LegacySse, StreamableHttp},
        server::Server,
    };

    const APP: &str = "https://app.example.com";

    async fn headers(method: &str, origin: &str, is_asked: bool) -> Vec<(StatusCode, HeaderMap)> {
        let server = Server::new("s", "1");
        let request = || {
            let mut request = Request::builder()
                .method(method)
                .uri("/mcp")
                .header("host", "localhost")
                .header("origin", origin);
            if is_asked {
                request = request
                    .header("access-control-request-method", "POST")
                    .header(
                        "access-control-request-headers",
                        "content-type,mcp-param-region",
                    );
            }
            request.body(Full::<Bytes>::default()).unwrap()
        };
        let endpoint = StreamableHttp::from(server.clone()).allowed_origins([APP]);
        let sse = LegacySse::from(server).allowed_origins([APP]);
        let answers = [
            endpoint.oneshot(request()).await.unwrap(),
            sse.oneshot(request()).await.unwrap(),
        ];
        answers.map(|it| (it.status(), it.headers().clone())).into()
    }

    #[tokio::test]
    async fn preflight_from_a_listed_origin_is_answered() {
        for (status, headers) in headers("OPTIONS", APP, true).await {
            assert_eq!(status, StatusCode::NO_CONTENT);
            assert_eq!(headers["access-control-allow-origin"], APP);
            assert_eq!(headers["access-control-allow-methods"], "GET, POST, DELETE");
            assert_eq!(
                headers["access-control-allow-headers"],
                "content-type,mcp-param-region"
            );
            assert!(headers["vary"].to_str().unwrap().starts_with("Origin"));
        }
        // No browser sends `OPTIONS` without the header.
        for (status, headers) in headers("OPTIONS", APP, false).await {
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(headers["access-control-allow-origin"], APP);
        }
    }

    #[tokio::test]
    async fn listed_origin_may_read_refusals_too() {
        for (status, headers) in headers("PUT", APP, false).await {
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(headers["access-control-allow-origin"], APP);
            assert_eq!(
                headers["access-control-expose-headers"],
                "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce"
            );
            assert_eq!(headers["vary"], "Origin");
        }
    }

    #[tokio::test]
    async fn unlisted_origins_learn_nothing() {
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            for (status, headers) in headers("OPTIONS", origin, true).await {
                assert_eq!(status, StatusCode::FORBIDDEN);
                assert!(!headers.contains_key("access-control-allow-origin"));
            }
        }
    }
}
