//! The identity of a skill.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The identity of a skill: the host's label of the server, and the URI. Two servers may serve the same URI, and those are two
/// unrelated skills.
///
/// See [skill URIs](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#skill-uris).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SkillId {
    #[serde(with = "shared")]
    server: Arc<str>,
    #[serde(with = "shared")]
    uri: Arc<str>,
}

impl SkillId {
    /// Creates an identity from the host's label of a server and the URI of a `SKILL.md`.
    #[must_use]
    pub fn new(server: impl Into<Arc<str>>, uri: impl Into<Arc<str>>) -> Self {
        Self {
            server: server.into(),
            uri: uri.into(),
        }
    }

    /// Returns the host's label of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the URI of the `SKILL.md`.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.uri, self.server)
    }
}

/// Shared strings as strings.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Arc<str>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}
