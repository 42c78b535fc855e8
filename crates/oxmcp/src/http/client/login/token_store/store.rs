//! The trait of stores of credentials.

use std::{fmt, future::Future};

use futures_core::future::BoxFuture;
use futures_util::TryFutureExt;
use oxmcp_auth::{Secret, client::CredentialKey};

use crate::error::{Error, Result};

/// Where the credentials of logins are kept: by user, issuer and resource. What is kept is secret, and opaque to the store.
///
/// | | |
/// |---|---|
/// | [`MemoryTokenStore`](super::MemoryTokenStore) | forgets them with the process |
/// | [`FileTokenStore`](super::FileTokenStore) | files that the user of the machine alone can read |
/// | `KeyringTokenStore`, with the feature `keyring` | files that are sealed with a key which the operating system keeps |
///
/// A store of your own, as in the database of a web server, is held against [the contract](crate::testing::token_store_contract).
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

/// A [`TokenStore`] as a trait object.
pub(in crate::http::client::login) trait DynTokenStore:
    Send + Sync
{
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<Option<Secret>>>;
    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, Result<()>>;
    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<()>>;
    fn lock_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<TokenStoreLock>>;
    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<CredentialKey>>>;
}

/// The errors are those of logins, whatever the store says: one of I/O would be taken for the network's, and repeated.
impl<S: TokenStore> DynTokenStore for S {
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<Option<Secret>>> {
        Box::pin(self.load(key).map_err(of_store))
    }

    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.save(key, text).map_err(of_store))
    }

    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.remove(key).map_err(of_store))
    }

    fn lock_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<TokenStoreLock>> {
        Box::pin(self.lock(key).map_err(of_store))
    }

    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<CredentialKey>>> {
        Box::pin(self.keys(user).map_err(of_store))
    }
}

fn of_store(error: Error) -> Error {
    let text = format!("the store of logins failed: {}", error.message());
    Error::failed_login(text, error)
}
