//! How a server asks.

use std::{sync::Arc, time::Duration};

use super::key::{KeyRing, StateKey};
use crate::{server::Server, session::CallOptions};

/// How long people may take to answer: long enough to read, think and look something up, and no longer than a request
/// that waits for them should be kept.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a server was told about asking.
#[derive(Clone, Debug)]
pub(crate) struct AskSettings {
    pub(super) keys: Arc<KeyRing>,
    /// How long the state between two rounds is good for.
    pub(super) lifetime: Duration,
    /// How long an answer to a request of the server's own may take.
    pub(super) timeout: Duration,
}

impl Default for AskSettings {
    fn default() -> Self {
        Self {
            keys: Arc::default(),
            lifetime: PATIENCE,
            timeout: PATIENCE,
        }
    }
}

impl AskSettings {
    pub(super) fn options(&self) -> CallOptions {
        CallOptions {
            timeout: self.timeout,
            max_total: self.timeout,
            ..CallOptions::default()
        }
    }
}

impl Server {
    /// The keys that seal what handlers remember while the client is asked: the first one seals, and all of them open. To
    /// change keys, put the new one first, and take the old one out when [`state_lifetime`](Self::state_lifetime) has
    /// passed.
    ///
    /// By default a server makes a key of its own, which nobody else knows. Processes that serve the same clients, such as
    /// several nodes behind a load balancer, need the same keys, and the same name of the server.
    /// See [server requirements](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow).
    ///
    /// ```
    /// use oxmcp::{Server, StateKey};
    ///
    /// # fn secret(_name: &str) -> [u8; 32] { [1; 32] }
    /// let server = Server::new("files", "1.0.0")
    ///     .state_keys([StateKey::new(secret("this month")), StateKey::new(secret("last month"))]);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn state_keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        let keys = Arc::new(KeyRing::new(keys.into_iter().collect()));
        self.change(|features| features.ask.keys = keys);
        self
    }

    /// How long people may take between a question and the request that brings the answer (2026-07-28 and later). An
    /// answer that comes later is refused, and the client begins anew. Default: 10 minutes.
    #[must_use]
    pub fn state_lifetime(self, lifetime: Duration) -> Self {
        self.change(|features| features.ask.lifetime = lifetime);
        self
    }

    /// How long people may take to answer a question that is a request of the server's own (until 2025-11-25). Default:
    /// 10 minutes.
    #[must_use]
    pub fn ask_timeout(self, timeout: Duration) -> Self {
        self.change(|features| features.ask.timeout = timeout);
        self
    }
}
