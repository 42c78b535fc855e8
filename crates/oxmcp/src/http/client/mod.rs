//! The client's side of HTTP: an endpoint, which is a transport over every HTTP transport of the protocol.

mod endpoint;
mod exchange;
mod halves;
#[cfg(feature = "auth")]
mod login;
mod reconnect;
mod redaction;
mod sse_2024;
mod transport;

pub use endpoint::Endpoint;
pub use halves::{EndpointReader, EndpointWriter};
#[cfg(feature = "keyring")]
pub use login::KeyringTokenStore;
#[cfg(feature = "auth")]
pub use login::{
    AssertionRequest, Authorizer, FileTokenStore, Login, LoginAttempt, MemoryTokenStore,
    RefusedRequest, RequestToAuthorize, StoredLogin, TokenStore, TokenStoreLock,
};
pub use reconnect::retry::Reconnect;
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(crate) use transport::{address_guard::AddressGuard, http_client::DynHttpClient};
pub use transport::{
    default_client::DefaultClient,
    http_client::{HttpBody, HttpClient},
};
