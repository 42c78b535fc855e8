//! Points in time, passed in by the caller: the crate has no clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since the beginning of 1970, UTC, without leap seconds: the `NumericDate` of
/// [RFC 7519](https://www.rfc-editor.org/rfc/rfc7519#section-2).
///
/// ```
/// use oxmcp_auth::UnixTime;
///
/// let now = UnixTime::from(std::time::SystemTime::now());
/// assert!(now.plus(60) > now);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Creates the point in time this many seconds after the beginning of 1970.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The point in time this many seconds after the beginning of 1970, without their fraction; `None` if it lies before 1970
    /// or too far in the future.
    pub(crate) fn from_fractional_seconds(seconds: f64) -> Option<Self> {
        let since = Duration::try_from_secs_f64(seconds).ok()?;
        Some(Self(since.as_secs()))
    }

    /// Returns the seconds since the beginning of 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// Returns the point in time this many seconds later, or the last one that can be represented.
    #[must_use]
    pub const fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Returns the seconds from `earlier` to this point in time; 0 if `earlier` is later.
    #[must_use]
    pub const fn seconds_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl From<SystemTime> for UnixTime {
    /// Points in time before 1970 become its beginning.
    fn from(time: SystemTime) -> Self {
        Self(
            time.duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        )
    }
}
