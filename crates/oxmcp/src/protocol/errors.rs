//! The `data` of the errors that the protocol defines.
//!
//! See [error codes](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes).

use serde::{Deserialize, Serialize};

use super::{ClientCapabilities, ElicitUrlParams};
use crate::{Error, ErrorCode};

/// The data of [`UNSUPPORTED_PROTOCOL_VERSION`](crate::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION).
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

/// The data of [`MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY).
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

/// The data of [`URL_ELICITATION_REQUIRED`](crate::ErrorCode::URL_ELICITATION_REQUIRED).
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

impl Error {
    /// [`ErrorCode::URL_ELICITATION_REQUIRED`]: the user must visit these URLs before the request can be made
    /// (2025-11-25 only, and each must have an id). [`RequestContext::ask_url`](crate::RequestContext::ask_url) asks in a
    /// way that newer revisions have as well.
    /// See [URL elicitation required](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
    ///
    /// ```
    /// use oxmcp::{Error, protocol::ElicitUrlParams};
    ///
    /// let login = ElicitUrlParams::new("Log in first", "https://example.com/login").with_elicitation_id("7");
    /// assert_eq!(Error::url_elicitation_required([login]).code().value(), -32042);
    /// ```
    #[must_use]
    pub fn url_elicitation_required(
        elicitations: impl IntoIterator<Item = ElicitUrlParams>,
    ) -> Self {
        let elicitations: Vec<_> = elicitations.into_iter().collect();
        Self::protocol(
            ErrorCode::URL_ELICITATION_REQUIRED,
            "the user must visit a URL before this can go on",
        )
        .with_data(UrlElicitationRequiredData::new(elicitations))
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
