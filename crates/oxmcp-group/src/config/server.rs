//! One server of a configuration file: how it is reached, and the settings of its host.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

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
    /// Whether `shown` or `surroundings` have variables, or the headers take values of the environment.
    pub(super) has_variables: bool,
    pub(super) settings: Settings,
}

/// How a server is reached, with all variables expanded.
#[derive(Clone)]
pub(super) enum Reach {
    Process(Process),
    #[cfg(feature = "http-client")]
    Url(Url),
}

/// A program that is started.
#[derive(Clone)]
pub(super) struct Process {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) current_dir: Option<PathBuf>,
}

/// A URL, and the headers of its requests.
#[cfg(feature = "http-client")]
#[derive(Clone)]
pub(super) struct Url {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
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
        matches!(self.reach, Reach::Process(_)).then_some(&self.shown)
    }

    /// Returns the URL of the server as the file has it, with variables that are not expanded. `None` for a process.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        (!matches!(self.reach, Reach::Process(_))).then_some(&self.shown)
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
        self.url().is_some() && self.has_variables
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
            Reach::Process(process) => boxed(process.command()),
            #[cfg(feature = "http-client")]
            Reach::Url(url) => boxed(url.endpoint()),
        }
    }

    /// Creates the command that starts the server, for a host that reads its standard error. `None` for a server at a URL.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        match &self.reach {
            Reach::Process(process) => Some(process.command()),
            #[cfg(feature = "http-client")]
            Reach::Url(_) => None,
        }
    }

    /// Creates the endpoint of a server at a URL, with the headers of the file, for a host that adds a login to it. `None` for a
    /// process.
    #[cfg(feature = "http-client")]
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        match &self.reach {
            Reach::Process(_) => None,
            Reach::Url(url) => Some(url.endpoint()),
        }
    }
}

impl Process {
    fn command(&self) -> Command {
        let command = Command::new(&self.program).args(&self.args).envs(&self.env);
        match &self.current_dir {
            Some(directory) => command.current_dir(directory),
            None => command,
        }
    }
}

#[cfg(feature = "http-client")]
impl Url {
    fn endpoint(&self) -> Endpoint {
        let endpoint = Endpoint::new(&self.url);
        let with_header =
            |endpoint: Endpoint, (name, value): &(String, String)| endpoint.header(name, value);
        self.headers.iter().fold(endpoint, with_header)
    }
}

/// Without the values of variables, of the environment and of headers: they are often secrets.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = match &self.reach {
            Reach::Process(process) => process.env.keys().map(String::as_str).collect(),
            #[cfg(feature = "http-client")]
            Reach::Url(url) => url.headers.iter().map(|(name, _)| name.as_str()).collect(),
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
