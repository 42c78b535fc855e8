//! The files of logins: one for each login, in a folder that only its owner can open.
//!
//! A file is named after digests of its user and of its key, so that no key leads out of the folder, and so that the files of a
//! user are found without reading all. A file is replaced by renaming another one, `new.tmp`, under the lock `write.lock`: a
//! process that is killed leaves at most that one file behind. The locks of keys are 256 files, `00.lock` to `ff.lock`, so that
//! their number does not grow with the keys; two keys that share one wait for each other.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use oxmcp_auth::{Secret, client::CredentialKey};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::file_lock::FileLock;
use crate::{
    error::{Error, Result},
    session::sealing::sha256,
};

/// The version of the file format that this release writes.
const VERSION: u32 = 1;
/// The maximum size of a file, in bytes: tokens of 64 KiB each, and metadata of a megabyte, with what JSON and a seal add.
const MAX_BYTES: u64 = 4 << 20;
/// The file that is written before it replaces another one.
const NEW: &str = "new.tmp";

/// A folder of logins.
#[derive(Clone)]
pub(crate) struct LoginFiles {
    folder: Arc<Path>,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct StoredLogin {
    version: u32,
    key: CredentialKey,
    credentials: String,
}

impl LoginFiles {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The stored credentials under a key.
    pub(crate) async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        let (files, key) = (self.clone(), key.clone());
        blocking(move || {
            let login = files.read(&name_of(&key))?;
            let login = login.filter(|it| it.key == key);
            Ok(login.map(|it| Secret::new(it.credentials)))
        })
        .await
    }

    /// Stores the text that `make` returns. `make` runs while no other process writes.
    pub(crate) async fn save(
        &self,
        key: &CredentialKey,
        make: impl FnOnce() -> Result<Secret> + Send + 'static,
    ) -> Result<()> {
        let (files, key) = (self.clone(), key.clone());
        let lock = self.lock_file("write.lock".to_owned()).await?;
        // The work continues if the caller is dropped, so it owns the lock.
        blocking(move || {
            let _lock = lock;
            let login = StoredLogin {
                version: VERSION,
                credentials: make()?.expose().to_owned(),
                key,
            };
            let text = Secret::new(serde_json::to_string(&login).unwrap_or_default());
            let _wiped = Secret::new(login.credentials);
            files.write(&name_of(&login.key), text.expose().as_bytes())
        })
        .await
    }

    pub(crate) async fn remove(&self, key: &CredentialKey) -> Result<()> {
        let (files, key) = (self.clone(), key.clone());
        blocking(move || {
            if !files.is_there()? {
                return Ok(());
            }
            let path = files.folder.join(name_of(&key));
            match fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed
                    .and_then(|()| files.sync())
                    .map_err(|error| failed(&path, &error)),
            }
        })
        .await
    }

    /// Waits for the lock of a key.
    pub(crate) async fn lock(&self, key: &CredentialKey) -> Result<FileLock> {
        let [place, ..] = digest_of(key);
        self.lock_file(format!("{place:02x}.lock")).await
    }

    async fn lock_file(&self, name: String) -> Result<FileLock> {
        let path = self.folder.join(name);
        let (files, of) = (self.clone(), path.clone());
        let open = move || {
            files.make()?;
            let mut options = for_owner();
            let file = options.create(true).truncate(false).open(&of);
            file.map_err(|error| failed(&of, &error))
        };
        FileLock::acquire(blocking(open).await?, &path).await
    }

    pub(crate) async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        let (files, user) = (self.clone(), user.to_owned());
        blocking(move || {
            if !files.is_there()? {
                return Ok(Vec::new());
            }
            let begin = begin_of(&user);
            let failed = |error| failed(&files.folder, &error);
            let mut keys = Vec::new();
            for entry in fs::read_dir(&files.folder).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let name = name.to_str().unwrap_or_default();
                if name.starts_with(&begin)
                    && let Some(login) = files.read(name)?
                    && name == name_of(&login.key)
                {
                    keys.push(login.key);
                }
            }
            Ok(keys)
        })
        .await
    }

    /// Reads a file. A file without a login is left out, because it would prevent another login.
    fn read(&self, name: &str) -> Result<Option<StoredLogin>> {
        if !self.is_there()? {
            return Ok(None);
        }
        let path = self.folder.join(name);
        let bytes = match read_own(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
        };
        let text = String::from_utf8(bytes).map(Secret::new);
        let login = text
            .ok()
            .and_then(|it| serde_json::from_str::<StoredLogin>(it.expose()).ok());
        let login = login.filter(|it| it.version == VERSION);
        if login.is_none() {
            let path = path.display();
            tracing::warn!(%path, "ignoring an unreadable credentials file; log in again");
        }
        Ok(login)
    }

    /// Replaces a file, whole or not at all.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::limit(format!(
                "the credentials exceed the limit of {MAX_BYTES} bytes"
            )));
        }
        let (new, path) = (self.folder.join(NEW), self.folder.join(name));
        let write = || {
            // The file of a process that was killed. An existing file is never opened.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = for_owner().create_new(true).open(&new)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            self.sync()
        };
        write().map_err(|error| failed(&path, &error))
    }

    /// Waits until a rename or a removal is on the disk. Only on Unix, because folders cannot be opened elsewhere.
    fn sync(&self) -> io::Result<()> {
        #[cfg(unix)]
        File::open(&self.folder)?.sync_all()?;
        Ok(())
    }

    /// Creates the folder, if it does not exist.
    fn make(&self) -> Result<()> {
        if self.is_there()? {
            return Ok(());
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.create(&self.folder);
        made.map_err(|error| failed(&self.folder, &error))?;
        self.is_there().map(drop)
    }

    /// Whether the folder exists. Fails if other users can open it.
    fn is_there(&self) -> Result<bool> {
        match fs::metadata(&self.folder) {
            Ok(found) if !found.is_dir() => Err(Error::misuse(format!(
                "{} is a file; expected a folder for logins",
                self.folder.display()
            ))),
            #[cfg(unix)]
            Ok(found) => check_rights(&self.folder, &found).map(|()| true),
            #[cfg(not(unix))]
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&self.folder, &error)),
        }
    }
}

/// Checks that only the user of this process can open a folder. On other systems, it has the rights of its parent folder.
#[cfg(unix)]
fn check_rights(folder: &Path, found: &fs::Metadata) -> Result<()> {
    use std::os::unix::fs::MetadataExt;

    let folder = folder.display();
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::misuse(format!(
            "the folder {folder} belongs to another user; use a folder of your own"
        )));
    }
    if found.mode() & 0o077 != 0 {
        return Err(Error::misuse(format!(
            "other users can open the folder {folder}; restrict it with `chmod 700`, or use a folder \
             that is only for logins"
        )));
    }
    Ok(())
}

/// The options to write a file that only its owner can open.
fn for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Reads a file, and removes the rights that other users have to it.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};

        if file.metadata()?.mode() & 0o077 != 0 {
            let shown = path.display();
            tracing::warn!(path = %shown, "removed the access of other users to a credentials file");
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    let mut bytes = Vec::new();
    // A truncated text is not valid JSON.
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let text = format!("{}: {error}", path.display());
    io::Error::new(error.kind(), text).into()
}

/// The digest of a list of texts. The length precedes each text, so different lists cannot be confused.
fn digest<const N: usize>(texts: [&str; N]) -> [u8; 32] {
    let lengths = texts.map(|it| (it.len() as u64).to_le_bytes());
    let parts = lengths.iter().zip(texts);
    let parts: Vec<_> = parts
        .flat_map(|(length, it)| [&length[..], it.as_bytes()])
        .collect();
    sha256(&parts)
}

/// The digest of a key.
fn digest_of(key: &CredentialKey) -> [u8; 32] {
    digest([&key.user, &key.issuer, &key.resource])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The beginning of the names of a user's files. Two users may share it, because each file contains its user.
fn begin_of(user: &str) -> String {
    let [begin @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = &digest([user]);
    format!("{}-", hex(begin))
}

/// The name of a key's file.
fn name_of(key: &CredentialKey) -> String {
    format!("{}{}.json", begin_of(&key.user), hex(&digest_of(key)))
}

/// Runs work that waits for the disk, or for a keyring, on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let ended = spawn_blocking(work).await;
    ended.map_err(|error| {
        Error::internal("the work of the login store was aborted").with_source(error)
    })?
}
