//! One server of a configuration file: how it is reached, and the settings of its host.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

#[cfg(feature = "http-client")]
use oxmcp::http::Endpoint;
use oxmcp::{
    Command,
    transport::{BoxTransport, boxed},
};

/// A server of a configuration file.
///
/// Reading a file runs nothing. Before a host runs a command that the user has not seen, it should show the
/// [command line](Self::command_line), and [remove](crate::Config::retain) the server if the user refuses.
#[derive(Clone)]
pub struct ServerConfig {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) reach: Reach,
    /// The command line or URL as the file has it, before variables were expanded.
    pub(super) shown: String,
    /// The rest of the file's entry that decides what runs and what is sent, a line each, before variables were expanded.
    pub(super) surroundings: Vec<String>,
    pub(super) settings: Settings,
}

/// How a server is reached, with all variables expanded.
#[derive(Clone)]
pub(super) enum Reach {
    Process {
        program: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        current_dir: Option<PathBuf>,
    },
    #[cfg(feature = "http-client")]
    Url {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// The settings of a server that concern the host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) is_required: bool,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) call_timeout: Option<Duration>,
    /// The only tools that are offered, if there are any.
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) denied_tools: Vec<String>,
}

impl ServerConfig {
    /// Returns the name of the server in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line of the server in the file, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the command line that starts the server, to show to the user. Variables are not expanded, so that it contains no
    /// secret of the environment. `None` for a server at a URL.
    #[must_use]
    pub fn command_line(&self) -> Option<&str> {
        matches!(self.reach, Reach::Process { .. }).then_some(&self.shown)
    }

    /// Returns the URL of the server as the file has it, with variables that are not expanded. `None` for a process.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        (!matches!(self.reach, Reach::Process { .. })).then_some(&self.shown)
    }

    /// Returns everything that the user should see before the server is started or contacted: the command line or the URL, and a
    /// line each for the working directory, the files and variables of the environment, and the headers. Variables are not
    /// expanded, so that it contains no secret of the environment, but it contains the secrets that are written in the file.
    #[must_use]
    pub fn consent_text(&self) -> String {
        let first = std::iter::once(self.shown.as_str());
        let lines: Vec<_> = first
            .chain(self.surroundings.iter().map(String::as_str))
            .collect();
        lines.join("\n")
    }

    /// Returns whether the URL or the headers have variables, or take values of the environment. `false` for a process.
    #[must_use]
    pub fn sends_variables(&self) -> bool {
        let has_variable = |text: &String| {
            ["$", "{env:", "{file:"].iter().any(|it| text.contains(it))
                || text.starts_with("header of the environment")
        };
        self.url().is_some()
            && (has_variable(&self.shown) || self.surroundings.iter().any(has_variable))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns whether the group must not start without this server: `required` of Codex.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.settings.is_required
    }

    /// Creates the transport that starts the server, or connects to it.
    #[must_use]
    pub fn transport(&self) -> BoxTransport {
        match &self.reach {
            Reach::Process {
                program,
                args,
                env,
                current_dir,
            } => boxed(command(program, args, env, current_dir.as_deref())),
            #[cfg(feature = "http-client")]
            Reach::Url { url, headers } => boxed(endpoint(url, headers)),
        }
    }

    /// Creates the command that starts the server, for a host that reads its standard error. `None` for a server at a URL.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        match &self.reach {
            Reach::Process {
                program,
                args,
                env,
                current_dir,
            } => Some(command(program, args, env, current_dir.as_deref())),
            #[cfg(feature = "http-client")]
            Reach::Url { .. } => None,
        }
    }

    /// Creates the endpoint of a server at a URL, with the headers of the file, for a host that adds a login to it. `None` for a
    /// process.
    #[cfg(feature = "http-client")]
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        match &self.reach {
            Reach::Process { .. } => None,
            Reach::Url { url, headers } => Some(endpoint(url, headers)),
        }
    }
}

fn command(
    program: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    current_dir: Option<&Path>,
) -> Command {
    let command = Command::new(program).args(args).envs(env);
    match current_dir {
        Some(directory) => command.current_dir(directory),
        None => command,
    }
}

#[cfg(feature = "http-client")]
fn endpoint(url: &str, headers: &[(String, String)]) -> Endpoint {
    let endpoint = Endpoint::new(url);
    let with_header =
        |endpoint: Endpoint, (name, value): &(String, String)| endpoint.header(name, value);
    headers.iter().fold(endpoint, with_header)
}

/// Without the values of variables, of the environment and of headers: they are often secrets.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = match &self.reach {
            Reach::Process { env, .. } => env.keys().map(String::as_str).collect(),
            #[cfg(feature = "http-client")]
            Reach::Url { headers, .. } => headers.iter().map(|(name, _)| name.as_str()).collect(),
        };
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("line", &self.line)
            .field("shown", &self.shown)
            .field("env_or_headers", &names)
            .field("settings", &self.settings)
            .finish()
    }
}
