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

/// Credentials in a folder, of which only its owner can read anything. Any number of processes may share it, and each handle to the
/// folder sees the same.
///
/// Each login is a file of its own, so that a save replaces a small file and nothing else, a file that is damaged costs one login,
/// and two servers never wait for each other's refresh (but for one pair of 256). On Unix the folder has the mode 0700 and the
/// files 0600: a folder that others can open is refused, and a file that others can read is closed. Elsewhere both have the rights
/// of the folder that they are in. A file that cannot be read as credentials is left out, with a warning.
///
/// A save is atomic, also where the process is killed: a new file is written, synchronised and renamed. [`lock`](TokenStore::lock)
/// waits up to 30 s for other processes, and then fails, so that nothing is refreshed without it. The folder must be on a file
/// system that knows locks; those of this machine do.
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
    /// A store in a folder that is there for nothing else. It is made when something is kept.
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

    /// A store in the folder `logins` of the folder of that name where programs of this user keep their state:
    /// `$XDG_STATE_HOME`, or `~/.local/state`; `~/Library/Application Support` on macOS; `%LOCALAPPDATA%` on Windows.
    ///
    /// # Errors
    /// Where `app` is no name of a folder, or the environment does not say where that is.
    pub fn for_app(app: &str) -> Result<Self> {
        logins_of(app).map(Self::at)
    }

    /// Where it keeps them.
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
