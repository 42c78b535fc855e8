//! The HTTP client: connections, their pool, TLS and proxies.

#[cfg(feature = "auth")]
pub(super) mod address_guard;
#[cfg(feature = "http-server")]
#[cfg(test)]
mod concurrency_tests;
mod connection;
mod connector;
pub(super) mod default_client;
mod destination;
mod early_answers;
pub(super) mod http_client;
mod pool;
#[cfg(test)]
mod proxy_tests;
mod response_body;
mod socks;
mod stream_limits;
mod tls_roots;
pub(super) mod with_token;
