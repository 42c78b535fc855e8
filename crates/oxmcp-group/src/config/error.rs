//! The mistakes in a configuration file, each with its line and key.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The maximum number of mistakes that are listed: a file of another kind has a mistake in every line.
const MAX_MISTAKES: usize = 50;

/// A configuration file could not be used. It lists every [`Mistake`] in the file, the first 50.
///
/// ```
/// use oxmcp_group::ConfigReader;
///
/// let text = "{\n  \"mcpServers\": {\n    \"files\": {\"comand\": \"files-server\"}\n  }\n}";
/// let error = ConfigReader::new().parse(text, "mcp.json").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "mcp.json:3: mcpServers.files: has neither `command` nor `url`; write one of them"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    path: PathBuf,
    mistakes: Vec<Mistake>,
}

/// One mistake in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// The line, from 1. 0 if the file itself could not be read.
    pub line: usize,
    /// The path to the value, such as `mcpServers.files.env.TOKEN`. Empty if the file as a whole is meant.
    pub key: String,
    /// The mistake, and what to do.
    pub message: String,
}

impl ConfigError {
    /// The mistakes of a file, if there are any.
    pub(super) fn of(path: &Path, mut mistakes: Vec<Mistake>) -> Result<(), Self> {
        if mistakes.is_empty() {
            return Ok(());
        }
        mistakes.sort_by_key(|it| it.line);
        mistakes.truncate(MAX_MISTAKES);
        let path = path.to_owned();
        Err(Self { path, mistakes })
    }

    /// The mistake of a file as a whole.
    pub(super) fn of_file(path: &Path, line: usize, message: impl Into<String>) -> Self {
        let mistake = Mistake {
            line,
            key: String::new(),
            message: message.into(),
        };
        Self {
            path: path.to_owned(),
            mistakes: vec![mistake],
        }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the mistakes, by line. There is at least one.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.path.display())?;
            if mistake.line > 0 {
                write!(f, ":{}", mistake.line)?;
            }
            f.write_str(": ")?;
            if !mistake.key.is_empty() {
                write!(f, "{}: ", mistake.key)?;
            }
            f.write_str(&mistake.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for oxmcp::Error {
    fn from(error: ConfigError) -> Self {
        Self::misuse(error.to_string()).with_source(error)
    }
}
