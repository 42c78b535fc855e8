//! The configuration files of hosts: where they are, and which servers they have.

use std::{
    collections::HashSet,
    env, fs,
    path::{Path, PathBuf},
};

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use oxmcp_group::{Config, ConfigError, ConfigReader, Input, ServerConfig};
use serde_json::Value;

use crate::{
    failure::{Failure, Result},
    terminal::Terminal,
};

/// The host that a file belongs to, and the file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub host: &'static str,
    pub path: PathBuf,
}

/// The files that exist: first those of the current folder, then those of the user.
pub(crate) fn sources() -> Vec<Source> {
    let mut found = candidates();
    // In the home folder, a file of the folder is that of the user.
    let mut seen = HashSet::new();
    found.retain(|it| {
        fs::canonicalize(&it.path).is_ok_and(|real| real.is_file() && seen.insert(real))
    });
    found
}

/// The folder that a file of the user is in.
#[derive(Clone, Copy)]
enum Base {
    Home,
    /// The settings of applications.
    Apps,
}

/// The files of the current folder.
const OF_FOLDER: [(&str, &str); 9] = [
    ("mcp.json", "mcp.json"),
    ("claude-code", ".mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", "opencode.json"),
    ("opencode", "opencode.jsonc"),
    ("windsurf", ".windsurf/mcp.json"),
];

/// The files of the user.
const OF_USER: [(&str, Base, &str); 9] = [
    ("claude-code", Base::Home, ".claude.json"),
    ("cursor", Base::Home, ".cursor/mcp.json"),
    ("codex", Base::Home, ".codex/config.toml"),
    ("gemini", Base::Home, ".gemini/settings.json"),
    ("windsurf", Base::Home, ".codeium/windsurf/mcp_config.json"),
    ("opencode", Base::Home, ".config/opencode/opencode.json"),
    ("opencode", Base::Home, ".config/opencode/opencode.jsonc"),
    (
        "claude-desktop",
        Base::Apps,
        "Claude/claude_desktop_config.json",
    ),
    ("vscode", Base::Apps, "Code/User/mcp.json"),
];

fn candidates() -> Vec<Source> {
    let home = env::home_dir().unwrap_or_default();
    let of_folder = OF_FOLDER.map(|(host, path)| (host, PathBuf::from(path)));
    let of_user = OF_USER.map(|(host, base, path)| (host, user_path(&home, host, base, path)));
    let all = of_folder.into_iter().chain(of_user);
    all.map(|(host, path)| Source { host, path }).collect()
}

/// The file of a host in the current folder. `None` if it has none.
pub(crate) fn file_of_folder(host: &str) -> Option<PathBuf> {
    let mut all = OF_FOLDER.into_iter();
    all.find(|(name, _)| *name == host)
        .map(|(_, path)| PathBuf::from(path))
}

/// The file of a host for the user. `None` if the host or the user's folder is unknown.
pub(crate) fn file_of_user(host: &str) -> Option<PathBuf> {
    let home = env::home_dir()?;
    let mut all = OF_USER.into_iter();
    all.find(|(name, ..)| *name == host)
        .map(|(host, base, path)| user_path(&home, host, base, path))
}

fn user_path(home: &Path, host: &str, base: Base, path: &str) -> PathBuf {
    match (host, base) {
        ("codex", _) => match variable("CODEX_HOME") {
            Some(folder) => folder.join("config.toml"),
            None => home.join(path),
        },
        (_, Base::Home) => home.join(path),
        (_, Base::Apps) => app_folder(home).join(path),
    }
}

/// The folder in which applications keep the settings of the user.
fn app_folder(home: &Path) -> PathBuf {
    if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else if cfg!(windows) {
        variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
    } else {
        variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|it| !it.is_empty())
        .map(PathBuf::from)
}

/// A configured server, and its file.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) config: ServerConfig,
}

impl Found {
    /// Everything that the user must agree to before the server is used: its program, or a URL that gets values of the environment.
    pub(crate) fn consent(&self) -> Option<String> {
        let is_asked = self.config.command_line().is_some() || self.config.sends_variables();
        is_asked.then(|| self.config.consent_text())
    }
}

/// A file or a server that cannot be used: its label, its path, and the reason.
pub(crate) type Unusable = (String, String, Failure);

/// All configured servers, with their labels. Files without servers are left out.
pub(crate) fn all(terminal: &Terminal) -> Vec<Result<(String, Found), Unusable>> {
    let mut all = Vec::new();
    for Source { host, path } in sources() {
        let unusable = |label: String, error: ConfigError| {
            Err((label, path.display().to_string(), Failure::from(error)))
        };
        let config = match reader(terminal, None).read(&path) {
            Ok(config) => config,
            Err(error)
                if error
                    .mistakes()
                    .iter()
                    .all(|it| it.message.starts_with("has no servers")) =>
            {
                continue;
            }
            Err(error) => {
                all.push(unusable(format!("{host}:{}", path.display()), error));
                continue;
            }
        };
        for name in config.servers().iter().map(ServerConfig::name) {
            let label = format!("{host}:{name}");
            all.push(match reader(terminal, Some(name)).read(&path) {
                Ok(config) => match server(&config, name) {
                    Some(config) => Ok((
                        label,
                        Found {
                            path: path.clone(),
                            config,
                        },
                    )),
                    None => continue,
                },
                Err(error) => unusable(label, error),
            });
        }
    }
    all
}

/// Finds a server by its name, by `host:name`, or by `path#name`.
///
/// # Errors
/// There is none or more than one; or the file with the server has mistakes.
pub(crate) fn find(target: &str, terminal: &Terminal) -> Result<Found> {
    if let Some((path, name)) = split_file(target) {
        let config = reader(terminal, Some(name)).read(&path)?;
        let Some(config) = server(&config, name) else {
            return Err(Failure::usage(format!(
                "{} has no server {name:?}; it has {}",
                path.display(),
                names(&config)
            )));
        };
        return Ok(Found { path, config });
    }
    let (host, name) = match target.split_once(':') {
        Some((host, name)) if candidates().iter().any(|it| it.host == host) => (Some(host), name),
        _ => (None, target),
    };
    let sources = sources();
    let mut found = Vec::new();
    let mut unreadable = Vec::new();
    for source in sources
        .iter()
        .filter(|it| host.is_none_or(|host| it.host == host))
    {
        match reader(terminal, Some(name)).read(&source.path) {
            Ok(config) => found.extend(server(&config, name).map(|it| (source, it))),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    let is_alone = found.len() == 1;
    match found.into_iter().next() {
        Some((source, config)) if is_alone => Ok(Found {
            path: source.path.clone(),
            config,
        }),
        Some((first, _)) => Err(Failure::usage(format!(
            "more than one configuration file has a server {name:?}; write `{}:{name}`, or `{}#{name}`",
            first.host,
            first.path.display()
        ))),
        None if unreadable.is_empty() => Err(Failure::usage(format!(
            "no server {target:?} in {} configuration files; see `oxmcp config list`, or put a program after `--`",
            sources.len()
        ))),
        None => Err(Failure::usage(unreadable.join("; "))),
    }
}

/// The command line or the URL as the file has it: variables, which are often secrets, are not expanded.
pub(crate) fn reach(server: &ServerConfig) -> &str {
    server
        .command_line()
        .or_else(|| server.url())
        .unwrap_or_default()
}

fn server(config: &Config, name: &str) -> Option<ServerConfig> {
    config
        .servers()
        .iter()
        .find(|it| it.name() == name)
        .cloned()
}

fn names(config: &Config) -> String {
    let names: Vec<&str> = config.servers().iter().map(ServerConfig::name).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

/// A reader that asks the user for inputs. If only names are shown, it asks nothing.
pub(crate) fn reader(terminal: &Terminal, wanted: Option<&str>) -> ConfigReader {
    let reader = ConfigReader::new();
    let reader = match env::current_dir() {
        Ok(folder) => reader.workspace(folder),
        Err(_) => reader,
    };
    let Some(wanted) = wanted else {
        let reader = reader.variables(|_| Some(String::new()));
        return reader.inputs(|_| Some(String::new()));
    };
    let reader = reader.only(wanted);
    let has_person = terminal.has_person();
    reader.inputs(move |input: &Input| has_person.then(|| ask(input)).flatten())
}

fn ask(input: &Input) -> Option<String> {
    let prompt = crate::escape::line(&input.description);
    if input.is_password {
        return dialoguer::Password::new()
            .with_prompt(prompt)
            .interact()
            .ok();
    }
    if !input.options.is_empty() {
        let chosen = dialoguer::Select::new()
            .with_prompt(prompt)
            .items(&input.options)
            .interact();
        return chosen
            .ok()
            .and_then(|index| input.options.get(index).cloned());
    }
    let asked = dialoguer::Input::new().with_prompt(prompt);
    match &input.default {
        Some(default) => asked.default(default.clone()).interact_text().ok(),
        None => asked.interact_text().ok(),
    }
}

/// The text of a configuration file as a value: JSON with comments, or TOML.
///
/// # Errors
/// It is neither.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Value> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("could not read {}: {error}", path.display()))
    };
    let text = text.trim_start_matches('\u{feff}');
    if path.extension().is_some_and(|it| it == "toml") {
        return toml_edit::de::from_str(text).map_err(|error| failed(&error));
    }
    let parsed: Result<Value, _> = parse_to_serde_value(text, &ParseOptions::default());
    parsed.map_err(|error| failed(&error))
}

/// The part of a path of a file before `#`, and the name after it.
fn split_file(target: &str) -> Option<(PathBuf, &str)> {
    let (path, name) = target.rsplit_once('#')?;
    (!path.is_empty() && !name.is_empty()).then(|| (PathBuf::from(path), name))
}
