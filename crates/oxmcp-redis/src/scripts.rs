//! Scripts, which change something as a whole and by the time of Redis; and numbers for them.

use std::time::Duration;

/// The longest time of anything, ten years: numbers of scripts are exact up to here.
pub(crate) const FOREVER_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).map_or(FOREVER_MS, |it| it.min(FOREVER_MS))
}

/// A script of these files in `scripts/`, by its name.
macro_rules! script {
    ($name:ident, $($file:literal),+) => {
        static $name: std::sync::LazyLock<redis::Script> = std::sync::LazyLock::new(|| {
            redis::Script::new(concat!(
                include_str!("scripts/prelude.lua"),
                $(include_str!(concat!("scripts/", $file))),+
            ))
        });
    };
}
pub(crate) use script;
