//! The configuration files of hosts: [`ConfigReader`] reads them, and never writes them.
//!
//! The dialects are told apart in `format.rs`, and a variable is expanded in `variables.rs`, nowhere else.

mod document;
mod env_file;
mod error;
mod format;
mod input;
mod reader;
mod server;
mod variables;

pub use error::{ConfigError, Mistake};
pub use input::Input;
pub use reader::{Config, ConfigReader};
pub use server::ServerConfig;
pub(crate) use server::Settings;
