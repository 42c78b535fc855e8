//! The HTTP client: connections, their pool, TLS and proxies.

#[cfg(all(test, feature = "http-server"))]
mod concurrency_tests;
pub(crate) mod connection;
pub(crate) mod connector;
pub(crate) mod default_client;
pub(crate) mod http2;
pub(crate) mod http_client;
pub(crate) mod pool;
#[cfg(test)]
mod proxy_tests;
pub(crate) mod response_body;
pub(crate) mod socks;
pub(crate) mod stream_limits;
pub(crate) mod tls_roots;
