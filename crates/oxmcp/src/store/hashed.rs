//! Hashes of secrets, under which stores keep what belongs to them.

use sha2::{Digest, Sha256};

/// A hash of the id of a session or the name of a principal, as 32 hexadecimal digits: the first half of SHA-256. A store
/// keeps things under it, so that whoever sees its keys, in a log or by a command, can use none of the sessions.
///
/// ```
/// use oxmcp::store::hashed;
///
/// assert_eq!(hashed("a").len(), 32);
/// assert_ne!(hashed("a"), hashed("b"));
/// ```
#[must_use]
pub fn hashed(secret: &str) -> String {
    let digest = Sha256::digest(secret);
    let digits = digest.iter().take(16).flat_map(|it| [it >> 4, it & 15]);
    let mut text = String::with_capacity(32);
    text.extend(digits.filter_map(|it| char::from_digit(it.into(), 16)));
    text
}
