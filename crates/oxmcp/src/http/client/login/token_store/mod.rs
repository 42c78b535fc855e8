//! Stores of credentials.

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

pub(crate) use store::DynTokenStore;
