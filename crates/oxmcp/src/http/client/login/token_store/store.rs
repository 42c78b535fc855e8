//! The trait of stores of credentials.

use std::{fmt, future::Future};

use futures_core::future::BoxFuture;
use futures_util::TryFutureExt;
use oxmcp_auth::{Secret, client::CredentialKey};

use crate::error::{Error, Result};

/// A store of the credentials of logins, by user, issuer and resource. The credentials are secret, and opaque to the store.
///
/// | | |
/// |---|---|
/// | [`MemoryTokenStore`](super::MemoryTokenStore) | memory, which ends with the process |
/// | [`FileTokenStore`](super::FileTokenStore) | files that only the user of the program can read |
/// | `KeyringTokenStore`, with the feature `keyring` | files that are sealed with a key which the operating system keeps |
///
/// Test your own store, such as one in the database of a web server, with [the contract](crate::testing::token_store_contract).
pub trait TokenStore: Send + Sync + 'static {
    /// Loads the credentials under a key.
    ///
    /// # Errors
    /// If the store fails. In that case there is no login, because it could overwrite the stored credentials.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn load(&self, key: &CredentialKey) -> impl Future<Output = Result<Option<Secret>>> + Send;

    /// Stores the credentials under a key, atomically.
    ///
    /// # Errors
    /// If the text is not stored.
    ///
    /// # Cancel safety
    /// The login of an endpoint never drops the future.
    fn save(&self, key: &CredentialKey, text: Secret) -> impl Future<Output = Result<()>> + Send;

    /// Removes the credentials under a key.
    ///
    /// # Errors
    /// If the credentials are still stored.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the credentials may or may not be removed.
    fn remove(&self, key: &CredentialKey) -> impl Future<Output = Result<()>> + Send;

    /// Waits until there is no other holder of the lock of a key, in any process that shares the store, and holds the lock until
    /// the returned value is dropped. A refresh token can be used only once, so tokens are refreshed only under the lock.
    ///
    /// # Errors
    /// If the lock cannot be acquired. In that case the tokens are not refreshed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the lock is not held.
    fn lock(&self, key: &CredentialKey) -> impl Future<Output = Result<TokenStoreLock>> + Send;

    /// Lists the keys of a user.
    ///
    /// # Errors
    /// If the store fails.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn keys(&self, user: &str) -> impl Future<Output = Result<Vec<CredentialKey>>> + Send;
}

/// The lock of a key in a [`TokenStore`], which is held until this value is dropped.
pub struct TokenStoreLock {
    _guard: Box<dyn Send>,
}

impl TokenStoreLock {
    /// Creates a lock that a guard holds.
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
pub(crate) trait DynTokenStore: Send + Sync {
    fn load_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<Option<Secret>>>;
    fn save_boxed<'a>(&'a self, key: &'a CredentialKey, text: Secret) -> BoxFuture<'a, Result<()>>;
    fn remove_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<()>>;
    fn lock_boxed<'a>(&'a self, key: &'a CredentialKey) -> BoxFuture<'a, Result<TokenStoreLock>>;
    fn keys_boxed<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<CredentialKey>>>;
}

/// All errors become login errors: an I/O error would look like a network error, and the request would be retried.
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
    let text = format!("the login store failed: {}", error.message());
    Error::failed_login(text, error)
}
