//! Metadata documents of protected resources and authorization servers, and their URLs.
//!
//! | | |
//! |---|---|
//! | `document` | bounded parsing of any document that a peer sends |
//! | `well_known` | the URLs at which metadata may be found |
//! | `protected_resource` | metadata of an MCP server (RFC 9728), read and written |
//! | `authorization_server` | metadata of an authorization server (RFC 8414, OpenID Connect Discovery) |

pub(crate) mod authorization_server;
pub(crate) mod document;
pub(crate) mod protected_resource;
pub(crate) mod well_known;
