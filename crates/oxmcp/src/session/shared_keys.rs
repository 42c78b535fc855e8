//! The keys that all nodes of a server share, and the keys derived from them for each use.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::sealing::{KeyRing, StateKey, StoreKeys};

/// The keys that all nodes of a server share, for authors of a [`Cluster`](crate::http::Cluster). The first key encrypts and
/// all of them decrypt. Each use has its own keys, derived from these: data in stores ([`store`](Self::store)), state that
/// travels with clients (`requestState`), and DPoP nonces.
///
/// Clones change together: [`replace`](Self::replace) takes effect everywhere at once, without a restart.
///
/// ```
/// use oxmcp::keys::{SharedKeys, StateKey};
///
/// let keys = SharedKeys::new([StateKey::random()?]);
/// let place: [&[u8]; 2] = [b"task", b"17"];
/// let sealed = keys.store().seal(&place, b"{}")?;
/// keys.clone().replace([StateKey::random()?]);
/// assert!(keys.store().open(&place, &sealed).is_err());
/// # Ok::<(), oxmcp::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedKeys(Arc<ArcSwap<Derived>>);

struct Derived {
    store: StoreKeys,
    states: Arc<KeyRing>,
    /// The keys of nonces, starting with the one for new nonces.
    #[cfg(feature = "auth")]
    nonces: Vec<[u8; StateKey::LENGTH]>,
}

impl Derived {
    fn of(keys: impl IntoIterator<Item = StateKey>) -> Self {
        let keys: Vec<_> = keys.into_iter().collect();
        let derived = |purpose: &'static [u8]| keys.iter().map(move |key| key.derived(purpose));
        Self {
            states: Arc::new(KeyRing::new(derived(b"request state").collect())),
            #[cfg(feature = "auth")]
            nonces: derived(b"DPoP nonce").map(|key| *key.secret()).collect(),
            store: StoreKeys::new(keys),
        }
    }
}

impl SharedKeys {
    /// Creates shared keys from these keys.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = StateKey>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Derived::of(keys))))
    }

    /// Replaces the keys, for all clones. To rotate a key, put the new one second on all nodes, then first, and remove the old
    /// one when none of its data is left.
    pub fn replace(&self, keys: impl IntoIterator<Item = StateKey>) {
        self.0.store(Arc::new(Derived::of(keys)));
    }

    /// Returns whether there are no keys. Then no data can be encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.load().store.is_empty()
    }

    /// Returns the current keys for data in stores.
    #[must_use]
    pub fn store(&self) -> StoreKeys {
        self.0.load().store.clone()
    }

    /// The current keys for state that travels with clients.
    pub(crate) fn states(&self) -> Arc<KeyRing> {
        Arc::clone(&self.0.load().states)
    }

    /// The current keys for nonces.
    #[cfg(feature = "auth")]
    pub(crate) fn nonces(&self) -> Vec<[u8; StateKey::LENGTH]> {
        self.0.load().nonces.clone()
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKeys(…)")
    }
}
