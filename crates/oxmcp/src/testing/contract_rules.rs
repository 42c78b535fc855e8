//! The rules of contracts: how one is broken, and names that no store knows yet.

use std::fmt::Debug;

use crate::error::{Error, Result};

/// Fails where something is not as the rule says.
#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
pub(super) fn must<T: PartialEq + Debug>(rule: &str, found: T, expected: T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "the store breaks a rule: {rule}\nexpected: {expected:?}\nfound:    {found:?}"
    )))
}

/// A name that is new also in a database that is not empty.
pub(super) fn unique() -> String {
    let mut random = [0; 16];
    // Without randomness the rules still hold, for a store that is empty.
    let _ = getrandom::fill(&mut random);
    format!("contract-{:032x}", u128::from_be_bytes(random))
}
