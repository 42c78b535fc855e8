//! Nonces that a server can check without storing them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use ring::{hmac, rand::SystemRandom};

use crate::{
    error::{AuthError, Result},
    jose::base64url,
    time::UnixTime,
};

/// Bytes of the time, and of the whole nonce: half of the authentication code is enough for nonces that are valid for
/// minutes.
const TIME: usize = 8;
const NONCE: usize = TIME + 16;

/// The keys with which nonces are made and checked. A nonce is the time at which it was made, and an HMAC of that time, so every
/// node that has the keys accepts the nonces of all nodes.
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
    /// The source of the keys that all nodes share, which replace a random key; `None` if a key was given.
    shared: Option<Arc<OnceLock<Source>>>,
    accept: Vec<hmac::Key>,
    lifetime: u64,
}

/// Returns the current keys, the first of which makes nonces.
type Source = Box<dyn Fn() -> Vec<[u8; 32]> + Send + Sync>;

impl NonceKeys {
    /// Creates keys that make nonces with this key, valid for 300 seconds.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self::made_with(hmac::Key::new(hmac::HMAC_SHA256, key), None)
    }

    /// Creates keys that make nonces with a random key of this process, or with the keys of [`share`](Self::share), valid for
    /// 300 seconds.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn random() -> Result<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| {
            AuthError::configuration("could not get random bytes from the operating system")
        })?;
        Ok(Self::made_with(key, Some(Arc::default())))
    }

    fn made_with(make: hmac::Key, shared: Option<Arc<OnceLock<Source>>>) -> Self {
        Self {
            make,
            shared,
            accept: Vec::new(),
            lifetime: 300,
        }
    }

    /// Replaces a [random](Self::random) key, also in all clones. `keys` is called whenever a nonce is made or checked, and
    /// returns the keys that all nodes share now; the first one makes nonces. Has no effect on a key from [`new`](Self::new), or
    /// if keys are shared already.
    pub fn share(&self, keys: impl Fn() -> Vec<[u8; 32]> + Send + Sync + 'static) {
        if let Some(shared) = &self.shared {
            shared.get_or_init(|| Box::new(keys));
        }
    }

    /// The keys that make nonces, the newest first.
    fn making(&self) -> Vec<hmac::Key> {
        let shared = self.shared.as_ref().and_then(|it| it.get());
        let shared = shared.map_or_else(Vec::new, |keys| keys());
        if shared.is_empty() {
            return vec![self.make.clone()];
        }
        let keys = shared.iter();
        keys.map(|key| hmac::Key::new(hmac::HMAC_SHA256, key))
            .collect()
    }

    /// Also accepts the nonces of this key: one that was replaced, or that other nodes use already.
    #[must_use]
    pub fn also_accept(mut self, key: &[u8; 32]) -> Self {
        self.accept.push(hmac::Key::new(hmac::HMAC_SHA256, key));
        self
    }

    /// Sets the number of seconds for which a nonce is valid.
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
        let making = self.making();
        let code = hmac::sign(making.first().unwrap_or(&self.make), &time);
        let nonce = time.iter().chain(code.as_ref()).take(NONCE);
        base64url::encode(nonce.copied().collect::<Vec<_>>())
    }

    /// Returns whether the nonce was made with one of these keys, and is still valid. A nonce from the future comes from a node
    /// whose clock is ahead, and is accepted within the same time.
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
        let making = self.making();
        let mut keys = making
            .iter()
            .chain(&self.accept)
            .map(|key| hmac::sign(key, time));
        is_in_time && keys.any(|own| is_equal(own.as_ref(), code))
    }
}

/// Compares in constant time. `half` is the shorter one.
fn is_equal(code: &[u8], half: &[u8]) -> bool {
    let pairs = code.iter().zip(half);
    pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl fmt::Debug for NonceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NonceKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_key_replaces_random_but_not_given_key() {
        let at = UnixTime::from_seconds(1_000);
        let [one, other] = [(); 2].map(|()| NonceKeys::random().unwrap());
        let clone = one.clone();
        assert!(!other.is_current(&clone.make(at), at));
        for keys in [&one, &other] {
            keys.share(|| vec![[2; 32], [1; 32]]);
        }
        assert!(other.is_current(&clone.make(at), at));
        let given = NonceKeys::new(&[3; 32]);
        let before = given.make(at);
        given.share(|| vec![[2; 32]]);
        assert_eq!(given.make(at), before);
        // Nonces of a key that was replaced are still accepted.
        assert!(one.is_current(&NonceKeys::new(&[1; 32]).make(at), at));
    }
}
