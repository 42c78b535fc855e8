//! Stores of credentials.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc};

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

    /// The keys of a user.
    ///
    /// # Errors
    /// Where the store cannot say.
    ///
    /// # Cancel safety
    /// Listing changes nothing.
    fn keys(&self, user: &str) -> impl Future<Output = Result<Vec<CredentialKey>>> + Send;
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
pub struct MemoryTokenStore(Arc<Mutex<BTreeMap<CredentialKey, Secret>>>);

impl MemoryTokenStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl TokenStore for MemoryTokenStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        Ok(self.0.lock().get(key).cloned())
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        self.0.lock().insert(key.clone(), text);
        Ok(())
    }

    async fn remove(&self, key: &CredentialKey) -> Result<()> {
        self.0.lock().remove(key);
        Ok(())
    }

    async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        let all = self.0.lock();
        Ok(all.keys().filter(|it| it.user == user).cloned().collect())
    }
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A [`TokenStore`] as a trait object.
pub(super) trait DynTokenStore: Send + Sync {
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Option<Secret>>;
    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, ()>;
    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, ()>;
    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Vec<CredentialKey>>;
}

impl<S: TokenStore> DynTokenStore for S {
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Option<Secret>> {
        Box::pin(self.load(key))
    }

    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, ()> {
        Box::pin(self.save(key, text))
    }

    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, ()> {
        Box::pin(self.remove(key))
    }

    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Vec<CredentialKey>> {
        Box::pin(self.keys(user))
    }
}
