//! The bounds of a client's cache, and the ways in which a call uses it.

use std::time::Duration;

/// The bounds of the cache in which a [`Client`](crate::Client) keeps the answers of servers.
///
/// A server declares for how long its lists, its resources and its description stay fresh, and who may share them. Within
/// that time an equal request is answered from the cache, unless the server notifies the client of a change before. Answers
/// without such a declaration, as most are, are not cached.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::{CacheOptions, Client};
///
/// let client = Client::new("my-app", "1.0.0").cache(CacheOptions {
///     max_ttl: Duration::from_secs(60),
///     ..CacheOptions::default()
/// });
/// # let _ = client;
/// ```
///
/// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written down as what differs from the default, as `Limits` are"
)]
pub struct CacheOptions {
    /// The number of answers that are kept; beyond it, the least recently used is evicted. Default: 1024.
    pub max_entries: usize,
    /// The bytes of all answers and their keys together. Default: 16 MiB.
    pub max_bytes: usize,
    /// The longest time for which an answer counts as fresh, whatever the server declares. Default: 24 h.
    pub max_ttl: Duration,
    /// The time for which an answer stays fresh whose freshness the server does not declare, as servers of 2025-11-25 and
    /// earlier cannot. Their notifications of changed lists are heeded all the same. Default: zero, so that nothing of theirs
    /// is cached.
    pub default_ttl: Duration,
    /// The time after its freshness for which an answer is still used where the request fails: the session has ended, the
    /// server cannot be reached or times out, or it has failed
    /// ([`ErrorCode::INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR), or a status of HTTP from 500 on) or is busy.
    /// An answer that was invalidated by a notification is never used again. Default: 5 minutes; zero switches it off.
    pub stale_if_error: Duration,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            max_entries: 1024,
            max_bytes: 16 << 20,
            max_ttl: Duration::from_secs(24 * 3600),
            default_ttl: Duration::ZERO,
            stale_if_error: Duration::from_secs(5 * 60),
        }
    }
}

/// How a call uses the cache: see [`Call::cache`](crate::Call::cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// A fresh answer in the cache is used; otherwise the request is made, and its answer cached.
    #[default]
    Use,
    /// The request is made, and its answer cached.
    Refresh,
    /// The request is made, and the cache stays as it is.
    Bypass,
}
