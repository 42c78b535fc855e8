//! The settings of a server for asking.

use std::{sync::Arc, time::Duration};

use crate::session::{outbound::options::CallOptions, sealing::KeyRing};

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
