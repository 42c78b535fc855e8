//! Caching: the time that results stay fresh, and their scope.
//!
//! See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).

use std::time::Duration;

use oxmcp_json::Text;
use serde::{Deserialize, Deserializer, Serialize};

/// The scope of a cached result: the callers that may share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// All callers: the result does not depend on the caller.
    Public,
    /// Only the caller that made the request, under the same authorization. An unknown scope is read as this one.
    #[default]
    #[serde(other)]
    Private,
}

impl CacheScope {
    /// Returns whether all callers may share the result.
    #[must_use]
    pub const fn is_public(self) -> bool {
        match self {
            Self::Public => true,
            Self::Private => false,
        }
    }
}

/// The cache hint that a server sends with a result: how long the result stays fresh, and which callers may share it. By default
/// the result is stale at once and private. Clients of revisions before 2026-07-28 receive no hint.
///
/// ```
/// use std::time::Duration;
/// use oxmcp_protocol::CacheHint;
///
/// let hint = CacheHint::public(Duration::from_secs(60));
/// assert_eq!(hint.ttl_ms(), 60_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CacheHint {
    /// How long the result stays fresh.
    pub ttl: Duration,
    /// The callers that may share the result.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Creates the hint for a result that does not depend on the caller.
    #[must_use]
    pub const fn public(ttl: Duration) -> Self {
        Self {
            ttl,
            scope: CacheScope::Public,
        }
    }

    /// Creates the hint for a result that only its caller may use.
    #[must_use]
    pub const fn private(ttl: Duration) -> Self {
        Self {
            ttl,
            scope: CacheScope::Private,
        }
    }

    /// Returns the time to live as the result carries it, in milliseconds.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        // Larger integers are not exact in the languages of some clients.
        const MOST: u64 = 1 << 53;
        u64::try_from(self.ttl.as_millis()).map_or(MOST, |ttl| ttl.min(MOST))
    }
}

/// The freshness that a result declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct Freshness {
    /// How long the result stays fresh. `None` if the result does not declare it.
    pub ttl: Option<Duration>,
    /// The callers that may share the result.
    pub scope: CacheScope,
}

/// Reads the freshness of a result without parsing its other members.
pub fn peek_freshness(result: Text<'_>) -> Freshness {
    let mut freshness = Freshness::default();
    for (key, value) in result.members() {
        if key.is_str("ttlMs") {
            let mut json = serde_json::Deserializer::from_str(value.get());
            let read = ttl(&mut json).ok().flatten();
            freshness.ttl = read.map(Duration::from_millis);
        } else if key.is_str("cacheScope") {
            freshness.scope = value.parse().unwrap_or_default();
        }
    }
    freshness
}

/// Reads `ttlMs`. A negative value is read as 0, as the specification asks of clients; a fraction of a millisecond is dropped.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from f64 saturate, which is what is wanted"
)]
pub(crate) fn ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.map(|ttl| ttl as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::tools::ListToolsResult;

    #[test]
    fn unknown_cache_hints_read_as_the_strictest() {
        let text = r#"{"tools":[],"ttlMs":-5,"cacheScope":"galactic"}"#;
        let page: ListToolsResult = serde_json::from_str(text).unwrap();
        assert_eq!(page.ttl_ms, Some(0));
        assert_eq!(page.cache_scope, Some(CacheScope::Private));
        let peeked = peek_freshness(Text::checked(text));
        assert_eq!(peeked.ttl, Some(Duration::ZERO));
        assert_eq!(peeked.scope, CacheScope::Private);
    }

    #[test]
    fn cache_hints_are_found_without_parsing_the_result() {
        let peek = |text| peek_freshness(Text::checked(text));
        assert_eq!(peek(r#"{"tools":[{"ttlMs":5}]}"#), Freshness::default());
        let hint = r#"{"cacheScope":"public","tools":[],"ttlMs":1500}"#;
        let found = Freshness {
            ttl: Some(Duration::from_millis(1500)),
            scope: CacheScope::Public,
        };
        assert_eq!(peek(hint), found);
        assert_eq!(
            peek(r#"{"ttlMs":"long","cacheScope":7}"#),
            Freshness::default()
        );
    }
}
