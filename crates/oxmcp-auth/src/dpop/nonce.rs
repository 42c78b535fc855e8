//! Nonces that a server can check without having kept them.

use std::fmt;

use ring::hmac;

use crate::{jose::base64url, time::UnixTime};

/// Bytes of the time, and of the whole nonce: half of the authentication code is enough for what lives minutes.
const TIME: usize = 8;
const NONCE: usize = TIME + 16;

/// Keys that nonces are made and checked with: a nonce is the time that it was made at, and an authentication code over it.
/// So every node that has the keys takes the nonces of all.
///
/// ```
/// use oxmcp_auth::{UnixTime, dpop::NonceKeys};
///
/// let keys = NonceKeys::new(&[7; 32]).also_accept(&[6; 32]);
/// let nonce = keys.make(UnixTime::from_seconds(1_000));
/// assert!(keys.is_current(&nonce, UnixTime::from_seconds(1_299)));
/// assert!(!keys.is_current(&nonce, UnixTime::from_seconds(1_301)));
/// ```
#[derive(Clone)]
pub struct NonceKeys {
    make: hmac::Key,
    accept: Vec<hmac::Key>,
    lifetime: u64,
}

impl NonceKeys {
    /// Nonces made with that key, valid for 300 seconds.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self {
            make: hmac::Key::new(hmac::HMAC_SHA256, key),
            accept: Vec::new(),
            lifetime: 300,
        }
    }

    /// Takes the nonces of that key, too: of one that was replaced, or that other nodes make theirs with already.
    #[must_use]
    pub fn also_accept(mut self, key: &[u8; 32]) -> Self {
        self.accept.push(hmac::Key::new(hmac::HMAC_SHA256, key));
        self
    }

    /// Seconds that a nonce is valid for.
    #[must_use]
    pub fn lifetime(self, seconds: u64) -> Self {
        Self {
            lifetime: seconds,
            ..self
        }
    }

    /// Makes a nonce, the value of the header `DPoP-Nonce`.
    #[must_use]
    pub fn make(&self, now: UnixTime) -> String {
        let time = now.seconds().to_be_bytes();
        let code = hmac::sign(&self.make, &time);
        let nonce = time.iter().chain(code.as_ref()).take(NONCE);
        base64url::encode(nonce.copied().collect::<Vec<_>>())
    }

    /// Whether it is one of ours, and still valid. One from the future is one of a node whose clock is ahead.
    #[must_use]
    pub fn is_current(&self, nonce: &str, now: UnixTime) -> bool {
        let Some(nonce) = base64url::decode(nonce).filter(|it| it.len() == NONCE) else {
            return false;
        };
        let Some((time, code)) = nonce.split_first_chunk::<TIME>() else {
            return false;
        };
        let made = UnixTime::from_seconds(u64::from_be_bytes(*time));
        let is_in_time =
            now.seconds_since(made) <= self.lifetime && made.seconds_since(now) <= self.lifetime;
        let keys = std::iter::once(&self.make).chain(&self.accept);
        let mut keys = keys.map(|key| hmac::sign(key, time));
        is_in_time && keys.any(|own| is_equal(own.as_ref(), code))
    }
}

/// Compares in the same time, wherever the first difference is. The second is the shorter.
fn is_equal(code: &[u8], half: &[u8]) -> bool {
    let pairs = code.iter().zip(half);
    pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl fmt::Debug for NonceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NonceKeys(…)")
    }
}
