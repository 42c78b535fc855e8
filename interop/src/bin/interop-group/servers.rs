//! The servers that a program is given, and the outcome of what it does with them.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use oxmcp_group::Config;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// The servers of the configuration file, one that starts slowly, and the folder for their files.
pub(crate) struct Servers {
    pub(crate) config: Config,
    pub(crate) slow: Config,
    pub(crate) scratch: PathBuf,
}

impl Servers {
    pub(crate) fn read(file: &str, variables: &[&str]) -> Outcome<Self> {
        let scratch = variables.iter().find_map(|it| it.strip_prefix("SCRATCH="));
        let slow = Path::new(file).with_file_name("slow-server.json");
        Ok(Self {
            config: oxmcp_interop::read_servers(file, variables)?,
            slow: oxmcp_interop::read_servers(slow, variables)?,
            scratch: scratch.ok_or("missing SCRATCH=FOLDER")?.into(),
        })
    }
}

/// # Errors
/// If the condition does not hold.
pub(crate) fn ensure(holds: bool, text: impl Into<String>) -> Outcome {
    match holds {
        true => Ok(()),
        false => Err(text.into().into()),
    }
}
