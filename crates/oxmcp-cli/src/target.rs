//! The server that a command is for: a URL, a program, or a server of a configuration file.

use std::env;

use oxmcp::{
    Command,
    http::{Endpoint, FileTokenStore, HttpClient, Login},
    transport::{BoxTransport, Stderr, boxed},
};

use crate::{
    args::{
        Connection, Target,
        pairs::{Header, Variable},
    },
    failure::{Failure, Result},
    hosts::{self, Found},
    terminal::Terminal,
};

/// A server, and the words of the command line that follow it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Its URL, its name in a configuration, or its command line, for messages.
    pub label: String,
    place: Place,
    /// The words after the target.
    pub words: Vec<String>,
}

#[derive(Clone, Debug)]
enum Place {
    Url(String),
    Program(Vec<String>),
    Config(Box<Found>),
}

impl Server {
    /// Finds the server that the command line names.
    ///
    /// # Errors
    /// No server is named, or no configuration file, or more than one, has a server with the name.
    pub(crate) fn find(target: Target, terminal: &Terminal) -> Result<Self> {
        let Target { words, program } = target;
        if let Some(name) = program.first() {
            return Ok(Self {
                label: name.clone(),
                place: Place::Program(program),
                words,
            });
        }
        let mut words = words.into_iter();
        let target = words.next().ok_or_else(|| {
            Failure::usage(
                "no server given; pass a URL, the name of a configured server, or `-- program`",
            )
        })?;
        let place = if is_url(&target) {
            Place::Url(target.clone())
        } else {
            Place::Config(Box::new(hosts::find(&target, terminal)?))
        };
        Ok(Self {
            label: target,
            place,
            words: words.collect(),
        })
    }

    /// Finds all servers that the command line names.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub(crate) fn find_all(target: Target, terminal: &Terminal) -> Result<Vec<Self>> {
        let first = Self::find(target, terminal)?;
        let others = first.words.clone().into_iter().map(|word| {
            let target = Target {
                words: vec![word],
                program: Vec::new(),
            };
            Self::find(target, terminal)
        });
        let others: Vec<Self> = others.collect::<Result<_>>()?;
        Ok([vec![first], others].concat())
    }

    /// A server of a configuration file.
    pub(crate) fn configured(label: String, found: Found) -> Self {
        Self {
            label,
            place: Place::Config(Box::new(found)),
            words: Vec::new(),
        }
    }

    /// The file and the line that define the server, the program, or the URL.
    pub(crate) fn source(&self) -> (String, usize) {
        match &self.place {
            Place::Url(url) => (url.clone(), 1),
            Place::Program(words) => (words.first().cloned().unwrap_or_default(), 1),
            Place::Config(found) => {
                let folder = env::current_dir().unwrap_or_default();
                let path = found.path.strip_prefix(folder).unwrap_or(&found.path);
                (path.display().to_string(), found.config.line())
            }
        }
    }

    /// The name in a configuration file.
    pub(crate) fn configured_name(&self) -> Option<&str> {
        match &self.place {
            Place::Config(found) => Some(found.config.name()),
            Place::Url(_) | Place::Program(_) => None,
        }
    }

    /// The words of the command line, before variables are expanded. None for a server at a URL.
    pub(crate) fn command_words(&self) -> Vec<String> {
        match &self.place {
            Place::Url(_) => Vec::new(),
            Place::Program(words) => words.clone(),
            Place::Config(found) => {
                let words = found.config.command_line().unwrap_or_default();
                words.split_whitespace().map(str::to_owned).collect()
            }
        }
    }

    /// The command line or the URL, for people. Variables of a configuration file are not expanded.
    pub(crate) fn reach(&self) -> String {
        match &self.place {
            Place::Url(url) => url.clone(),
            Place::Program(words) => words.join(" "),
            Place::Config(found) => hosts::reach(&found.config).to_owned(),
        }
    }

    /// A transport that fails to connect.
    pub(crate) fn nowhere() -> BoxTransport {
        boxed(Command::new(""))
    }

    /// Tells the user what a configuration file lets the command do: start a program, or send values of the environment.
    pub(crate) fn announce(&self, terminal: &Terminal) {
        let Place::Config(found) = &self.place else {
            return;
        };
        if let Some(command) = found.config.command_line() {
            terminal.note(&format!("starting `{command}`"));
        } else if found.config.sends_variables() {
            let url = hosts::reach(&found.config);
            terminal.note(&format!("sending values of the environment to `{url}`"));
        }
    }

    /// Everything that the user must agree to before the server is used, if a configuration file names it.
    pub(crate) fn consent(&self) -> Option<String> {
        match &self.place {
            Place::Config(found) => found.consent(),
            Place::Url(_) | Place::Program(_) => None,
        }
    }

    /// Whether the server is a program.
    pub(crate) fn is_program(&self) -> bool {
        match &self.place {
            Place::Url(_) => false,
            Place::Program(_) => true,
            Place::Config(found) => found.config.command_line().is_some(),
        }
    }

    /// The transport to the server.
    ///
    /// # Errors
    /// An option does not apply to the server, or a variable is not set.
    pub(crate) fn transport(
        &self,
        options: &Connection,
        terminal: &Terminal,
    ) -> Result<BoxTransport> {
        self.check_options(options)?;
        let server = match &self.place {
            Place::Program(words) => return Ok(boxed(program(words, options, terminal)?)),
            Place::Url(url) => return Ok(boxed(endpoint(Endpoint::new(url), options, terminal)?)),
            Place::Config(found) => &found.config,
        };
        if let Some(endpoint_of_file) = server.endpoint() {
            return Ok(boxed(endpoint(endpoint_of_file, options, terminal)?));
        }
        Ok(match server.command() {
            Some(command) => boxed(command.stderr(stderr(terminal))),
            None => server.transport(),
        })
    }

    /// The transport to a server at a URL, with another HTTP client. `None` for a program.
    pub(crate) fn observed(
        &self,
        options: &Connection,
        terminal: &Terminal,
        client: impl HttpClient,
    ) -> Option<Endpoint> {
        let plain = match &self.place {
            Place::Program(_) => return None,
            Place::Url(url) => Endpoint::new(url),
            Place::Config(found) => found.config.endpoint()?,
        };
        Some(endpoint(plain, options, terminal).ok()?.http_client(client))
    }

    fn check_options(&self, options: &Connection) -> Result<()> {
        let has_headers = !options.header.is_empty() || !options.header_env.is_empty();
        if self.is_program() && has_headers {
            return Err(Failure::usage(
                "headers are for servers at a URL, but this server is a program; remove them",
            ));
        }
        let is_given = matches!(self.place, Place::Program(_));
        if !is_given && (!options.env.is_empty() || options.cwd.is_some()) {
            return Err(Failure::usage(
                "`--env` and `--cwd` apply only to a program after `--`; remove them",
            ));
        }
        Ok(())
    }
}

/// Whether a target is the URL of a server.
pub(crate) fn is_url(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}

fn program(words: &[String], options: &Connection, terminal: &Terminal) -> Result<Command> {
    let (name, arguments) = words
        .split_first()
        .ok_or_else(|| Failure::usage("no program follows `--`"))?;
    let mut command = Command::new(name)
        .args(arguments)
        .start_timeout(options.timeout);
    for variable in &options.env {
        command = command.env(&variable.name, &variable.value);
    }
    if let Some(folder) = &options.cwd {
        command = command.current_dir(folder);
    }
    Ok(command.stderr(stderr(terminal)))
}

/// Sends the lines of standard error to the terminal.
fn stderr(terminal: &Terminal) -> Stderr {
    let notes = terminal.clone();
    Stderr::lines(move |line| notes.detail("stderr", line))
}

fn endpoint(mut endpoint: Endpoint, options: &Connection, terminal: &Terminal) -> Result<Endpoint> {
    let mut is_authorized = false;
    for Header { name, value } in &options.header {
        is_authorized |= name.eq_ignore_ascii_case("authorization");
        endpoint = endpoint.header(name, value.expose());
    }
    for Variable { name, value } in &options.header_env {
        is_authorized |= name.eq_ignore_ascii_case("authorization");
        let text = env::var(value).map_err(|_| {
            Failure::usage(format!(
                "the environment variable `{value}` for the header `{name}` is not set"
            ))
        })?;
        endpoint = endpoint.header(name, text);
    }
    if is_authorized {
        return Ok(endpoint);
    }
    Ok(endpoint.login(login(terminal.has_person() && !options.no_browser)?))
}

/// The login of all commands, with the logins that are stored for this user.
///
/// # Errors
/// There is no folder for the logins.
pub(crate) fn login(is_interactive: bool) -> Result<Login> {
    let login = if is_interactive {
        Login::browser()
    } else {
        Login::non_interactive()
    };
    let store = FileTokenStore::for_app("oxmcp")?;
    Ok(login.client_name("oxmcp").store(store))
}
