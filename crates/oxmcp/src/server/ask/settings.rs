//! The settings of a server for asking.

#[cfg(feature = "http-server")]
use std::sync::OnceLock;
use std::{sync::Arc, time::Duration};

#[cfg(feature = "http-server")]
use crate::session::shared_keys::SharedKeys;
use crate::session::{outbound::options::CallOptions, sealing::KeyRing};

/// The time limit for users to answer: long enough to read, think and look something up, and short enough to keep a request
/// waiting.
const USER_TIMEOUT: Duration = Duration::from_secs(600);

/// The settings of a server for asking.
#[derive(Clone, Debug)]
pub(crate) struct AskSettings {
    pub(crate) keys: Arc<AskKeys>,
    /// The lifetime of the state between two rounds.
    pub(crate) lifetime: Duration,
    /// The time limit for an answer to a request of the server.
    pub(crate) timeout: Duration,
}

/// The keys that seal the journals of handlers.
#[derive(Debug, Default)]
pub(crate) struct AskKeys {
    ring: Arc<KeyRing>,
    /// The keys that the nodes of a cluster share, used if the server was given none.
    #[cfg(feature = "http-server")]
    shared: OnceLock<SharedKeys>,
}

impl AskKeys {
    pub(crate) fn new(ring: KeyRing) -> Self {
        Self {
            ring: Arc::new(ring),
            #[cfg(feature = "http-server")]
            shared: OnceLock::new(),
        }
    }

    /// Uses the shared keys from now on, unless keys were given, or other shared keys are set already.
    #[cfg(feature = "http-server")]
    pub(crate) fn share(&self, keys: &SharedKeys) {
        if !self.ring.is_given() {
            self.shared.get_or_init(|| keys.clone());
        }
    }

    /// The current keys.
    pub(crate) fn current(&self) -> Arc<KeyRing> {
        #[cfg(feature = "http-server")]
        if let Some(shared) = self.shared.get() {
            return shared.states();
        }
        Arc::clone(&self.ring)
    }
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
    pub(crate) fn call_options(&self) -> CallOptions {
        CallOptions {
            timeout: self.timeout,
            max_total: self.timeout,
            ..CallOptions::default()
        }
    }
}

#[cfg(all(test, feature = "http-server"))]
mod tests {
    use super::*;
    use crate::session::sealing::StateKey;

    #[test]
    fn node_keys_apply_only_without_own_keys() {
        let [own, shared] = [1, 2].map(|byte| StateKey::new([byte; StateKey::LENGTH]));
        let keys = SharedKeys::new([shared]);
        let given = AskKeys::new(KeyRing::new(vec![own.clone()]));
        given.share(&keys);
        assert_eq!(given.current().sealing().unwrap().id(), own.id());
        let none = AskKeys::default();
        none.share(&keys);
        assert!(Arc::ptr_eq(&none.current(), &keys.states()));
    }
}
