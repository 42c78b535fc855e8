//! Lifecycle: `initialize` (2025-11-25 and earlier) and `server/discover` (2026-07-28 and later).
//!
//! See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
//!
//! See [lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    meta::object::Meta,
    revision::version::Revision,
    types::{
        annotations::Icon,
        caching::{self, CacheScope},
        capabilities::{ClientCapabilities, ServerCapabilities},
    },
    values::open_enum::setters,
};

/// The implementation of a client or server: its name, its version, and details for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// A description of its purpose (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of its website (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Icons for user interfaces (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub icons: Vec<Icon>,
}

impl Implementation {
    /// Creates an implementation with a name and a version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            ..Self::default()
        }
    }
}

setters!(Implementation {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the URL of the website.
    with_website_url => website_url: String,
});

/// The params of `initialize`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The newest revision that the client supports. This crate may not know it.
    pub protocol_version: String,
    /// The capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// The name and version of the client.
    pub client_info: Implementation,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl InitializeParams {
    /// Creates the params that propose a revision.
    #[must_use]
    pub fn new(
        revision: Revision,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: revision.as_str().into(),
            capabilities,
            client_info,
            meta: Meta::default(),
        }
    }
}

/// The result of `initialize`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The revision of the session: the one that the client proposed, or the newest that the server supports.
    pub protocol_version: String,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// The name and version of the server.
    pub server_info: Implementation,
    /// Instructions for the use of the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl InitializeResult {
    /// Creates the result that agrees on a revision.
    #[must_use]
    pub fn new(
        revision: Revision,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: revision.as_str().into(),
            capabilities,
            server_info,
            ..Self::default()
        }
    }
}

setters!(InitializeResult {
    /// Sets the instructions.
    with_instructions => instructions: String,
});

/// The result of `server/discover`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that the server supports. Some may be unknown to this crate.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub supported_versions: Vec<String>,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Instructions for the use of the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result stays fresh, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "caching::ttl"
    )]
    pub ttl_ms: Option<u64>,
    /// The scope in which a cached copy may be shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata of the protocol and of extensions (`_meta`). The server's [`Implementation`] is at [`Meta::SERVER_INFO`].
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl DiscoverResult {
    /// Creates a result with the revisions that a server supports and its capabilities.
    #[must_use]
    pub fn new(
        supported_versions: impl IntoIterator<Item = impl Into<String>>,
        capabilities: ServerCapabilities,
    ) -> Self {
        Self {
            supported_versions: supported_versions.into_iter().map(Into::into).collect(),
            capabilities,
            ..Self::default()
        }
    }

    /// Returns the name and version of the server, if the result has them.
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        let info = self.meta.get(Meta::SERVER_INFO)?;
        serde_json::from_str(&info.to_string()).ok()
    }
}

impl Meta {
    /// Creates the `_meta` in which a modern request describes its client.
    #[doc(hidden)]
    #[must_use]
    pub fn of_client(
        revision: &str,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Self {
        // Converted through text: a direct conversion to values would compile additional serializers.
        let value = |text: serde_json::Result<String>| -> Value {
            let value = text.and_then(|text| serde_json::from_str(&text));
            value.expect("strings and settings are always JSON")
        };
        Self::from_iter([
            (Self::PROTOCOL_VERSION, Value::from(revision)),
            (Self::CLIENT_INFO, value(serde_json::to_string(info))),
            (
                Self::CLIENT_CAPABILITIES,
                value(serde_json::to_string(capabilities)),
            ),
        ])
    }
}

setters!(DiscoverResult {
    /// Sets the instructions.
    with_instructions => instructions: String,
});
