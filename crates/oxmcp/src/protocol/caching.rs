//! How long results stay fresh, and who may share them.
//!
//! See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// Who may share a cached result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// Everybody: nothing in the result depends on who asked.
    Public,
    /// Only who asked, by the same authorization. A scope that is not known reads as this one.
    #[default]
    #[serde(other)]
    Private,
}

/// What a server says of a result: how long it stays fresh, and who may share it. By default it is stale at once, and
/// nobody may share it. Clients of revisions before 2026-07-28 are told nothing.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::protocol::CacheHint;
///
/// let hint = CacheHint::public(Duration::from_secs(60));
/// assert_eq!(hint.ttl_ms(), 60_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CacheHint {
    /// How long the result stays fresh.
    pub ttl: Duration,
    /// Who may share it.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Nothing in the result depends on who asked.
    #[must_use]
    pub const fn public(ttl: Duration) -> Self {
        Self {
            ttl,
            scope: CacheScope::Public,
        }
    }

    /// The result is for who asked.
    #[must_use]
    pub const fn private(ttl: Duration) -> Self {
        Self {
            ttl,
            scope: CacheScope::Private,
        }
    }

    /// The time as it stands on the wire, in milliseconds.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        // Integers beyond this are not exact in every client's language.
        const MOST: u64 = 1 << 53;
        u64::try_from(self.ttl.as_millis()).map_or(MOST, |ttl| ttl.min(MOST))
    }
}

/// Reads `ttlMs`. The specification has clients take a negative one as 0; a fraction of a millisecond is dropped.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from f64 saturate, which is what is wanted"
)]
pub(super) fn ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.map(|ttl| ttl as u64))
}

#[cfg(test)]
mod tests {
    use crate::protocol::{CacheScope, ListToolsResult};

    #[test]
    fn odd_hints_read_as_the_careful_ones() {
        let text = r#"{"tools":[],"ttlMs":-5,"cacheScope":"galactic"}"#;
        let page: ListToolsResult = serde_json::from_str(text).unwrap();
        assert_eq!(page.ttl_ms, Some(0));
        assert_eq!(page.cache_scope, Some(CacheScope::Private));
    }
}
