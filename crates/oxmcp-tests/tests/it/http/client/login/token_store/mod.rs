//! Stores of credentials of the SDK, tested against the contract of stores and against damage to files.

mod bound;
mod contract;
mod files;
#[cfg(feature = "keyring")]
mod keyring;
#[cfg(unix)]
mod processes;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use oxmcp::{auth::client::CredentialKey, http::FileTokenStore};

use super::*;

/// A folder for logins that does not exist yet, and that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("oxmcp-logins-{}-{count}", process::id()));
        // The folder of an earlier process with the same id, which was killed.
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("logins")
    }

    fn store(&self) -> FileTokenStore {
        FileTokenStore::at(self.path())
    }

    /// The only file of a login.
    fn file(&self) -> PathBuf {
        let entries = fs::read_dir(self.path()).unwrap();
        let paths = entries.map(|it| it.unwrap().path());
        let mut files = paths.filter(|it| it.extension() == Some("json".as_ref()));
        let file = files.next().unwrap();
        assert_eq!(files.next(), None);
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(user: &str) -> CredentialKey {
    CredentialKey::new(user, "https://as.example", MCP)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}
