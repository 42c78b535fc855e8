//! Lua scripts, whose changes are atomic and use the clock of Redis, and conversion of durations for them.

use std::time::Duration;

use redis::{Arg, Cmd, ToRedisArgs};

/// The longest duration in milliseconds, ten years: numbers in scripts are exact up to here.
pub(crate) const FOREVER_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// A duration in milliseconds, at most [`FOREVER_MS`].
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).map_or(FOREVER_MS, |it| it.min(FOREVER_MS))
}

/// A script. Once Redis has run it, Redis knows it by its hash.
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    pub(crate) fn new(code: &'static str) -> Self {
        let hash = redis::Script::new(code).get_hash().to_owned();
        Self { code, hash }
    }

    /// An invocation of the script with these keys.
    pub(crate) fn keys(&self, keys: &[&str]) -> Invocation {
        let mut by_hash = redis::cmd("EVALSHA");
        by_hash.arg(&self.hash).arg(keys.len()).arg(keys);
        Invocation {
            code: self.code,
            by_hash,
        }
    }
}

/// An invocation of a script, with its keys and arguments.
pub(crate) struct Invocation {
    code: &'static str,
    /// The command that runs the script by its hash.
    by_hash: Cmd,
}

impl Invocation {
    pub(crate) fn arg(&mut self, arg: impl ToRedisArgs) -> &mut Self {
        self.by_hash.arg(arg);
        self
    }

    /// The command that runs the script by its hash.
    pub(crate) fn by_hash(&self) -> &Cmd {
        &self.by_hash
    }

    /// The command that runs the script by its code, so that Redis knows it afterwards. In a cluster it goes to the one node that
    /// does not know it.
    pub(crate) fn by_code(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.code);
        // The other arguments follow the name and the hash.
        for arg in self.by_hash.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                command.arg(arg);
            }
        }
        command
    }
}

/// Defines a script with this name from these files in `scripts/`.
macro_rules! script {
    ($name:ident, $($file:literal),+) => {
        static $name: std::sync::LazyLock<crate::scripts::Script> = std::sync::LazyLock::new(|| {
            crate::scripts::Script::new(concat!(
                include_str!("scripts/prelude.lua"),
                $(include_str!(concat!("scripts/", $file))),+
            ))
        });
    };
}
pub(crate) use script;
