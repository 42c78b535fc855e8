//! `data` of the errors that the protocol defines.
//!
//! See [error codes](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes).

use serde::{Deserialize, Serialize};

use crate::types::{capabilities::ClientCapabilities, elicitation::params::ElicitUrlParams};

/// The data of [`UNSUPPORTED_PROTOCOL_VERSION`](crate::jsonrpc::error::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The revisions that the server supports. Some may be unknown to this crate.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub supported: Vec<String>,
    /// The revision that the client requested.
    pub requested: String,
}

impl UnsupportedProtocolVersionData {
    /// Creates data with the revisions that the server supports and the one that the client requested.
    #[must_use]
    pub fn new(
        supported: impl IntoIterator<Item = impl Into<String>>,
        requested: impl Into<String>,
    ) -> Self {
        Self {
            supported: supported.into_iter().map(Into::into).collect(),
            requested: requested.into(),
        }
    }
}

/// The data of [`MISSING_CLIENT_CAPABILITY`](crate::jsonrpc::error::ErrorCode::MISSING_CLIENT_CAPABILITY).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingClientCapabilityData {
    /// The capabilities that the client must declare for the request.
    pub required_capabilities: ClientCapabilities,
}

impl MissingClientCapabilityData {
    /// Creates data with the capabilities that the client must declare.
    #[must_use]
    pub fn new(required_capabilities: ClientCapabilities) -> Self {
        Self {
            required_capabilities,
        }
    }
}

/// The data of [`URL_ELICITATION_REQUIRED`](crate::jsonrpc::error::ErrorCode::URL_ELICITATION_REQUIRED).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UrlElicitationRequiredData {
    /// The URL elicitations that the user must complete first.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub elicitations: Vec<ElicitUrlParams>,
}

impl UrlElicitationRequiredData {
    /// Creates data with the URL elicitations that the user must complete first.
    #[must_use]
    pub fn new(elicitations: impl Into<Vec<ElicitUrlParams>>) -> Self {
        Self {
            elicitations: elicitations.into(),
        }
    }
}

/// The data of errors about an unknown resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The URI of the requested resource.
    pub uri: String,
}

impl ResourceNotFoundData {
    /// Creates data with the URI of the requested resource.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}
