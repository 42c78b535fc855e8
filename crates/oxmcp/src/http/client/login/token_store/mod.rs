//! Stores of credentials.
//!
//! | | |
//! |---|---|
//! | `store` | the trait, and its form as a trait object |
//! | `memory` | a store in memory |
//! | `file` | a store in files |
//! | `keyring` | a store in files that are sealed with a key of the operating system's keyring |
//! | `login_files` | the files of logins in their folder: names, contents, rights, atomic writes |
//! | `file_lock` | a lock of a file, across processes |
//! | `app_folder` | the folder in which a program keeps its state |

mod app_folder;
mod file;
mod file_lock;
#[cfg(feature = "keyring")]
mod keyring;
mod login_files;
mod memory;
mod store;

pub use file::FileTokenStore;
#[cfg(feature = "keyring")]
pub use keyring::KeyringTokenStore;
pub use memory::MemoryTokenStore;
pub use store::{TokenStore, TokenStoreLock};

pub(super) use store::DynTokenStore;
