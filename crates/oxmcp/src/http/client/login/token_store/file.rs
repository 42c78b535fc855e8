//! A store of credentials in files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use oxmcp_auth::{Secret, client::CredentialKey};

use super::{
    app_folder::logins_of,
    login_files::LoginFiles,
    store::{TokenStore, TokenStoreLock},
};
use crate::error::Result;

/// A store of credentials in a folder that only its owner can read. Any number of processes may share the folder, and each handle
/// to it sees the same credentials.
///
/// Each login is a separate file: a save replaces only a small file, a damaged file costs one login, and two servers never wait
/// for each other's refresh (except for one pair in 256). On Unix the folder has the mode 0700 and the files 0600: a folder
/// that others can open is refused, and a file that others can read gets the mode 0600. Elsewhere both have the rights of the
/// folder that they are in. A file that cannot be read as credentials is ignored, with a warning.
///
/// A save is atomic, even if the process is killed: a new file is written, synced and renamed. [`lock`](TokenStore::lock) waits
/// up to 30 s for other processes, and then fails, so that nothing is refreshed without it. The folder must be on a file system
/// that supports locks, as local file systems do.
///
/// ```no_run
/// use oxmcp::http::{Endpoint, FileTokenStore, Login};
///
/// # fn run() -> oxmcp::Result<()> {
/// let store = FileTokenStore::for_app("my-app")?;
/// let endpoint = Endpoint::new("https://example.com/mcp").login(Login::non_interactive().store(store));
/// # let _ = endpoint;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FileTokenStore {
    files: LoginFiles,
}

impl FileTokenStore {
    /// Creates a store in a folder that is used for nothing else. The folder is created with the first save.
    ///
    /// ```
    /// use oxmcp::http::FileTokenStore;
    ///
    /// let store = FileTokenStore::at("/var/lib/my-service/logins");
    /// assert_eq!(store.folder(), std::path::Path::new("/var/lib/my-service/logins"));
    /// ```
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            files: LoginFiles::new(folder.into()),
        }
    }

    /// Creates a store in the folder `logins` of the folder `app`, in the place where programs of this user keep their state:
    /// `$XDG_STATE_HOME`, or `~/.local/state`; `~/Library/Application Support` on macOS; `%LOCALAPPDATA%` on Windows.
    ///
    /// # Errors
    /// If `app` is not a valid name of a folder, or the environment does not name the place.
    pub fn for_app(app: &str) -> Result<Self> {
        logins_of(app).map(Self::at)
    }

    /// Returns the folder of the store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }
}

impl TokenStore for FileTokenStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        self.files.load(key).await
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        self.files.save(key, move || Ok(text)).await
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

impl fmt::Debug for FileTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTokenStore")
            .field("folder", &self.folder())
            .finish()
    }
}
