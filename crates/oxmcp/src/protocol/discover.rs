//! Asking a server what it is (2026-07-28 and later).
//!
//! See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).

use serde::{Deserialize, Serialize};

use super::{CacheScope, Implementation, Meta, ServerCapabilities, caching, open_enum::setters};

/// The result of `server/discover`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that the server speaks. Some may be unknown to this crate.
    pub supported_versions: Vec<String>,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long this stays fresh, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "caching::ttl"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a cached copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What travels beside. The server's [`Implementation`] is at [`Meta::SERVER_INFO`].
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl DiscoverResult {
    /// What a server speaks and can do.
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

    /// Name and version of the server, where it says them.
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        Implementation::deserialize(self.meta.get(Meta::SERVER_INFO)?).ok()
    }
}

setters!(DiscoverResult {
    /// The same with instructions.
    with_instructions => instructions: String,
});
