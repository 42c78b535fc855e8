//! Keys that seal the state between two rounds of questions, and the other settings for asking.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{
    Engine,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    session::outbound::options::CallOptions,
};

/// How long people may take to answer: long enough to read, think and look something up, and no longer than a request
/// that waits for them should be kept.
const USER_TIMEOUT: Duration = Duration::from_secs(600);

/// The settings of a server for asking.
#[derive(Clone, Debug)]
pub(crate) struct AskSettings {
    pub(super) keys: Arc<KeyRing>,
    /// How long the state between two rounds is valid.
    pub(super) lifetime: Duration,
    /// How long an answer to a request of the server's own may take.
    pub(super) timeout: Duration,
}

impl Default for AskSettings {
    fn default() -> Self {
        Self {
            keys: Arc::default(),
            lifetime: USER_TIMEOUT,
            timeout: USER_TIMEOUT,
        }
    }
}

impl AskSettings {
    pub(super) fn call_options(&self) -> CallOptions {
        CallOptions {
            timeout: self.timeout,
            max_total: self.timeout,
            ..CallOptions::default()
        }
    }
}

/// A key that seals what a handler remembers while the client is asked.
///
/// A server makes one of its own when it first needs it, which is right as long as one process gets both rounds. Where
/// several processes serve the same clients, or where questions are to outlive a restart, give all of them the same keys,
/// by [`Server::state_keys`](crate::Server::state_keys).
///
/// ```
/// use oxmcp::StateKey;
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

/// The id of a key, which says nothing of the key.
pub(super) type KeyId = [u8; 4];

impl StateKey {
    /// How many bytes a key has.
    pub const LENGTH: usize = 32;

    /// A key of these bytes, all of which must be random.
    #[must_use]
    pub fn new(secret: [u8; Self::LENGTH]) -> Self {
        let mut id = KeyId::default();
        let digest = sha256(&[b"oxmcp state key", &secret]);
        id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Self { secret, id }
    }

    /// A new random key.
    ///
    /// # Errors
    /// Where the operating system gives no randomness.
    pub fn random() -> Result<Self> {
        random().map(Self::new)
    }

    /// A key of 32 random bytes in base64, as configuration and stores of secrets keep it. Such a text is made by
    /// `openssl rand -base64 32`, or by `head -c 32 /dev/urandom | base64`. The alphabet of URLs is read, too, and so is a
    /// text without the `=` at its end.
    ///
    /// ```
    /// use oxmcp::{Server, StateKey};
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
    /// Where it is not the base64 of 32 bytes. The error does not repeat the text.
    pub fn from_base64(text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref().trim().trim_end_matches('=');
        let bytes = match text.contains(['-', '_']) {
            true => BASE64_URL_SAFE_NO_PAD.decode(text),
            false => BASE64_STANDARD_NO_PAD.decode(text),
        };
        let secret = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        secret.map(Self::new).ok_or_else(|| {
            Error::misuse(
                "a key is 32 random bytes in base64, as `openssl rand -base64 32` writes them, and this text is not",
            )
        })
    }

    pub(super) fn id(&self) -> KeyId {
        self.id
    }

    pub(super) fn secret(&self) -> &[u8; Self::LENGTH] {
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
    /// The key of this process, made when it is first needed, where none was given.
    own: OnceLock<StateKey>,
}

impl KeyRing {
    pub(super) fn new(given: Vec<StateKey>) -> Self {
        Self {
            given,
            own: OnceLock::new(),
        }
    }

    /// The key that seals.
    pub(super) fn sealing(&self) -> Result<&StateKey> {
        if let Some(key) = self.given.first().or_else(|| self.own.get()) {
            return Ok(key);
        }
        let key = StateKey::random()?;
        Ok(self.own.get_or_init(|| key))
    }

    /// The key of that id.
    pub(super) fn find(&self, id: KeyId) -> Option<&StateKey> {
        let mut keys = self.given.iter().chain(self.own.get());
        keys.find(|key| key.id == id)
    }
}

/// Random bytes for secrets.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::internal(format!("there is no randomness: {error}")))?;
    Ok(bytes)
}

/// The SHA-256 digest of parts that are read one after another.
pub(super) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_every_form_of_base64() {
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
}
