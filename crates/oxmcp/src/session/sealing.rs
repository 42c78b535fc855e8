//! Sealing of data that travels with clients or is in stores: the keys, and an audited AEAD.
//!
//! Sealed data is base64url (for stores the bytes themselves) of the version (1 byte), the ID of the key (4), the nonce (24),
//! and the text encrypted with XChaCha20-Poly1305 (with a tag of 16 bytes at its end). The context to which it is bound is not
//! included, but authenticated along with it, so that the data opens in no other context.

use std::{fmt, sync::OnceLock};

use base64::{
    Engine,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The version of the format.
pub(crate) const FORMAT: u8 = 1;
pub(crate) const TAG: usize = 16;
/// The number of random bytes in sealed data.
pub(crate) const NONCE: usize = 24;
/// The length of the bytes before the ciphertext: the version, the ID of the key, the nonce.
pub(crate) const HEADER: usize = 1 + size_of::<KeyId>() + NONCE;

/// A key that encrypts data for its way through another party: the journal of a handler while the client answers a question
/// (`Server::state_keys`), and a login attempt while the user is in the browser (`Login::keys`).
///
/// By default, a process generates a key when it first needs one. That is enough if the same process decrypts the data. If
/// several processes serve the same clients, or if the data should survive a restart, give all processes the same keys.
///
/// ```
/// use oxmcp::keys::StateKey;
///
/// // From where secrets are kept, and never from a password. `openssl rand -base64 32` makes one.
/// let key = StateKey::from_base64("q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=")?;
/// assert_eq!(format!("{key:?}"), "StateKey(…)");
/// # Ok::<(), oxmcp::Error>(())
/// ```
#[derive(Clone)]
pub struct StateKey {
    secret: [u8; Self::LENGTH],
    id: KeyId,
}

/// The ID of a key, which reveals nothing about the key.
pub(crate) type KeyId = [u8; 4];

impl StateKey {
    /// The length of a key in bytes.
    pub const LENGTH: usize = 32;

    /// Creates a key from these bytes, all of which must be random.
    #[must_use]
    pub fn new(secret: [u8; Self::LENGTH]) -> Self {
        let mut id = KeyId::default();
        let digest = sha256(&[b"oxmcp state key", &secret]);
        id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Self { secret, id }
    }

    /// Creates a random key.
    ///
    /// # Errors
    /// If the operating system provides no random bytes.
    pub fn random() -> Result<Self> {
        random().map(Self::new)
    }

    /// Creates a key from 32 random bytes in base64, as in configuration and secret stores. To generate one, run `openssl rand
    /// -base64 32` or `head -c 32 /dev/urandom | base64`. The URL-safe alphabet and a missing `=` at the end are accepted, too.
    ///
    /// ```
    /// use oxmcp::{Server, keys::StateKey};
    ///
    /// # fn main() -> oxmcp::Result<()> {
    /// # let text = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
    /// // let text = std::env::var("STATE_KEY")?;
    /// let server = Server::new("shop", "1.0.0").state_keys([StateKey::from_base64(text)?]);
    /// # let _ = server;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the text is not the base64 of 32 bytes. The error does not repeat the text.
    pub fn from_base64(text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref().trim().trim_end_matches('=');
        let bytes = match text.contains(['-', '_']) {
            true => BASE64_URL_SAFE_NO_PAD.decode(text),
            false => BASE64_STANDARD_NO_PAD.decode(text),
        };
        let secret = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        secret.map(Self::new).ok_or_else(|| {
            Error::misuse(
                "invalid key; expected 32 random bytes in base64, such as the output of `openssl rand -base64 32`",
            )
        })
    }

    /// Derives a key for another purpose from this one. The ID is the same, which reveals nothing of either.
    #[cfg(feature = "server")]
    pub(crate) fn derived(&self, purpose: &[u8]) -> Self {
        Self {
            secret: sha256(&[b"oxmcp derived key", &[0], purpose, &[0], &self.secret]),
            id: self.id,
        }
    }

    pub(crate) fn id(&self) -> KeyId {
        self.id
    }

    pub(crate) fn secret(&self) -> &[u8; Self::LENGTH] {
        &self.secret
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(…)")
    }
}

/// The keys of a server: the first one seals, all of them open.
#[derive(Debug, Default)]
pub(crate) struct KeyRing {
    given: Vec<StateKey>,
    /// The key of this process, generated when it is first needed, if none was given.
    own: OnceLock<StateKey>,
}

impl KeyRing {
    pub(crate) fn new(given: Vec<StateKey>) -> Self {
        Self {
            given,
            own: OnceLock::new(),
        }
    }

    /// Whether keys were given.
    #[cfg(feature = "http-server")]
    pub(crate) fn is_given(&self) -> bool {
        !self.given.is_empty()
    }

    /// The key that seals.
    pub(crate) fn sealing(&self) -> Result<&StateKey> {
        if let Some(key) = self.given.first().or_else(|| self.own.get()) {
            return Ok(key);
        }
        let key = StateKey::random()?;
        Ok(self.own.get_or_init(|| key))
    }

    /// The key of that ID.
    pub(crate) fn find(&self, id: KeyId) -> Option<&StateKey> {
        let mut keys = self.given.iter().chain(self.own.get());
        keys.find(|key| key.id == id)
    }
}

/// Random bytes for secrets.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::internal(format!(
            "could not get random bytes from the operating system: {error}"
        ))
    })?;
    Ok(bytes)
}

/// The SHA-256 digest of the concatenated parts.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// The context to which sealed data is bound. The data does not open in any other context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    /// The purpose, which no two uses of a key share.
    pub(crate) purpose: &'a [u8],
    pub(crate) parts: &'a [&'a [u8]],
}

impl Bound<'_> {
    /// The data that is authenticated along with the text. Each part is preceded by its length, so that no two contexts have
    /// the same bytes.
    fn authenticated(&self, header: &[u8]) -> Vec<u8> {
        let parts = || {
            [self.purpose, header]
                .into_iter()
                .chain(self.parts.iter().copied())
        };
        let mut bytes = Vec::with_capacity(parts().map(|part| 8 + part.len()).sum());
        for part in parts() {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

/// The reason why sealed data does not open. It is only logged, and not sent to the peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    TooLong,
    /// The data does not have this format.
    Malformed,
    UnknownKey,
    /// The data was changed, or is bound to another context.
    Forged,
    Expired,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it exceeds the size limit",
            Self::Malformed => "unknown format",
            Self::UnknownKey => {
                "this process does not have its key; share keys between processes that share clients"
            }
            Self::Forged => {
                "it was modified, or belongs to another request, caller or server"
            }
            Self::Expired => "it has expired",
        })
    }
}

/// Seals a text. `None` if the cipher refuses, which happens only beyond any length in use.
pub(crate) fn seal(
    plain: &[u8],
    bound: Bound<'_>,
    key: &StateKey,
    nonce: [u8; NONCE],
) -> Option<String> {
    seal_bytes(plain, bound, key, nonce).map(|sealed| BASE64_URL_SAFE_NO_PAD.encode(sealed))
}

/// Like [`seal`], without the encoding as text.
fn seal_bytes(
    plain: &[u8],
    bound: Bound<'_>,
    key: &StateKey,
    nonce: [u8; NONCE],
) -> Option<Vec<u8>> {
    let mut sealed = Vec::with_capacity(HEADER + plain.len() + TAG);
    sealed.push(FORMAT);
    sealed.extend_from_slice(&key.id());
    sealed.extend_from_slice(&nonce);
    let payload = Payload {
        msg: plain,
        aad: &bound.authenticated(&sealed),
    };
    let encrypted = cipher(key).encrypt(&XNonce::from(nonce), payload).ok()?;
    sealed.extend_from_slice(&encrypted);
    Some(sealed)
}

/// Opens sealed data.
///
/// # Errors
/// If the data is malformed, was sealed with an unknown key, was changed, or is bound to another context.
pub(crate) fn open(sealed: &str, bound: Bound<'_>, keys: &KeyRing) -> Result<Vec<u8>, Refused> {
    let sealed = BASE64_URL_SAFE_NO_PAD
        .decode(sealed)
        .map_err(|_| Refused::Malformed)?;
    open_bytes(&sealed, bound, keys)
}

/// Like [`open`], for sealed data that is not encoded as text.
fn open_bytes(sealed: &[u8], bound: Bound<'_>, keys: &KeyRing) -> Result<Vec<u8>, Refused> {
    let (header, encrypted) = sealed
        .split_first_chunk::<HEADER>()
        .ok_or(Refused::Malformed)?;
    let [FORMAT, k0, k1, k2, k3, nonce @ ..] = header else {
        return Err(Refused::Malformed);
    };
    if encrypted.len() < TAG {
        return Err(Refused::Malformed);
    }
    let key = keys.find([*k0, *k1, *k2, *k3]).ok_or(Refused::UnknownKey)?;
    let payload = Payload {
        msg: encrypted,
        aad: &bound.authenticated(header),
    };
    let plain = cipher(key).decrypt(&XNonce::from(*nonce), payload);
    plain.map_err(|_| Refused::Forged)
}

/// Keys that encrypt data in an external store, for authors of such stores. The first key encrypts and all of them decrypt, so
/// that a key can be replaced while its data still exists. They are derived from keys that may have other uses.
///
/// ```
/// use oxmcp::keys::{StateKey, StoreKeys};
///
/// let keys = StoreKeys::new([StateKey::random()?]);
/// let sealed = keys.seal(&[b"task", b"17"], b"{}")?;
/// assert_eq!(keys.open(&[b"task", b"17"], &sealed)?, b"{}");
/// // A sealed text does not open in another place.
/// assert!(keys.open(&[b"task", b"18"], &sealed).is_err());
/// # Ok::<(), oxmcp::Error>(())
/// ```
#[cfg(feature = "server")]
#[derive(Clone)]
pub struct StoreKeys(std::sync::Arc<KeyRing>);

#[cfg(feature = "server")]
impl StoreKeys {
    /// Derives the keys for stores from these keys.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = StateKey>) -> Self {
        let derived = keys.into_iter().map(|key| key.derived(b"store"));
        Self(std::sync::Arc::new(KeyRing::new(derived.collect())))
    }

    /// Returns whether there are no keys. Then no data can be encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.given.is_empty()
    }

    /// Encrypts data for a place in the store. The parts of a place, such as its kind and its key, must differ from those of
    /// all others. The sealed data is 45 bytes longer.
    ///
    /// # Errors
    /// If there is no key, or the operating system provides no random bytes.
    pub fn seal(&self, place: &[&[u8]], plain: &[u8]) -> Result<Vec<u8>> {
        let key = self.0.given.first().ok_or_else(|| {
            Error::misuse(
                "no key to encrypt with: pass `StateKey::from_base64` the output of `openssl rand -base64 32`; use the same key in all processes that share the store",
            )
        })?;
        seal_bytes(plain, stored_at(place), key, random()?)
            .ok_or_else(|| Error::internal("too long to encrypt"))
    }

    /// Returns whether data may have been sealed with a key that is not among these, or in a newer format. Data that does not
    /// open and is not foreign was changed or moved: no process can open it.
    #[must_use]
    pub fn is_foreign(&self, sealed: &[u8]) -> bool {
        match sealed.split_first_chunk::<HEADER>() {
            Some(([FORMAT, k0, k1, k2, k3, ..], _)) => self.0.find([*k0, *k1, *k2, *k3]).is_none(),
            other => other.is_some(),
        }
    }

    /// Decrypts data that was sealed for this place.
    ///
    /// # Errors
    /// If the data was not sealed with one of these keys, was sealed for another place, or was changed.
    pub fn open(&self, place: &[&[u8]], sealed: &[u8]) -> Result<Vec<u8>> {
        open_bytes(sealed, stored_at(place), &self.0).map_err(|refused| {
            Error::internal(match refused {
                Refused::UnknownKey => {
                    "cannot decrypt stored data: this process does not have its key; share keys between processes, and keep old keys until their data expires"
                }
                _ => "cannot decrypt stored data: it was modified, moved, or never encrypted",
            })
        })
    }
}

#[cfg(feature = "server")]
fn stored_at<'a>(place: &'a [&'a [u8]]) -> Bound<'a> {
    Bound {
        purpose: b"oxmcp store",
        parts: place,
    }
}

#[cfg(feature = "server")]
impl fmt::Debug for StoreKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKeys(…)")
    }
}

fn cipher(key: &StateKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*key.secret()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_read_from_every_base64_form() {
        let secret = [0xfb; StateKey::LENGTH];
        let id = StateKey::new(secret).id();
        let standard = base64::prelude::BASE64_STANDARD.encode(secret);
        let of_urls = base64::prelude::BASE64_URL_SAFE.encode(secret);
        assert!(standard.contains('+') && of_urls.contains('-'));
        let bare = standard.trim_end_matches('=').to_owned();
        for text in [standard.clone(), of_urls, bare, format!("{standard}\n")] {
            assert_eq!(StateKey::from_base64(&text).unwrap().id(), id, "{text}");
        }
        for text in [
            "",
            "c2VjcmV0",
            "no base64 at all!",
            "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEg",
            &standard.repeat(2),
        ] {
            let error = StateKey::from_base64(text).unwrap_err().to_string();
            assert!(error.contains("openssl rand -base64 32"), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn stored_value_opens_only_with_place_and_key() {
        let [old, new] = [1, 2].map(|byte| StateKey::new([byte; StateKey::LENGTH]));
        let before = StoreKeys::new([old.clone()]);
        let place: [&[u8]; 2] = [b"task", b"a"];
        let sealed = before.seal(&place, b"secret").unwrap();
        assert_eq!(sealed.len(), b"secret".len() + HEADER + TAG);
        // The key is replaced, and the old one is kept for a while.
        let both = StoreKeys::new([new.clone(), old.clone()]);
        assert_eq!(both.open(&place, &sealed).unwrap(), b"secret");
        let resealed = both.seal(&place, b"secret").unwrap();
        let after = StoreKeys::new([new]);
        assert_eq!(after.open(&place, &resealed).unwrap(), b"secret");
        let unknown = after.open(&place, &sealed).unwrap_err().to_string();
        assert!(unknown.contains("share keys"), "{unknown}");
        // The boundaries of the parts matter.
        let moved: [&[u8]; 2] = [b"tas", b"ka"];
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        for (place, sealed) in [(moved, &sealed), (place, &changed)] {
            assert!(before.open(place.as_slice(), sealed).is_err());
        }
        // The key itself, which has other uses, does not open it.
        let bare = KeyRing::new(vec![old]);
        let opened = open_bytes(&sealed, stored_at(&place), &bare);
        assert_eq!(opened, Err(Refused::Forged));
        let none = StoreKeys::new([]).seal(&place, b"").unwrap_err();
        assert!(none.to_string().contains("openssl rand -base64 32"));
    }
}
