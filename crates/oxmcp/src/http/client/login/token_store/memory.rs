//! A store of credentials in memory.

use std::{collections::BTreeMap, sync::Arc};

use oxmcp_auth::{Secret, client::CredentialKey};

use super::store::{TokenStore, TokenStoreLock};
use crate::{error::Result, sync::Mutex};

/// A store of credentials in memory. Clones share the credentials.
///
/// ```
/// use oxmcp::http::{Endpoint, Login, MemoryTokenStore};
///
/// let store = MemoryTokenStore::new();
/// let endpoint = Endpoint::new("https://example.com/mcp").login(Login::non_interactive().store(store.clone()));
/// # let _ = endpoint;
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryTokenStore {
    kept: Arc<Mutex<BTreeMap<CredentialKey, Secret>>>,
    /// One lock is enough for all keys of a process.
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryTokenStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl TokenStore for MemoryTokenStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        Ok(self.kept.lock().get(key).cloned())
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        self.kept.lock().insert(key.clone(), text);
        Ok(())
    }

    async fn remove(&self, key: &CredentialKey) -> Result<()> {
        self.kept.lock().remove(key);
        Ok(())
    }

    async fn lock(&self, _: &CredentialKey) -> Result<TokenStoreLock> {
        Ok(TokenStoreLock::new(
            Arc::clone(&self.lock).lock_owned().await,
        ))
    }

    async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        let all = self.kept.lock();
        Ok(all.keys().filter(|it| it.user == user).cloned().collect())
    }
}
