//! Protection of an endpoint by access tokens.
//!
//! | | |
//! |---|---|
//! | `protected_resource` | [`ProtectedResource`]: its settings |
//! | `guard` | the check of each request: extraction and verification of its token, and the demands of the endpoint |
//! | `deadline` | the end of streams that last longer than their request |
//! | `fetch` | the requests for keys, and for the introspection of tokens |
//! | `metadata` | [`ProtectedResourceMetadataService`]: the metadata that tell clients where to get tokens |
//!
//! The decisions are made in `oxmcp-auth`; this module does the I/O and the waiting.

mod deadline;
mod fetch;
mod guard;
mod metadata;
mod protected_resource;

pub(in crate::http) use deadline::StreamDeadline;
pub use metadata::ProtectedResourceMetadataService;
pub use protected_resource::ProtectedResource;
