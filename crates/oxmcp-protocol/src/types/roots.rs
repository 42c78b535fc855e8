//! Roots: the directories and files that a client exposes to a server.
//!
//! See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots).

use serde::{Deserialize, Serialize};

use crate::{meta::object::Meta, values::open_enum::setters};

/// A directory or file that a server may operate on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// The URI of the root: a `file:` URI.
    pub uri: String,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Root {
    /// Creates a root without a name.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

setters!(Root {
    /// Sets the name.
    with_name => name: String,
});

/// The result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// All roots.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub roots: Vec<Root>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ListRootsResult {
    /// Creates a result with these roots.
    #[must_use]
    pub fn new(roots: impl Into<Vec<Root>>) -> Self {
        Self {
            roots: roots.into(),
            ..Self::default()
        }
    }
}
