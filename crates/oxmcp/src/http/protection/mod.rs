//! Protection of an endpoint by tokens: access tokens of authorization servers, or tokens of its own.
//!
//! | | |
//! |---|---|
//! | `protection` | the one or the other, and what they have in common |
//! | `token_authentication` | tokens of the endpoint's own, which a function of the user checks |
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
#[expect(
    clippy::module_inception,
    reason = "it is the protection itself, and all others are its parts"
)]
mod protection;
mod token_authentication;

pub(in crate::http) use deadline::StreamDeadline;
pub use metadata::ProtectedResourceMetadataService;
pub use protected_resource::ProtectedResource;
pub(in crate::http) use protection::Protection;
pub(in crate::http) use token_authentication::{TokenAuthentication, check_scopes};
