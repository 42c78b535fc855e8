//! The bounds of a client's cache, and the ways in which a call uses it.

use std::time::Duration;

/// How much of the answers of servers a [`Client`](crate::Client) keeps, and for how long.
///
/// A server says of its lists, of the resources that it lets read and of what it is how long they stay fresh, and who may
/// share them. Within that time the same question is answered without asking it again, unless the server says before
/// that the answer has changed. What a server says nothing about, and most say nothing, is not kept.
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
    /// How many answers are kept; beyond it, the one that was used longest ago gives way. Default: 1024.
    pub max_entries: usize,
    /// How many bytes all answers may have together, with what is needed to find them. Default: 16 MiB.
    pub max_bytes: usize,
    /// The longest that an answer is taken for fresh, whatever the server says. Default: 24 h.
    pub max_ttl: Duration,
    /// How long an answer stays fresh of which the server does not say it, as servers of 2025-11-25 and earlier cannot.
    /// Such a server can still say that its lists have changed, and then they are asked for again. Default: zero, so that
    /// nothing of it is kept.
    pub default_ttl: Duration,
    /// How long after its time an answer is still good enough where asking again fails: the session is gone, the server
    /// cannot be reached or takes too long, or it says that it has failed
    /// ([`ErrorCode::INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR), or a status of HTTP from 500 on) or is busy.
    /// An answer that the server has said has changed is never used again. Default: 5 minutes; zero switches it off.
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

/// How a call uses what is kept: see [`Call::cache`](crate::Call::cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// An answer that is kept and fresh is taken; otherwise the server is asked, and what it answers is kept.
    #[default]
    Use,
    /// The server is asked, and what it answers is kept.
    Refresh,
    /// The server is asked, and what is kept stays as it is.
    Bypass,
}
