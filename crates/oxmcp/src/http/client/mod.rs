//! The client's side of HTTP.

mod endpoint;
mod exchange;
mod halves;
mod reconnect;
mod redaction;
mod sse_2024;
mod transport;

pub use endpoint::Endpoint;
pub use halves::{EndpointReader, EndpointWriter};
pub use reconnect::retry::Reconnect;
pub use transport::http_client::{HttpBody, HttpClient};
