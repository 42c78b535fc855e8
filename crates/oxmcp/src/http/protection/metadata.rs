//! The metadata of a protected endpoint, which tells clients where to get tokens.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use tower_service::Service;

use super::protected_resource::ProtectedResource;
use crate::{debug::opaque_debug, http::server::ResponseBody};

/// A [`tower_service::Service`] with the metadata of a [`ProtectedResource`], to mount at its
/// [`metadata_paths`](ProtectedResource::metadata_paths). Every web page may read the metadata, because a client needs it before it
/// has a token.
///
/// It responds at these paths, and with 404 at any other, so it can also be the fallback of a router. A router has only one
/// fallback: for several protected endpoints on one host, join their metadata with [`and`](Self::and).
#[derive(Clone)]
pub struct ProtectedResourceMetadataService {
    resources: Vec<ProtectedResource>,
}

opaque_debug!(ProtectedResourceMetadataService, |it| {
    resources: it.resources,
});

impl ProtectedResourceMetadataService {
    /// Adds the metadata of another resource on the same host. Each is then served only at its own path: at the path of the whole
    /// host, clients would find the metadata of one resource for another.
    ///
    /// ```
    /// use oxmcp::{Server, auth::server::TrustedIssuer, http::{ProtectedResource, StreamableHttp}};
    ///
    /// let protected = |path: &str| {
    ///     ProtectedResource::new(format!("https://mcp.example.com{path}"))
    ///         .issuer(TrustedIssuer::new("https://auth.example.com"))
    /// };
    /// let (files, mail) = (protected("/files"), protected("/mail"));
    /// let endpoint = |name: &str, resource: &ProtectedResource| {
    ///     StreamableHttp::from(Server::new(name, "1.0.0"))
    ///         .allowed_hosts(["mcp.example.com"])
    ///         .protect(resource.clone())
    /// };
    /// let app = axum::Router::new()
    ///     .route_service("/files", endpoint("files", &files))
    ///     .route_service("/mail", endpoint("mail", &mail))
    ///     .fallback_service(files.metadata().and(mail.metadata()));
    /// # let _: axum::Router = app;
    /// ```
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.resources.extend(other.resources);
        self
    }
}

impl ProtectedResource {
    /// Returns the metadata as a service to mount at its [paths](Self::metadata_paths). It tells clients where to get tokens. An
    /// endpoint that serves an address by itself serves the metadata already.
    #[must_use]
    pub fn metadata(&self) -> ProtectedResourceMetadataService {
        ProtectedResourceMetadataService {
            resources: vec![self.clone()],
        }
    }

    /// The response to a request for the metadata. `None` for other requests.
    pub(crate) fn metadata_response(&self, parts: &Parts) -> Option<Response<ResponseBody>> {
        self.response_at(parts, usize::MAX)
    }

    /// The response to a request for the metadata at one of its first `paths` paths.
    fn response_at(&self, parts: &Parts, paths: usize) -> Option<Response<ResponseBody>> {
        let path = parts.uri.path();
        let is_metadata = path.starts_with("/.well-known/")
            && self
                .metadata_paths()
                .iter()
                .take(paths)
                .any(|it| it == path);
        let guard = self.guard().ok().filter(|_| is_metadata)?;
        Some(respond(parts, guard.resource.metadata().to_json()))
    }
}

impl<B> Service<Request<B>> for ProtectedResourceMetadataService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, _) = request.into_parts();
        let paths = if self.resources.len() > 1 {
            1
        } else {
            usize::MAX
        };
        let mut answers = self
            .resources
            .iter()
            .map(|it| it.response_at(&parts, paths));
        let answer = answers.find_map(|it| it);
        ready(Ok(answer.unwrap_or_else(|| {
            with_status(StatusCode::NOT_FOUND, ResponseBody::empty())
        })))
    }
}

/// The response to a request for metadata.
fn respond(parts: &Parts, json: String) -> Response<ResponseBody> {
    let mut response = match parts.method {
        Method::GET => with_status(StatusCode::OK, ResponseBody::full(json)),
        Method::HEAD => with_status(StatusCode::OK, ResponseBody::empty()),
        Method::OPTIONS => with_status(StatusCode::NO_CONTENT, ResponseBody::empty()),
        _ => with_status(StatusCode::METHOD_NOT_ALLOWED, ResponseBody::empty()),
    };
    let headers = response.headers_mut();
    let value = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("application/json"));
    headers.insert(header::CACHE_CONTROL, value("public, max-age=300"));
    headers.insert(header::ALLOW, value("GET, HEAD, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, value("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, value("GET"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, value("*"));
    response
}

fn with_status(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
