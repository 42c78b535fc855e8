//! How long results stay fresh, and who may share them.
//!
//! See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).

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
