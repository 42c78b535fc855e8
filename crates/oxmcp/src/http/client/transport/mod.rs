//! The HTTP client: connections, their pool, TLS and proxies.

#[cfg(feature = "auth")]
pub(crate) mod address_guard;
#[cfg(feature = "http-server")]
#[cfg(test)]
mod concurrency_tests;
mod connection;
mod connector;
pub(crate) mod default_client;
mod destination;
mod early_answers;
pub(crate) mod http_client;
mod pool;
#[cfg(test)]
mod proxy_tests;
mod response_body;
mod socks;
mod stream_limits;
mod tls_roots;
pub(crate) mod with_token;
