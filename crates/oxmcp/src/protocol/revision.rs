//! The revisions of the protocol, and what differs between them.
//!
//! This is the only place that knows. Everybody else asks a [`Revision`] a question by name.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A revision of the Model Context Protocol.
///
/// Revisions are ordered by age. The first four are *legacy*: a session is opened by `initialize`. From 2026-07-28 on
/// they are *modern*: every request says all that there is to know.
/// See [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning).
///
/// ```
/// use oxmcp::Revision;
///
/// assert_eq!(Revision::V2025_06_18.to_string(), "2025-06-18");
/// assert_eq!("2026-07-28".parse(), Ok(Revision::LATEST));
/// assert!(Revision::V2025_11_25 < Revision::LATEST && !Revision::V2025_11_25.is_modern());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Revision {
    /// [2024-11-05](https://modelcontextprotocol.io/specification/2024-11-05): the first.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// [2025-03-26](https://modelcontextprotocol.io/specification/2025-03-26): streamable HTTP, batches, audio.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// [2025-06-18](https://modelcontextprotocol.io/specification/2025-06-18): structured output, elicitation.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25): icons, URL elicitation, sampling with tools.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// [2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28): stateless.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision that is opened by `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether requests are stateless and carry all in `_meta`, without `initialize`.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }
}

/// What differs between the revisions.
impl Revision {
    /// Whether several messages may be sent as one array.
    pub(crate) const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.as_str().into()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no revision of that name, or this version of the crate does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no revision of MCP that this crate knows has this name")]
#[non_exhaustive]
pub struct UnknownRevision;

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(name: &str) -> Result<Self, UnknownRevision> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == name)
            .ok_or(UnknownRevision)
    }
}
