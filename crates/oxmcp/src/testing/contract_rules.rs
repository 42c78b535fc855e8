//! Utilities for contracts: checking a rule, and unique names.

use std::fmt::Debug;
#[cfg(feature = "http-server")]
use std::time::Duration;

use crate::error::{Error, Result};

/// The time that a rule waits for something that must happen.
#[cfg(feature = "http-server")]
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Names that a store must distinguish, regardless of the format of its keys.
#[cfg(feature = "http-server")]
pub(crate) const HOSTILE: [&str; 12] = [
    "",
    "{}",
    "}{",
    "{a}",
    "a",
    "A",
    "*",
    "a\0b",
    "a\nb",
    "\r\n",
    "../a",
    "\u{1f980}:a",
];

/// Fails if `found` differs from `expected`.
#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
pub(crate) fn must<T: PartialEq + Debug>(rule: &str, found: T, expected: T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "the store breaks a rule: {rule}\nexpected: {expected:?}\nfound:    {found:?}"
    )))
}

/// A unique name, even in a database that is not empty.
pub(crate) fn unique() -> String {
    let mut random = [0; 16];
    // Without random bytes the contract still works with an empty store.
    let _ = getrandom::fill(&mut random);
    format!("contract-{:032x}", u128::from_be_bytes(random))
}
