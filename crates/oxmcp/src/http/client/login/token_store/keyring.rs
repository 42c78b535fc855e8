//! A store of credentials in files that are sealed with a key of the operating system's keyring.

use std::{fmt, path::PathBuf, sync::Arc};

use keyring_core::{CredentialStore, Entry};
use oxmcp_auth::{Secret, client::CredentialKey};

use super::{
    app_folder::sealed_logins_of,
    login_files::{LoginFiles, blocking},
    store::{TokenStore, TokenStoreLock},
};
use crate::{
    error::{Error, Result},
    session::sealing::{Bound, KeyRing, StateKey, open, random, seal},
};

/// The user name of the single entry in the keyring.
const ENTRY: &str = "oxmcp logins";

/// A store of credentials in a folder, like a [`FileTokenStore`](super::FileTokenStore), but sealed with a key in a keyring of the
/// operating system. Copies of the files, as in backups, are useless without the keyring; and if the key is removed from the
/// keyring, all users are logged out.
///
/// The keyring contains only the key and no tokens, because these do not fit everywhere: Windows accepts 2560 bytes for an entry,
/// and the Linux kernel some 20 000 for all entries of a user. So the keyring has one entry, named after the program, and the files
/// can be listed, locked and replaced like those of a `FileTokenStore`. The users and servers of logins are readable in the files.
///
/// The keyring is given as a store of [`keyring-core`](https://docs.rs/keyring-core), of which there is a crate for each:
/// `apple-native-keyring-store`, `windows-native-keyring-store`, `dbus-secret-service-keyring-store`,
/// `linux-keyutils-keyring-store`. A keyring that loses its entries (keyutils does when the machine is restarted) logs all users
/// out. The keyring may ask the user to unlock it, and calls wait for that.
///
/// ```no_run
/// use oxmcp::http::{Endpoint, KeyringTokenStore, Login};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// // A keyring in memory, only for the example.
/// let keyring = keyring_core::mock::Store::new()?;
/// let store = KeyringTokenStore::for_app(keyring, "my-app")?;
/// let endpoint = Endpoint::new("https://example.com/mcp").login(Login::non_interactive().store(store));
/// # let _ = endpoint;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct KeyringTokenStore {
    keyring: Arc<CredentialStore>,
    service: Arc<str>,
    files: LoginFiles,
}

impl KeyringTokenStore {
    /// Creates a store whose key belongs to a service in the keyring, and whose files are in a folder that is used for nothing
    /// else.
    #[must_use]
    pub fn at(
        keyring: Arc<CredentialStore>,
        service: impl Into<Arc<str>>,
        folder: impl Into<PathBuf>,
    ) -> Self {
        Self {
            keyring,
            service: service.into(),
            files: LoginFiles::new(folder.into()),
        }
    }

    /// Creates the store of a program, whose name is the service in the keyring. The sealed logins are in a folder next to that of
    /// [`FileTokenStore::for_app`](super::FileTokenStore::for_app), which stores logins without a keyring.
    ///
    /// # Errors
    /// If `app` is not a valid name of a folder, or the environment does not name the place where programs keep their state.
    pub fn for_app(keyring: Arc<CredentialStore>, app: &str) -> Result<Self> {
        Ok(Self::at(keyring, app, sealed_logins_of(app)?))
    }

    fn entry(&self) -> Result<Entry> {
        let built = self.keyring.build(&self.service, ENTRY, None);
        built.map_err(|error| self.failed(error))
    }

    /// The sealing key, if there is one.
    fn key(&self) -> Result<Option<StateKey>> {
        match self.entry()?.get_secret() {
            Ok(secret) => {
                let foreign = |_| {
                    Error::misuse(format!(
                        "the entry {ENTRY:?} of {:?} in the keyring is not a key for logins; delete it, or name \
                         another service",
                        self.service
                    ))
                };
                let secret = secret.try_into().map_err(foreign)?;
                Ok(Some(StateKey::new(secret)))
            }
            Err(keyring_core::Error::NoEntry) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The sealing key, which is created if there is none.
    fn key_or_new(&self) -> Result<StateKey> {
        if let Some(key) = self.key()? {
            return Ok(key);
        }
        let secret = random()?;
        let kept = self.entry()?.set_secret(&secret);
        kept.map_err(|error| self.failed(error))?;
        Ok(StateKey::new(secret))
    }

    /// Converts an error of the keyring. Only some of these errors contain nothing of the entry.
    fn failed(&self, error: keyring_core::Error) -> Error {
        use keyring_core::Error as E;

        let what = match error {
            E::PlatformFailure(error) | E::NoStorageAccess(error) => error.to_string(),
            E::Invalid(what, why) => format!("{what}: {why}"),
            E::NotSupportedByStore(why) | E::BadStoreFormat(why) => why,
            E::Ambiguous(_) => "several entries have that name".to_owned(),
            _ => "the entry cannot be used".to_owned(),
        };
        let service = &self.service;
        Error::internal(format!(
            "could not get the key {ENTRY:?} of {service:?} from the keyring: {what}; unlock the keyring, or let the program use it"
        ))
    }
}

/// The binding of sealed credentials to their key: they do not open in the place of others.
fn bound<T>(key: &CredentialKey, sealing: impl FnOnce(Bound<'_>) -> T) -> T {
    sealing(Bound {
        purpose: b"oxmcp login",
        parts: &[
            key.user.as_bytes(),
            key.issuer.as_bytes(),
            key.resource.as_bytes(),
        ],
    })
}

impl TokenStore for KeyringTokenStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        let Some(sealed) = self.files.load(key).await? else {
            return Ok(None);
        };
        let (store, key) = (self.clone(), key.clone());
        blocking(move || {
            let opened = store.key()?.and_then(|of| {
                let keys = KeyRing::new(vec![of]);
                bound(&key, |bound| open(sealed.expose(), bound, &keys)).ok()
            });
            let text = opened.and_then(|it| String::from_utf8(it).ok().map(Secret::new));
            if text.is_none() {
                tracing::warn!(
                    "ignoring stored credentials that the key in the keyring cannot open; log in again"
                );
            }
            Ok(text)
        })
        .await
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        let (store, of) = (self.clone(), key.clone());
        // The write lock is held, so no other process creates a key meanwhile.
        let sealed = move || {
            let (key, nonce, text) = (store.key_or_new()?, random()?, text.expose().as_bytes());
            let sealed = bound(&of, |bound| seal(text, bound, &key, nonce));
            let too_long = || Error::limit("the credentials are too long to be sealed");
            sealed.map(Secret::new).ok_or_else(too_long)
        };
        self.files.save(key, sealed).await
    }

    async fn remove(&self, key: &CredentialKey) -> Result<()> {
        self.files.remove(key).await
    }

    async fn lock(&self, key: &CredentialKey) -> Result<TokenStoreLock> {
        self.files.lock(key).await.map(TokenStoreLock::new)
    }

    async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        self.files.keys(user).await
    }
}

impl fmt::Debug for KeyringTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringTokenStore")
            .field("service", &self.service)
            .field("folder", &self.files.folder())
            .finish_non_exhaustive()
    }
}
