//! The file that lists third-party servers.

use std::path::Path;

use oxmcp_group::{Config, ConfigError, ConfigReader};

/// Reads a configuration file, with variables given as `NAME=VALUE`.
///
/// # Errors
/// If the file cannot be read, or has a mistake.
pub fn read_servers(file: impl AsRef<Path>, variables: &[&str]) -> Result<Config, ConfigError> {
    let pairs = variables.iter().filter_map(|it| it.split_once('='));
    let pairs: Vec<_> = pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let value = move |name: &str| {
        let found = pairs.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone())
    };
    ConfigReader::new().variables(value).read(file)
}
