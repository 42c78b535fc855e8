//! Stores of credentials.

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc};

use futures_core::future::BoxFuture;
use oxmcp_auth::{Secret, client::CredentialKey};

use crate::{error::Result, sync::Mutex};

/// Where the credentials of logins are kept: by user, issuer and resource. What is kept is secret, and opaque to the store.
///
/// [`MemoryTokenStore`] forgets them with the process.
pub trait TokenStore: Send + Sync + 'static {
    /// What is kept under a key.
    ///
    /// # Errors
    /// Where the store cannot say: then nobody is logged in anew, since that could lose what is there.
    ///
    /// # Cancel safety
    /// Loading changes nothing.
    fn load(&self, key: &CredentialKey) -> impl Future<Output = Result<Option<Secret>>> + Send;

    /// Keeps a text under a key, whole or not at all.
    ///
    /// # Errors
    /// Where it is not kept.
    ///
    /// # Cancel safety
    /// A login is never given up while it saves.
    fn save(&self, key: &CredentialKey, text: Secret) -> impl Future<Output = Result<()>> + Send;

    /// Forgets what is kept under a key.
    ///
    /// # Errors
    /// Where it is still kept.
    ///
    /// # Cancel safety
    /// It is forgotten or kept.
    fn remove(&self, key: &CredentialKey) -> impl Future<Output = Result<()>> + Send;

    /// Waits until nobody else holds the lock of a key, in any process that shares the store, and holds it until what is returned
    /// is dropped. A refresh token is used once, so tokens are refreshed under the lock alone.
    ///
    /// # Errors
    /// Where the lock cannot be had: then the tokens are not refreshed.
    ///
    /// # Cancel safety
    /// Where the future is dropped, the lock is not held.
    fn lock(&self, key: &CredentialKey) -> impl Future<Output = Result<TokenStoreLock>> + Send;

    /// The keys of a user.
    ///
    /// # Errors
    /// Where the store cannot say.
    ///
    /// # Cancel safety
    /// Listing changes nothing.
    fn keys(&self, user: &str) -> impl Future<Output = Result<Vec<CredentialKey>>> + Send;
}

/// The lock of a key in a [`TokenStore`], for as long as it lives.
pub struct TokenStoreLock {
    _guard: Box<dyn Send>,
}

impl TokenStoreLock {
    /// A lock that is held by a guard.
    #[must_use]
    pub fn new(guard: impl Send + 'static) -> Self {
        Self {
            _guard: Box::new(guard),
        }
    }
}

impl fmt::Debug for TokenStoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenStoreLock")
    }
}

/// Credentials in memory. Clones share them.
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
    /// An empty store.
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

/// A [`TokenStore`] as a trait object.
pub(super) trait DynTokenStore: Send + Sync {
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<Option<Secret>>>;
    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, Result<()>>;
    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<()>>;
    fn lock_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<TokenStoreLock>>;
    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<CredentialKey>>>;
}

impl<S: TokenStore> DynTokenStore for S {
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<Option<Secret>>> {
        Box::pin(self.load(key))
    }

    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.save(key, text))
    }

    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.remove(key))
    }

    fn lock_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<TokenStoreLock>> {
        Box::pin(self.lock(key))
    }

    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<CredentialKey>>> {
        Box::pin(self.keys(user))
    }
}
