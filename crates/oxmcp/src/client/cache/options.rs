//! The limits of a client's cache, and the modes in which a call uses it.

use std::time::Duration;

/// The bounds of the cache in which a [`Client`](crate::Client) keeps the responses of servers.
///
/// A server declares for how long its lists, its resources and its description stay fresh, and which requesters may share
/// them. Within that time, the response to an equal request is taken from the cache, unless the server notifies the client
/// of a change before. Responses without such a declaration, which are most of them, are not cached.
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
    reason = "users write only the fields that differ from the default, as with `Limits`"
)]
pub struct CacheOptions {
    /// The maximum number of cached responses; beyond it, the least recently used one is evicted. Default: 1024.
    pub max_entries: usize,
    /// The maximum size of all cached responses and their keys together, in bytes. Default: 16 MiB.
    pub max_bytes: usize,
    /// The longest time for which a response counts as fresh, whatever the server declares. Default: 24 h.
    pub max_ttl: Duration,
    /// The time for which a response stays fresh if the server does not declare its freshness, as servers of 2025-11-25 and
    /// earlier cannot. Notifications of changed lists from such servers still invalidate responses. Default: zero, which caches
    /// none of their responses.
    pub default_ttl: Duration,
    /// The time after the end of its freshness for which a response is still used if the request fails: the session has ended,
    /// the server cannot be reached or times out, or it has failed
    /// ([`ErrorCode::INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR), or an HTTP status of 500 or above) or is busy. A
    /// response that was invalidated by a notification is never used again. Default: 5 minutes; zero switches it off.
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

/// The use of the cache by a call: see [`Call::cache`](crate::Call::cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// A fresh response in the cache is used; otherwise the request is made, and its response is cached.
    #[default]
    Use,
    /// The request is made, and its response is cached.
    Refresh,
    /// The request is made, and the cache stays as it is.
    Bypass,
}
