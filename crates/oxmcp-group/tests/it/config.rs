//! The configuration files of hosts, and their mistakes.

use std::{env, fs};

use oxmcp_group::{Config, ConfigError, ConfigReader};

fn reader() -> ConfigReader {
    let reader = ConfigReader::new().variables(|name| match name {
        "TOKEN" => Some("t0p".into()),
        "BIN" => Some("/opt/bin".into()),
        _ => None,
    });
    reader.workspace("/work/tea")
}

fn parse(text: &str, path: &str) -> Result<Config, ConfigError> {
    reader().parse(text, path)
}

fn shown(config: &Config) -> Vec<String> {
    let servers = config.servers().iter();
    servers.map(|it| format!("{it:?}")).collect()
}

fn mistakes(text: &str, path: &str) -> String {
    parse(text, path).unwrap_err().to_string()
}

#[test]
fn claude_code_and_cursor_format_is_read() {
    let text = r#"{
      // comments and trailing commas
      "mcpServers": {
        "files": {
          "command": "${BIN}/files", "args": ["--root", "${workspaceFolder}", "${NONE:-a b}"],
          "env": {"TOKEN": "${env:TOKEN}", "LEVEL": 3,}, "cwd": "sub",
        },
        "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "off": {"command": "x", "args": ["${UNSET}"], "disabled": true},
      },
    }"#;
    let config = parse(&format!("\u{feff}{text}"), "/work/tea/.mcp.json").unwrap();
    insta::assert_snapshot!(shown(&config).join("\n"), @r#"
    ServerConfig { name: "files", line: 4, shown: "${BIN}/files --root ${workspaceFolder} \"${NONE:-a b}\"", env_or_headers: ["LEVEL", "TOKEN"], settings: Settings { is_required: false, connect_timeout: None, call_timeout: None, allowed_tools: None, denied_tools: [] } }
    ServerConfig { name: "web", line: 8, shown: "https://example.com/mcp", env_or_headers: ["Authorization"], settings: Settings { is_required: false, connect_timeout: None, call_timeout: None, allowed_tools: None, denied_tools: [] } }
    "#);
    assert_eq!(config.disabled(), ["off"]);
}

#[test]
fn vs_code_format_asks_each_input_once() {
    use std::sync::{Arc, Mutex};
    let text = r#"{
      "inputs": [
        {"id": "key", "type": "promptString", "description": "API key", "password": true},
        {"id": "size", "type": "pickString", "options": ["s", "m"], "default": "m"},
        {"id": "unused", "type": "promptString"}
      ],
      "servers": {
        "one": {"type": "stdio", "command": "one", "env": {"KEY": "${input:key}", "SIZE": "${input:size}"}},
        "two": {"type": "http", "url": "https://example.com", "headers": {"Key": "${input:key}"}}
      }
    }"#;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    let reader = reader().inputs(move |input| {
        record
            .lock()
            .unwrap()
            .push((input.id.clone(), input.is_password));
        Some(input.default.clone().unwrap_or_else(|| "secret".into()))
    });
    let config = reader.parse(text, ".vscode/mcp.json").unwrap();
    assert_eq!(config.servers().len(), 2);
    assert_eq!(
        *asked.lock().unwrap(),
        [("key".into(), true), ("size".into(), false)]
    );
    assert!(!format!("{config:?}").contains("secret"), "{config:?}");
}

#[test]
fn codex_format_is_read_verbatim() {
    let text = r#"
model = "other settings"

[mcp_servers.files]
command = "sh"
args = ["-c", "echo ${HOME}"]
env_vars = ["TOKEN"]
startup_timeout_sec = 20
tool_timeout_sec = 1.5
enabled_tools = ["read", "write"]
disabled_tools = ["write"]
required = true

[mcp_servers.web]
url = "https://example.com/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X-A = "1" }
env_http_headers = { X-B = "TOKEN" }

[mcp_servers.off]
command = "x"
enabled = false
"#;
    let config = parse(text, "config.toml").unwrap();
    insta::assert_snapshot!(shown(&config).join("\n"), @r#"
    ServerConfig { name: "files", line: 4, shown: "sh -c \"echo ${HOME}\"", env_or_headers: ["TOKEN"], settings: Settings { is_required: true, connect_timeout: Some(20s), call_timeout: Some(1.5s), allowed_tools: Some(["read", "write"]), denied_tools: ["write"] } }
    ServerConfig { name: "web", line: 14, shown: "https://example.com/mcp", env_or_headers: ["X-A", "X-B", "Authorization"], settings: Settings { is_required: false, connect_timeout: None, call_timeout: None, allowed_tools: None, denied_tools: [] } }
    "#);
    assert!(config.servers()[0].is_required());
    assert_eq!(
        config.servers()[0].command_line(),
        Some("sh -c \"echo ${HOME}\"")
    );
}

#[test]
fn other_formats_are_read() {
    for (format, text) in [
        (
            "Gemini",
            r#"{"theme": "x", "mcpServers": {"web": {"httpUrl": "https://example.com"}}}"#,
        ),
        (
            "OpenCode 1",
            r#"{"mcp": {"web": {"type": "remote", "url": "https://example.com", "enabled": true}}}"#,
        ),
        (
            "OpenCode 2",
            r#"{"mcp": {"servers": {"web": {"type": "remote", "url": "https://example.com"}}}}"#,
        ),
        ("flat", r#"{"web": {"url": "https://example.com"}}"#),
        (
            "Gemini CLI",
            r#"{"mcpServers": {"web": {"httpUrl": "https://example.com", "url": "https://example.com/sse"}},
                "mcp": {"allowed": ["web"]}}"#,
        ),
        (
            "Claude Code",
            r#"{"projects": {"/work/tea": {"mcpServers": {"web": {"url": "https://example.com"}}}}}"#,
        ),
    ] {
        let config = parse(text, "settings.json").unwrap();
        let urls: Vec<_> = config
            .servers()
            .iter()
            .map(|it| (it.name(), it.url()))
            .collect();
        assert_eq!(urls, [("web", Some("https://example.com"))], "{format}");
    }
    let text = r#"{"mcp": {"f": {"type": "local", "command": ["bun", "x"], "environment": {"T": "{env:TOKEN}"}}}}"#;
    let config = parse(text, "opencode.jsonc").unwrap();
    assert_eq!(config.servers()[0].command_line(), Some("bun x"));
    // Both VS Code and OpenCode have servers here.
    for value in ["{env:TOKEN}", "${TOKEN}"] {
        let text = format!(
            r#"{{"mcp": {{"servers": {{"f": {{"command": "x", "args": ["{value}"]}}}}}}}}"#
        );
        assert!(parse(&text, "opencode.json").is_ok(), "{value}");
        let unset = text.replace("TOKEN", "UNSET");
        assert!(
            mistakes(&unset, "opencode.json").contains("`UNSET` is not set"),
            "{value}"
        );
    }
    let text = r#"{"mcpServers": {"f": {"command": "x", "env": {"T": "$UNSET"}}}}"#;
    assert!(
        parse(text, ".mcp.json").is_ok(),
        "only Gemini CLI expands it"
    );
    assert!(mistakes(text, ".gemini/settings.json").contains("`UNSET` is not set"));
}

#[test]
fn every_mistake_has_its_line_and_key() {
    let text = r#"{
  "mcpServers": {
    "a": {"command": "x", "env": {"K": "${UNSET}"}},
    "b": {"command": ["x"], "args": "y"},
    "c": {"comand": "x"},
    "d": {"command": "x", "url": "https://example.com"},
    "e": {"type": "ws", "url": "ws://example.com"},
    "f": 3,
    "g": {"command": "x", "disabled": "yes"},
    "h": {"url": "https://example.com", "headersHelper": "x"},
    "i": {"command": "x", "args": ["${input:key}", null]}
  },
  "servers": {"a": {"command": "y"}}
}"#;
    insta::assert_snapshot!(mistakes(text, "mcp.json"), @r"
    mcp.json:3: mcpServers.a.env.K: the environment variable `UNSET` is not set; set it
    mcp.json:4: mcpServers.b.args: expected a list of strings, found a string
    mcp.json:5: mcpServers.c: has neither `command` nor `url`; write one of them
    mcp.json:6: mcpServers.d.url: the server has a `command` as well; remove one of them
    mcp.json:7: mcpServers.e.type: unknown type `ws`; expected `stdio`, `http` or `sse`
    mcp.json:7: mcpServers.e.url: expected a URL that begins with `https://` or `http://`
    mcp.json:8: mcpServers.f: expected an object, found a number
    mcp.json:9: mcpServers.g.disabled: expected `true` or `false`, found a string
    mcp.json:10: mcpServers.h.headersHelper: `headersHelper` is not supported; write the header to `headers`, with its secret in a variable
    mcp.json:11: mcpServers.i.args.0: the input `key` is not declared; add it to `inputs` of the file
    mcp.json:11: mcpServers.i.args.1: expected a string, found null
    mcp.json:13: servers.a: another server is named `a`; rename one
    ");
    let toml = "[mcp_servers.a]\nurl = \"https://example.com\"\nbearer_token = \"x\"\nstartup_timeout_sec = -1\n";
    insta::assert_snapshot!(mistakes(toml, "config.toml"), @r"
    config.toml:3: mcp_servers.a.bearer_token: `bearer_token` is not supported; write the header to `headers`, with its secret in a variable
    config.toml:4: mcp_servers.a.startup_timeout_sec: expected a number of seconds above 0
    ");
}

#[test]
fn unreadable_files_name_the_line() {
    let deep = "[".repeat(1000);
    for (text, path, expected) in [
        (
            "{\n  \"mcpServers\": {\n",
            "mcp.json",
            "mcp.json:2: is not valid JSON: Unterminated object",
        ),
        ("", "mcp.json", "mcp.json:1: is empty; expected an object"),
        (
            "{\"a\": 1,\n\"a\": 2}",
            "mcp.json",
            "mcp.json:2: has the key `a` twice; remove one",
        ),
        (
            "{\"theme\": 1}",
            "settings.json",
            "settings.json:1: has no servers; expected the key `mcpServers`, `servers` or `mcp`",
        ),
        (
            "[]",
            "mcp.json",
            "mcp.json:1: expected an object, found a list",
        ),
        (
            &deep,
            "mcp.json",
            "mcp.json:1: is not valid JSON: Maximum nesting depth exceeded",
        ),
        (
            "a = 1\nb =\n",
            "config.toml",
            "config.toml:2: is not valid TOML: ",
        ),
        (
            "a = 1\n",
            "config.toml",
            "config.toml:1: has no servers; add a table `[mcp_servers.NAME]`",
        ),
    ] {
        let error = mistakes(text, path);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn files_are_read_from_the_disk() {
    let folder = env::temp_dir().join(format!("oxmcp-group-config-{}", std::process::id()));
    fs::create_dir_all(folder.join(".vscode")).unwrap();
    let path = folder.join(".vscode/mcp.json");
    fs::write(
        &path,
        r#"{"servers": {"a": {"command": "${workspaceFolder}/a"}}}"#,
    )
    .unwrap();
    let config = Config::read(&path).unwrap();
    assert_eq!(
        config.servers()[0].command_line(),
        Some("${workspaceFolder}/a")
    );
    fs::write(folder.join(".env"), "A=1\nB=\"2\"\n").unwrap();
    let text = r#"{"servers": {"a": {"command": "a", "envFile": "${workspaceFolder}/.env", "env": {"C": "3"}}}}"#;
    fs::write(&path, text).unwrap();
    let config = Config::read(&path).unwrap();
    let shown = format!("{config:?}");
    assert!(
        shown.contains(r#"env_or_headers: ["A", "B", "C"]"#),
        "{shown}"
    );
    fs::write(folder.join(".vscode/key"), " secret\n").unwrap();
    let with_file = r#"{"mcp": {"a": {"type": "local", "command": ["{file:key}"]}}}"#;
    fs::write(&path, with_file).unwrap();
    let config = Config::read(&path).unwrap();
    let name = oxmcp::transport::Transport::name(&config.servers()[0].transport());
    assert_eq!(name, "secret", "relative to the file, and trimmed");
    fs::write(&path, with_file.replace("key", "none")).unwrap();
    let error = Config::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("mcp.a.command.0: could not read "),
        "{error}"
    );
    fs::write(&path, text.replace(".env", "none.env")).unwrap();
    let error = Config::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("mcp.json:1: servers.a.envFile: could not read"),
        "{error}"
    );
    fs::write(&path, b"{\n\"a\": \"\xff\"}").unwrap();
    let error = Config::read(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("mcp.json:2: is not UTF-8; save the file as UTF-8"),
        "{error}"
    );
    let error = Config::read(folder.join("none.json"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("none.json: could not read the file"),
        "{error}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn variables_that_are_sent_are_known() {
    let sends = |members: &str| {
        let text = format!("[mcp_servers.a]\n{members}");
        let config = parse(&text, "config.toml").unwrap();
        config.servers()[0].sends_variables()
    };
    let url = "url = \"https://example.com\"\n";
    for sent in [
        "bearer_token_env_var = \"TOKEN\"",
        "env_http_headers = { a = \"TOKEN\" }",
        "http_headers = { a = \"$TOKEN\" }",
        "http_headers = { a = \"{env:TOKEN}\" }",
        "http_headers = { a = \"{file:key}\" }",
    ] {
        assert!(sends(&format!("{url}{sent}")), "{sent}");
    }
    for own in ["", "env_http_headers = {}", "http_headers = { a = \"b\" }"] {
        assert!(!sends(&format!("{url}{own}")), "{own}");
    }
    assert!(sends("url = \"https://example.com/$TOKEN\""));
    assert!(!sends("command = \"$TOKEN\""));
}
