//! The client's side of HTTP.

mod answer;
mod answer_body;
mod begin;
mod connection;
mod connector;
#[cfg(feature = "http-server")]
#[cfg(test)]
mod crowd_tests;
mod default_client;
mod endpoint;
mod engine;
#[cfg(test)]
mod engine_tests;
mod fingerprint;
mod gate;
mod halves;
mod http2;
mod http_client;
mod known;
mod link;
mod mirror;
mod outgoing;
mod pool;
mod post;
#[cfg(test)]
mod proxy_tests;
mod reconnect;
mod redirect;
mod renew;
mod resume;
mod session;
mod socks;
mod sse_2024;
mod stream;
mod taker;
mod traffic;
mod trust;
mod wire;

pub use endpoint::Endpoint;
pub use halves::{EndpointReader, EndpointWriter};
pub use http_client::{HttpBody, HttpClient};
pub use reconnect::Reconnect;
