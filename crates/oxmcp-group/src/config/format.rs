//! The formats of hosts: the places of servers in a file, and the members of a server.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    time::Duration,
};

#[cfg(feature = "http-client")]
use super::server::Url;
use super::{
    document::{Node, Value},
    env_file,
    error::Mistake,
    input::Input,
    server::{Process, Reach, ServerConfig, Settings},
    variables::{Dialect, Variables, may_have_variable},
};

/// The kind of a file, as far as its contents do not tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Toml,
    Json,
    /// Settings of Gemini CLI, which have variables of their own.
    Gemini,
}

/// The contents of a file.
pub(super) struct Found {
    pub(super) servers: Vec<ServerConfig>,
    pub(super) disabled: Vec<String>,
    pub(super) mistakes: Vec<Mistake>,
}

/// Reads the servers of a file.
pub(super) fn read(
    root: &Node,
    kind: FileKind,
    only: Option<&str>,
    variables: Variables<'_>,
) -> Found {
    let mut reader = FileReader {
        variables,
        only,
        names: HashSet::new(),
        found: Found {
            servers: Vec::new(),
            disabled: Vec::new(),
            mistakes: Vec::new(),
        },
    };
    reader.file(&At::root(root), kind);
    reader.found
}

/// A value and the path to it.
#[derive(Clone)]
struct At<'a> {
    key: String,
    node: &'a Node,
}

impl<'a> At<'a> {
    fn root(node: &'a Node) -> Self {
        let key = String::new();
        Self { key, node }
    }

    fn child(&self, key: &str, node: &'a Node) -> Self {
        let key = match self.key.as_str() {
            "" => key.to_owned(),
            parent => format!("{parent}.{key}"),
        };
        Self { key, node }
    }

    fn members(&self) -> Option<impl Iterator<Item = (&'a str, Self)> + use<'a, '_>> {
        let Value::Map(members) = &self.node.value else {
            return None;
        };
        let child = |(key, node): &'a (String, Node)| (key.as_str(), self.child(key, node));
        Some(members.iter().map(child))
    }

    /// A member of an object. A member that is null counts as absent.
    fn get(&self, key: &str) -> Option<Self> {
        let (_, node) = self.members()?.find(|(name, _)| *name == key)?;
        (!matches!(node.node.value, Value::Null)).then_some(node)
    }

    /// The first of several members that is present.
    fn any(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().find_map(|key| self.get(key))
    }
}

struct FileReader<'v> {
    variables: Variables<'v>,
    /// The only server that is read, if there is one.
    only: Option<&'v str>,
    names: HashSet<String>,
    found: Found,
}

impl FileReader<'_> {
    fn mistake(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.found.mistakes.push(Mistake {
            line: at.node.line,
            key: at.key.clone(),
            message: message.into(),
        });
    }

    fn unexpected(&mut self, at: &At<'_>, expected: &str) {
        let kind = at.node.value.kind();
        self.mistake(at, format!("expected {expected}, found {kind}"));
    }

    fn file(&mut self, root: &At<'_>, kind: FileKind) {
        if !matches!(root.node.value, Value::Map(_)) {
            return self.unexpected(root, "an object");
        }
        if kind == FileKind::Toml {
            return match root.get("mcp_servers") {
                Some(servers) => self.servers(&servers, Dialect::VERBATIM),
                None => self.mistake(root, "has no servers; add a table `[mcp_servers.NAME]`"),
            };
        }
        let dollar = match kind {
            FileKind::Gemini => Dialect::GEMINI,
            FileKind::Toml | FileKind::Json => Dialect::DOLLAR,
        };
        self.inputs(root);
        let mut is_known = false;
        for key in ["mcpServers", "servers"] {
            if let Some(servers) = root.get(key) {
                is_known = true;
                self.servers(&servers, dollar);
            }
        }
        // Beside `mcpServers` it has other settings of Gemini CLI.
        if let Some(mcp) = root.get("mcp")
            && root.get("mcpServers").is_none()
        {
            is_known = true;
            self.inputs(&mcp);
            match mcp.get("servers") {
                Some(servers) => self.servers(&servers, Dialect::DOLLAR_OR_BRACES),
                None => self.servers(&mcp, Dialect::BRACES),
            }
        }
        is_known |= self.project(root);
        if !is_known && has_only_servers(root) {
            return self.servers(root, Dialect::DOLLAR);
        }
        if !is_known {
            self.mistake(
                root,
                "has no servers; expected the key `mcpServers`, `servers` or `mcp`",
            );
        }
    }

    /// The servers of the workspace's project in the file of Claude Code. Returns whether the file has projects.
    fn project(&mut self, root: &At<'_>) -> bool {
        let Some(projects) = root.get("projects") else {
            return false;
        };
        let workspace = self.variables.workspace.to_string_lossy().into_owned();
        let project = projects.get(&workspace);
        if let Some(servers) = project.and_then(|it| it.get("mcpServers")) {
            self.servers(&servers, Dialect::DOLLAR);
        }
        true
    }

    fn inputs(&mut self, parent: &At<'_>) {
        let Some(inputs) = parent.get("inputs") else {
            return;
        };
        let Value::List(entries) = &inputs.node.value else {
            return self.unexpected(&inputs, "a list");
        };
        for (index, entry) in entries.iter().enumerate() {
            let at = inputs.child(&index.to_string(), entry);
            let Some(id) = at.get("id") else {
                self.mistake(&at, "has no `id`; add one");
                continue;
            };
            let Some(id) = self.text(&id) else { continue };
            let text = |key| match &at.get(key)?.node.value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            };
            let is_password = at.get("password").map(|it| &it.node.value);
            let input = Input {
                id: id.to_owned(),
                description: text("description").unwrap_or_default(),
                is_password: matches!(is_password, Some(Value::Bool(true))),
                default: text("default"),
                options: at
                    .get("options")
                    .map(|it| texts_in(&it))
                    .unwrap_or_default(),
            };
            self.variables.inputs.insert(id.to_owned(), input);
        }
    }

    fn servers(&mut self, servers: &At<'_>, dialect: Dialect) {
        let Some(members) = servers.members() else {
            return self.unexpected(servers, "an object of servers");
        };
        for (name, at) in members {
            if self.only.is_some_and(|only| only != name) {
                continue;
            }
            if name.is_empty() {
                self.mistake(&at, "the name of a server is empty; give it a name");
            } else if !self.names.insert(name.to_owned()) {
                self.mistake(&at, format!("another server is named `{name}`; rename one"));
            } else {
                self.server(name, &at, dialect);
            }
        }
    }

    fn server(&mut self, name: &str, at: &At<'_>, dialect: Dialect) {
        if !matches!(at.node.value, Value::Map(_)) {
            return self.unexpected(at, "an object");
        }
        let is_disabled = self.flag(at, "disabled", false) || !self.flag(at, "enabled", true);
        // Variables of a disabled server need no value.
        if is_disabled {
            self.found.disabled.push(name.to_owned());
            return;
        }
        let before = self.found.mistakes.len();
        let settings = self.settings(at);
        let reach = self.reach(at, dialect);
        // A server with a mistake is not used, because the file is not.
        if let (Some((reach, shown)), true) = (reach, before == self.found.mistakes.len()) {
            let surroundings = surroundings(at);
            let has_variables = may_have_variable(&shown)
                || surroundings.iter().any(|it| may_have_variable(it))
                || has_environment_header(at);
            self.found.servers.push(ServerConfig {
                name: name.to_owned(),
                line: at.node.line,
                reach,
                shown,
                surroundings,
                has_variables,
                settings,
            });
        }
    }

    fn settings(&mut self, at: &At<'_>) -> Settings {
        let allowed = at.any(&["enabled_tools", "includeTools"]);
        let denied = at.any(&["disabled_tools", "excludeTools"]);
        Settings {
            is_required: self.flag(at, "required", false),
            connect_timeout: self.seconds(at, "startup_timeout_sec"),
            call_timeout: self.seconds(at, "tool_timeout_sec"),
            allowed_tools: allowed.map(|it| self.texts(&it)),
            denied_tools: denied.map(|it| self.texts(&it)).unwrap_or_default(),
        }
    }

    fn reach(&mut self, at: &At<'_>, dialect: Dialect) -> Option<(Reach, String)> {
        if let Some(kind) = at.any(&["type", "transport"]) {
            const KNOWN: [&str; 7] = [
                "stdio",
                "local",
                "http",
                "streamable-http",
                "streamableHttp",
                "sse",
                "remote",
            ];
            match self.text(&kind) {
                Some(text) if !KNOWN.contains(&text) => self.mistake(
                    &kind,
                    format!("unknown type `{text}`; expected `stdio`, `http` or `sse`"),
                ),
                _ => {}
            }
        }
        // Gemini CLI prefers `httpUrl`.
        let url = at.any(&["httpUrl", "url", "serverUrl"]);
        match (at.get("command"), url) {
            (Some(command), None) => self.process(at, &command, dialect),
            (None, Some(url)) => self.url(at, &url, dialect),
            (Some(_), Some(url)) => {
                self.mistake(
                    &url,
                    "the server has a `command` as well; remove one of them",
                );
                None
            }
            (None, None) => {
                self.mistake(at, "has neither `command` nor `url`; write one of them");
                None
            }
        }
    }

    fn process(
        &mut self,
        at: &At<'_>,
        command: &At<'_>,
        dialect: Dialect,
    ) -> Option<(Reach, String)> {
        let mut raw = Vec::new();
        match &command.node.value {
            Value::List(words) => {
                let words = words.iter().enumerate();
                raw.extend(words.map(|(index, it)| command.child(&index.to_string(), it)));
            }
            _ => raw.push(command.clone()),
        }
        if let Some(args) = at.get("args") {
            match &args.node.value {
                Value::List(words) => {
                    let words = words.iter().enumerate();
                    raw.extend(words.map(|(index, it)| args.child(&index.to_string(), it)));
                }
                _ => self.unexpected(&args, "a list of strings"),
            }
        }
        let shown: Vec<_> = raw.iter().filter_map(|it| scalar(it.node)).collect();
        let words: Vec<_> = raw
            .iter()
            .map(|word| self.expanded(word, dialect))
            .collect();
        let mut words = words.into_iter().collect::<Option<Vec<_>>>()?;
        if words.first().is_none_or(String::is_empty) {
            self.mistake(command, "is empty; write the program to run");
            return None;
        }
        let program = words.remove(0);
        let env = self.environment(at, dialect);
        let current_dir = match at.get("cwd") {
            Some(folder) => {
                let folder = PathBuf::from(self.expanded(&folder, dialect)?);
                Some(self.variables.workspace.join(folder))
            }
            None => None,
        };
        let shown = shown.iter().map(|word| quoted(word));
        let shown = shown.collect::<Vec<_>>().join(" ");
        let process = Process {
            program,
            args: words,
            env,
            current_dir,
        };
        Some((Reach::Process(process), shown))
    }

    fn environment(&mut self, at: &At<'_>, dialect: Dialect) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        if let Some(file) = at.get("envFile")
            && let Some(path) = self.expanded(&file, dialect)
        {
            match env_file::read(&self.variables.workspace.join(path)) {
                Ok(variables) => env.extend(variables),
                Err(problem) => self.mistake(&file, problem),
            }
        }
        if let Some(names) = at.get("env_vars") {
            for name in self.texts(&names) {
                match self.variables.environment(&name) {
                    Ok(value) => drop(env.insert(name, value)),
                    Err(problem) => self.mistake(&names, problem),
                }
            }
        }
        if let Some(members) = at.any(&["env", "environment"]) {
            env.extend(self.pairs(&members, dialect));
        }
        env
    }

    #[cfg(not(feature = "http-client"))]
    fn url(&mut self, _: &At<'_>, url: &At<'_>, _: Dialect) -> Option<(Reach, String)> {
        self.mistake(
            url,
            "this program supports no servers at a URL; build it with the feature `http-client`",
        );
        None
    }

    #[cfg(feature = "http-client")]
    fn url(&mut self, at: &At<'_>, url: &At<'_>, dialect: Dialect) -> Option<(Reach, String)> {
        for key in ["headersHelper", "bearer_token"] {
            if let Some(refused) = at.get(key) {
                let instead = "write the header to `headers`, with its secret in a variable";
                self.mistake(&refused, format!("`{key}` is not supported; {instead}"));
            }
        }
        let mut headers = Vec::new();
        if let Some(members) = at.any(&["headers", "http_headers"]) {
            headers.extend(self.pairs(&members, dialect));
        }
        if let Some(members) = at.get("env_http_headers") {
            for (header, name) in self.pairs(&members, Dialect::VERBATIM) {
                match self.variables.environment(&name) {
                    Ok(value) => headers.push((header, value)),
                    Err(problem) => self.mistake(&members, problem),
                }
            }
        }
        if let Some(at) = at.get("bearer_token_env_var") {
            let name = self.text(&at)?;
            match self.variables.environment(name) {
                Ok(token) => headers.push(("Authorization".into(), format!("Bearer {token}"))),
                Err(problem) => self.mistake(&at, problem),
            }
        }
        let shown = self.text(url)?.to_owned();
        let expanded = self.expanded(url, dialect)?;
        let is_http = ["http://", "https://"].iter().any(|scheme| {
            let start = expanded.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !is_http || expanded.chars().any(char::is_control) {
            self.mistake(
                url,
                "expected a URL that begins with `https://` or `http://`",
            );
            return None;
        }
        let url = expanded;
        Some((Reach::Url(Url { url, headers }), shown))
    }

    /// The members of an object of strings. Numbers and booleans are read as they are written.
    fn pairs(&mut self, at: &At<'_>, dialect: Dialect) -> Vec<(String, String)> {
        let Some(members) = at.members() else {
            self.unexpected(at, "an object of strings");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, value) in members {
            if let Some(value) = self.expanded(&value, dialect) {
                pairs.push((name.to_owned(), value));
            }
        }
        pairs
    }

    /// A value with its variables expanded.
    fn expanded(&mut self, at: &At<'_>, dialect: Dialect) -> Option<String> {
        let Some(raw) = scalar(at.node) else {
            self.unexpected(at, "a string");
            return None;
        };
        match self.variables.expand(raw, dialect) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.mistake(at, problem);
                None
            }
        }
    }

    fn text<'a>(&mut self, at: &At<'a>) -> Option<&'a str> {
        match &at.node.value {
            Value::Text(text) => Some(text),
            _ => {
                self.unexpected(at, "a string");
                None
            }
        }
    }

    fn texts(&mut self, at: &At<'_>) -> Vec<String> {
        match &at.node.value {
            Value::List(entries) if entries.iter().all(|it| matches!(it.value, Value::Text(_))) => {
            }
            _ => self.unexpected(at, "a list of strings"),
        }
        texts_in(at)
    }

    fn flag(&mut self, at: &At<'_>, key: &str, default: bool) -> bool {
        match at.get(key) {
            None => default,
            Some(at) => match at.node.value {
                Value::Bool(flag) => flag,
                _ => {
                    self.unexpected(&at, "`true` or `false`");
                    default
                }
            },
        }
    }

    fn seconds(&mut self, at: &At<'_>, key: &str) -> Option<Duration> {
        let at = at.get(key)?;
        let seconds = match &at.node.value {
            Value::Number(number) => number.replace('_', "").parse::<f64>().ok(),
            _ => None,
        };
        let duration = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        if duration.is_none_or(|it| it.is_zero()) {
            self.mistake(&at, "expected a number of seconds above 0");
        }
        duration
    }
}

/// Whether each member is a server: the flat form of Claude Code's plugins.
fn has_only_servers(root: &At<'_>) -> bool {
    let mut members = root.members().into_iter().flatten().peekable();
    members.peek().is_some()
        && members.all(|(_, at)| at.any(&["command", "url", "httpUrl"]).is_some())
}

/// The text of a value that can stand for a string.
fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) | Value::Number(text) => Some(text),
        Value::Bool(true) => Some("true"),
        Value::Bool(false) => Some("false"),
        _ => None,
    }
}

/// The lines of a server that decide what its program does, or what is sent to its URL, besides the command line and the URL.
fn surroundings(at: &At<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, name) in [
        ("cwd", "working directory"),
        ("envFile", "file of the environment"),
        (
            "bearer_token_env_var",
            "header of the environment: Authorization",
        ),
    ] {
        if let Some(value) = at.get(key)
            && let Some(text) = scalar(value.node)
        {
            lines.push(format!("{name}: {}", quoted(text)));
        }
    }
    let names = at.get("env_vars").map(|it| texts_in(&it));
    for name in names.unwrap_or_default() {
        lines.push(format!("variable of the environment: {}", quoted(&name)));
    }
    let pairs: [(&[&str], &str); 3] = [
        (&["env", "environment"], "environment"),
        (&["headers", "http_headers"], "header"),
        (&["env_http_headers"], "header of the environment"),
    ];
    for (keys, name) in pairs {
        let members = at.any(keys);
        for (key, value) in members.iter().filter_map(At::members).flatten() {
            let text = scalar(value.node).unwrap_or_default();
            lines.push(format!("{name}: {}={}", quoted(key), quoted(text)));
        }
    }
    lines
}

/// Whether a header takes its value from the environment.
fn has_environment_header(at: &At<'_>) -> bool {
    let headers = at.get("env_http_headers");
    let mut headers = headers.iter().filter_map(At::members).flatten();
    at.get("bearer_token_env_var").is_some() || headers.next().is_some()
}

/// The strings in a list.
fn texts_in(at: &At<'_>) -> Vec<String> {
    let Value::List(entries) = &at.node.value else {
        return Vec::new();
    };
    let text = |it: &Node| match &it.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    entries.iter().filter_map(text).collect()
}

/// A word of a command line, as a person would write it. Control characters are escaped, because the line is shown in terminals.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=@%+,${}~".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("{word:?}")
}
