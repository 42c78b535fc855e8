//! Hashes of secrets, which stores use as keys.

use sha2::{Digest, Sha256};

/// Hashes the ID of a session or the name of a principal, to 32 hexadecimal digits: the first half of SHA-256. Stores use it as
/// a key, so that a key that becomes visible in a log or a command gives no access to the session.
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
