//! Caching: the time that results stay fresh, and their scope.
//!
//! See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).

use std::time::Duration;

use oxmcp_json::Text;
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

impl CacheScope {
    /// Whether the result is for every caller.
    #[must_use]
    pub const fn is_public(self) -> bool {
        match self {
            Self::Public => true,
            Self::Private => false,
        }
    }
}

/// What a server says of a result: how long it stays fresh, and who may share it. By default it is stale at once, and
/// nobody may share it. Clients of revisions before 2026-07-28 are told nothing.
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
    /// Which callers may share it.
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

/// What a result says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct Freshness {
    /// `None` where it says nothing.
    pub ttl: Option<Duration>,
    /// Which callers may share it.
    pub scope: CacheScope,
}

/// Looks how long a result stays fresh, without parsing it.
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

/// Reads `ttlMs`. The specification has clients take a negative one as 0; a fraction of a millisecond is dropped.
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
    fn odd_hints_read_as_the_careful_ones() {
        let text = r#"{"tools":[],"ttlMs":-5,"cacheScope":"galactic"}"#;
        let page: ListToolsResult = serde_json::from_str(text).unwrap();
        assert_eq!(page.ttl_ms, Some(0));
        assert_eq!(page.cache_scope, Some(CacheScope::Private));
        let peeked = peek_freshness(Text::checked(text));
        assert_eq!(peeked.ttl, Some(Duration::ZERO));
        assert_eq!(peeked.scope, CacheScope::Private);
    }

    #[test]
    fn what_a_result_says_of_itself_is_found_without_parsing_it() {
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
