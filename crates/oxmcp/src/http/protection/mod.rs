//! Protection of an endpoint by access tokens.
//!
//! | | |
//! |---|---|
//! | `protected_resource` | [`ProtectedResource`]: its settings |
//! | `guard` | what a request must pass: its token, found, verified, and held against what the endpoint demands |
//! | `deadline` | the end of streams that last longer than their request |
//! | `fetch` | the requests for keys, and for what an issuer says of a token |
//! | `metadata` | [`ProtectedResourceMetadataService`]: where clients learn where to get tokens |
//!
//! What is decided here, `oxmcp-auth` decides; this room does the waiting.

mod deadline;
mod fetch;
mod guard;
mod metadata;
mod protected_resource;

pub(in crate::http) use deadline::StreamDeadline;
pub use metadata::ProtectedResourceMetadataService;
pub use protected_resource::ProtectedResource;
