//! Scripts, which change something as a whole and by the time of Redis; and numbers for them.

use std::time::Duration;

use redis::{Cmd, ToRedisArgs};

/// The longest time of anything, ten years: numbers of scripts are exact up to here.
pub(crate) const FOREVER_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).map_or(FOREVER_MS, |it| it.min(FOREVER_MS))
}

/// A script, which Redis knows by its hash once it has run it.
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    pub(crate) fn new(code: &'static str) -> Self {
        let hash = redis::Script::new(code).get_hash().to_owned();
        Self { code, hash }
    }

    pub(crate) fn key(&self, key: impl ToRedisArgs) -> Invocation<'_> {
        let mut invocation = self.invocation();
        invocation.key(key);
        invocation
    }

    pub(crate) fn arg(&self, arg: impl ToRedisArgs) -> Invocation<'_> {
        let mut invocation = self.invocation();
        invocation.arg(arg);
        invocation
    }

    fn invocation(&self) -> Invocation<'_> {
        Invocation {
            script: self,
            keys: Vec::new(),
            args: Vec::new(),
        }
    }
}

/// A script with its keys and arguments.
pub(crate) struct Invocation<'a> {
    script: &'a Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl Invocation<'_> {
    pub(crate) fn key(&mut self, key: impl ToRedisArgs) -> &mut Self {
        self.keys.extend(key.to_redis_args());
        self
    }

    pub(crate) fn arg(&mut self, arg: impl ToRedisArgs) -> &mut Self {
        self.args.extend(arg.to_redis_args());
        self
    }

    /// The command that runs it by its hash.
    pub(crate) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// The command that also tells what it is. In a cluster it goes to the one node that needs to know.
    pub(crate) fn by_code(&self) -> Cmd {
        self.command("EVAL", self.script.code)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len());
        command.arg(&self.keys).arg(&self.args);
        command
    }
}

/// A script of these files in `scripts/`, by its name.
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
