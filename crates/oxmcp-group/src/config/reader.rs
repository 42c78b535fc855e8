//! The reader of a file, its settings, and the servers that it found.

use std::{
    collections::HashMap,
    env, fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    document::Node,
    error::ConfigError,
    format::{self, FileKind},
    input::Input,
    server::ServerConfig,
    variables::Variables,
};

/// The maximum size of a file. Hosts keep other settings in the same file, some of them grow to megabytes.
const MAX_BYTES: u64 = 32 << 20;

/// The servers of one or several configuration files.
///
/// [`read`](Self::read) accepts the files of Claude Desktop, Claude Code, Cursor, Gemini CLI (`mcpServers`), VS Code (`servers`),
/// OpenCode (`mcp`), and Codex (TOML, `mcp_servers`). Comments, trailing commas and a byte order mark are accepted in JSON. The
/// format is recognized by the file's keys; a name that ends in `.toml` makes it TOML.
///
/// ```no_run
/// use oxmcp_group::Config;
///
/// let mut config = Config::read("mcp.json")?;
/// config.retain(|server| {
///     println!("{}: {}", server.name(), server.command_line().or(server.url()).unwrap_or_default());
///     true // … if the user agrees
/// });
/// # Ok::<(), oxmcp_group::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub(crate) servers: Vec<ServerConfig>,
    disabled: Vec<String>,
}

type Environment = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;
type Inputs = Box<dyn Fn(&Input) -> Option<String> + Send + Sync>;

/// Reads configuration files, with the values of their variables.
///
/// ```
/// use oxmcp_group::ConfigReader;
///
/// let text = r#"{
///   // VS Code's format
///   "inputs": [{"id": "token", "type": "promptString", "description": "The token", "password": true}],
///   "servers": {
///     "files": {"command": "files-server", "args": ["${workspaceFolder}"], "env": {"TOKEN": "${input:token}"}},
///   },
/// }"#;
/// let reader = ConfigReader::new()
///     .workspace("/work/tea")
///     .inputs(|input| (input.id == "token").then(|| "secret".into()));
/// let config = reader.parse(text, ".vscode/mcp.json")?;
/// let server = &config.servers()[0];
/// assert_eq!(server.command_line(), Some("files-server ${workspaceFolder}"));
/// # Ok::<(), oxmcp_group::ConfigError>(())
/// ```
pub struct ConfigReader {
    environment: Environment,
    inputs: Inputs,
    workspace: Option<PathBuf>,
    only: Option<String>,
}

impl Default for ConfigReader {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ConfigReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ConfigReader");
        shown
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

impl ConfigReader {
    /// Creates a reader that takes variables from the environment of the process, and has no inputs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            environment: Box::new(|name| env::var(name).ok()),
            inputs: Box::new(|_| None),
            workspace: None,
            only: None,
        }
    }

    /// Sets the function that returns the value of an environment variable, instead of the environment of the process.
    #[must_use]
    pub fn variables(
        mut self,
        value: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.environment = Box::new(value);
        self
    }

    /// Sets the function that returns the answer to an [`Input`]. It is called once for each input that a server needs, while the
    /// file is read. Without an answer, the file is not accepted.
    #[must_use]
    pub fn inputs(
        mut self,
        answer: impl Fn(&Input) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.inputs = Box::new(answer);
        self
    }

    /// Sets the folder of `${workspaceFolder}`, to which the `cwd` of a server is relative, and of whose project in Claude Code's
    /// file servers are read. Default: the folder of the file, or its parent if that is a host's own folder, such as `.vscode`.
    #[must_use]
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Reads one server only: the others need no variables and no answers, and may have mistakes.
    #[must_use]
    pub fn only(mut self, name: impl Into<String>) -> Self {
        self.only = Some(name.into());
        self
    }

    /// Reads a file. It blocks for as long as the file system does.
    ///
    /// # Errors
    /// If the file cannot be read, or contains a mistake. The error lists every mistake with its line and key.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Config, ConfigError> {
        let path = path.as_ref();
        let failed = |reason: String| ConfigError::of_file(path, 0, reason);
        let mut bytes = Vec::new();
        let opened = File::open(path);
        opened
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| failed(format!("could not read the file: {error}")))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(failed(format!("the file has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let before = error.as_bytes().get(..valid).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            ConfigError::of_file(path, line, "is not UTF-8; save the file as UTF-8")
        })?;
        self.parse(&text, path)
    }

    /// Reads the text of a file. The path is for errors, the format and the folder of the workspace. Nothing is read from the disk
    /// but the files that servers name with `envFile` or `{file:…}`.
    ///
    /// # Errors
    /// If the text contains a mistake. The error lists every mistake with its line and key.
    pub fn parse(&self, text: &str, path: impl AsRef<Path>) -> Result<Config, ConfigError> {
        let path = path.as_ref();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let kind = kind_of(path);
        let parsed = match kind {
            FileKind::Toml => Node::from_toml(text),
            FileKind::Json | FileKind::Gemini => Node::from_jsonc(text),
        };
        let root = parsed.map_err(|(line, reason)| ConfigError::of_file(path, line, reason))?;
        let workspace = self.workspace.clone().unwrap_or_else(|| folder_of(path));
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let variables = Variables {
            environment: &self.environment,
            ask: &self.inputs,
            workspace: &workspace,
            folder: absolute.parent().unwrap_or(&absolute),
            inputs: HashMap::new(),
            answers: HashMap::new(),
        };
        let found = format::read(&root, kind, self.only.as_deref(), variables);
        ConfigError::of(path, found.mistakes)?;
        Ok(Config {
            servers: found.servers,
            disabled: found.disabled,
        })
    }
}

fn kind_of(path: &Path) -> FileKind {
    let extension = path.extension();
    if extension.is_some_and(|it| it.eq_ignore_ascii_case("toml")) {
        return FileKind::Toml;
    }
    let folder = path.parent().and_then(Path::file_name);
    match folder {
        Some(folder) if folder == ".gemini" => FileKind::Gemini,
        _ => FileKind::Json,
    }
}

/// The folder of the workspace that a file belongs to.
fn folder_of(path: &Path) -> PathBuf {
    const OF_HOSTS: [&str; 5] = [".vscode", ".cursor", ".codex", ".gemini", ".opencode"];
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(&path);
    let is_of_host = folder
        .file_name()
        .is_some_and(|name| OF_HOSTS.iter().any(|host| name == *host));
    match folder.parent() {
        Some(parent) if is_of_host => parent.to_owned(),
        _ => folder.to_owned(),
    }
}

impl Config {
    /// Reads a file, with variables from the environment of the process. [`ConfigReader`] has settings.
    ///
    /// # Errors
    /// As for [`ConfigReader::read`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        ConfigReader::new().read(path)
    }

    /// Returns the servers that the file does not disable, in the order of the file.
    #[must_use]
    pub fn servers(&self) -> &[ServerConfig] {
        &self.servers
    }

    /// Returns the names of the servers that the file disables.
    #[must_use]
    pub fn disabled(&self) -> &[String] {
        &self.disabled
    }

    /// Removes the servers for which the function returns `false`.
    pub fn retain(&mut self, keep: impl FnMut(&ServerConfig) -> bool) {
        self.servers.retain(keep);
    }
}
