//! The HTTP client: connections, their pool, TLS and proxies.
//!
//! | | |
//! |---|---|
//! | `http_client` | the trait of the clients that endpoints use, and the bodies of responses |
//! | `default_client` | the client on hyper: checks connections out, and retries unserved requests |
//! | `with_token` | a client that adds a token to each request |
//! | `pool` | idle connections |
//! | `connection`, `stream_limits` | a connection of HTTP/1.1 or HTTP/2; the number of requests that one of HTTP/2 accepts |
//! | `early_answers` | a socket from which an answer can be read while a request is still being written |
//! | `response_body` | the body of a response, which returns its connection to the pool |
//! | `connector`, `socks`, `tls_roots` | TCP, proxies, and trusted certificates |
//! | `address_guard` | the addresses that may be connected to, if a server has named the URL |
//! | `destination` | the server that a connection leads to |

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
