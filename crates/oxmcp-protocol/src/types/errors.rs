//! `data` of the errors that the protocol defines.
//!
//! See [error codes](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes).

use serde::{Deserialize, Serialize};

use crate::types::{capabilities::ClientCapabilities, elicitation::params::ElicitUrlParams};

/// The data of [`UNSUPPORTED_PROTOCOL_VERSION`](crate::jsonrpc::error::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The revisions that the server speaks. Some may be unknown to this crate.
    pub supported: Vec<String>,
    /// The revision that was asked for.
    pub requested: String,
}

impl UnsupportedProtocolVersionData {
    /// What is spoken, and what was asked for.
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
    /// What the client would have had to declare.
    pub required_capabilities: ClientCapabilities,
}

impl MissingClientCapabilityData {
    /// What the client would have had to declare.
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
    /// Where the user must go first.
    pub elicitations: Vec<ElicitUrlParams>,
}

impl UrlElicitationRequiredData {
    /// Where the user must go first.
    #[must_use]
    pub fn new(elicitations: impl Into<Vec<ElicitUrlParams>>) -> Self {
        Self {
            elicitations: elicitations.into(),
        }
    }
}

/// The data that errors about an unknown resource carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// What was to be read.
    pub uri: String,
}

impl ResourceNotFoundData {
    /// What was to be read.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}
