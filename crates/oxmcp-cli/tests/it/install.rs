//! Changes of the configuration files of hosts.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{command, folder, notes, parts, run_at};

const HOSTS: [(&str, &str); 7] = [
    ("claude-desktop", "Claude/claude_desktop_config.json"),
    ("claude-code", ".claude.json"),
    ("vscode", "Code/User/mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
];

fn read(home: &Path, path: &str) -> String {
    fs::read_to_string(home.join(path)).unwrap()
}

/// Installs a server without a question.
fn install(home: &Path, host: &str, more: &[&str]) -> (String, String, i32) {
    let args = ["install", "--yes", "--host", host];
    run_at(home, &[&args, more].concat())
}

#[test]
fn installed_servers_are_found_and_removed() {
    let home = folder("install");
    let notes = notes();
    for (host, path) in HOSTS {
        let server = [
            "--name",
            "tea",
            "--env",
            "LEVEL=a \"b\"",
            "--",
            &notes,
            "ok",
        ];
        let (out, err, code) = install(&home, host, &server);
        assert_eq!(code, 0, "{host}: {err}");
        assert!(
            out.contains(&format!("+++ {}", home.join(path).display())),
            "{out}"
        );
        // The readers of the group, which are those of the hosts, find the server.
        let target = format!("{}#tea", home.join(path).display());
        let (out, err, code) = run_at(&home, &["read", &target, "notes://today"]);
        assert_eq!((out.as_str(), code), ("Buy tea.\n", 0), "{host}: {err}");
        let (_, err, code) = install(&home, host, &server);
        assert!(
            err.contains("have it already") && code == 0,
            "{host}: {err}"
        );
        let args = ["uninstall", "--yes", "--host", host, "tea"];
        let (_, err, code) = run_at(&home, &args);
        assert_eq!(code, 0, "{host}: {err}");
        assert!(!read(&home, path).contains(&notes), "{host}");
        let (_, err, code) = run_at(&home, &args);
        assert!(
            err.contains("no server \"tea\"") && code == 2,
            "{host}: {err}"
        );
    }
}

#[test]
fn files_in_other_places_are_found_again() {
    let home = folder("install-places");
    let opencode = home.join(".config/opencode/opencode.jsonc");
    fs::create_dir_all(opencode.parent().unwrap()).unwrap();
    fs::write(&opencode, "{} // mine\n").unwrap();
    let codex = home.join("codex");
    let run = |args: &[&str]| {
        parts(
            command(&home, args)
                .env("CODEX_HOME", &codex)
                .output()
                .unwrap(),
        )
    };
    for host in ["codex", "opencode"] {
        let (_, err, code) = run(&[
            "install",
            "--yes",
            "--host",
            host,
            "https://one.example/mcp",
        ]);
        assert_eq!(code, 0, "{err}");
    }
    let (out, err, _) = run(&["config", "list"]);
    for path in [codex.join("config.toml"), opencode] {
        assert!(out.contains(&path.display().to_string()), "{out}{err}");
    }
}

#[test]
fn servers_at_urls_have_the_form_of_each_host() {
    let home = folder("install-url");
    let mut all = String::new();
    for (host, path) in HOSTS {
        let server = ["https://mcp.example.com/mcp", "--header", "X-Team: tea"];
        let (_, err, code) = install(&home, host, &server);
        assert_eq!(code, 0, "{host}: {err}");
        let text = read(&home, path).replace(crate::support::OXMCP, "/bin/oxmcp");
        let words: Vec<&str> = text.split_whitespace().collect();
        all.push_str(&format!("{host}: {}\n", words.join(" ")));
    }
    insta::assert_snapshot!(all, @r#"
    claude-desktop: { "mcpServers": { "example": { "command": "/bin/oxmcp", "args": ["bridge", "https://mcp.example.com/mcp", "--header-env", "X-Team=OXMCP_HEADER_1"], "env": { "OXMCP_HEADER_1": "tea" } } } }
    claude-code: { "mcpServers": { "example": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "X-Team": "tea" } } } }
    vscode: { "servers": { "example": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "X-Team": "tea" } } } }
    cursor: { "mcpServers": { "example": { "url": "https://mcp.example.com/mcp", "headers": { "X-Team": "tea" } } } }
    codex: [mcp_servers.example] url = "https://mcp.example.com/mcp" http_headers = { X-Team = "tea" }
    gemini: { "mcpServers": { "example": { "httpUrl": "https://mcp.example.com/mcp", "headers": { "X-Team": "tea" } } } }
    opencode: { "mcp": { "example": { "type": "remote", "url": "https://mcp.example.com/mcp", "headers": { "X-Team": "tea" }, "enabled": true } } }
    "#);
}

#[test]
fn nothing_is_changed_without_a_confirmation() {
    let home = folder("install-asks");
    let before = "// mine\n{ \"servers\": {} }\n";
    fs::create_dir(home.join(".vscode")).unwrap();
    let path = home.join(".vscode/mcp.json");
    fs::write(&path, before).unwrap();
    let install = [
        "install",
        "--host",
        "vscode",
        "--scope",
        "project",
        "https://example.com/mcp",
    ];
    let (out, err, code) = run_at(&home, &install);
    assert!(
        err.contains("pass `--yes`") && out.contains("+"),
        "{out}{err}"
    );
    assert_eq!(code, 6);
    let mut dry = install.to_vec();
    dry.push("--dry-run");
    let (out, err, code) = run_at(&home, &dry);
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    // One file that cannot be changed keeps the others as they are.
    fs::write(home.join(".mcp.json"), "{ broken").unwrap();
    let mut both = install.to_vec();
    both.extend(["--host", "claude-code", "--yes"]);
    let (_, err, code) = run_at(&home, &both);
    assert!(
        err.contains(".mcp.json: could not read the file, so it is not changed"),
        "{err}"
    );
    assert_eq!(code, 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn file_keeps_its_link_mode_and_backup() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let home = folder("install-mode");
    let before = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"a\", \"env\": {\"API_KEY\": \"hunter2\"}} // mine\r\n\t}\r\n}\r\n";
    fs::create_dir(home.join("dotfiles")).unwrap();
    let real = home.join("dotfiles/claude.json");
    fs::write(&real, before).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, home.join(".claude.json")).unwrap();
    let (out, err, code) = install(&home, "claude-code", &["https://example.com/mcp"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        !out.contains("hunter2") && out.contains("[redacted]"),
        "{out}"
    );
    assert!(
        fs::symlink_metadata(home.join(".claude.json"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    let after = fs::read_to_string(&real).unwrap();
    assert!(after.starts_with("\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"a\", \"env\": {\"API_KEY\": \"hunter2\"}}"), "{after}");
    assert!(
        after.contains("// mine\r\n")
            && after.contains("\r\n\t\t\"example\": {\r\n\t\t\t\"type\": \"http\""),
        "{after}"
    );
    let backup = fs::read_to_string(home.join("dotfiles/claude.json.oxmcp-backup")).unwrap();
    assert_eq!(backup, before);
    let (_, err, code) = run_at(
        &home,
        &["uninstall", "--yes", "--host", "claude-code", "example"],
    );
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(&real).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn planted_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let home = folder("install-links");
    let outside = folder("install-links-outside");
    let victim = outside.join("victim");
    fs::write(&victim, "mine").unwrap();
    fs::write(home.join(".mcp.json"), "{}\n").unwrap();
    symlink(&victim, home.join(".mcp.json.oxmcp-backup")).unwrap();
    let install = |host: &str, url: &str| install(&home, host, &["--scope", "project", url]);
    let (_, err, code) = install("claude-code", "https://one.example/mcp");
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(read(&home, ".mcp.json.oxmcp-backup"), "{}\n");
    let (_, err, code) = install("claude-code", "https://two.example/mcp");
    assert_eq!(code, 0, "{err}");
    assert_eq!(
        read(&home, ".mcp.json.oxmcp-backup"),
        "{}\n",
        "the first backup stays"
    );

    // Hosts that share a file change it one after the other.
    fs::write(home.join("opencode.json"), "{}\n").unwrap();
    fs::create_dir(home.join(".cursor")).unwrap();
    symlink("../opencode.json", home.join(".cursor/mcp.json")).unwrap();
    let args = [
        "install",
        "--yes",
        "--scope",
        "project",
        "--host=cursor",
        "--host=opencode",
        "--host=cursor",
        "https://one.example/mcp",
    ];
    let (_, err, code) = run_at(&home, &args);
    assert_eq!(code, 0, "{err}");
    let text = read(&home, "opencode.json");
    assert!(
        text.contains("\"mcpServers\"") && text.contains("\"mcp\""),
        "{text}"
    );
    fs::remove_file(home.join("opencode.json")).unwrap();
    fs::remove_dir_all(home.join(".cursor")).unwrap();

    symlink(&outside, home.join(".cursor")).unwrap();
    fs::create_dir(home.join(".vscode")).unwrap();
    symlink(&victim, home.join(".vscode/mcp.json")).unwrap();
    fs::create_dir(home.join(".gemini")).unwrap();
    symlink("nowhere", home.join(".gemini/settings.json")).unwrap();
    for (host, expected) in [
        ("cursor", "out of the current folder"),
        ("vscode", "out of the current folder"),
        ("gemini", "a link to a file that does not exist"),
    ] {
        let (_, err, code) = install(host, "https://example.com/mcp");
        assert!(err.contains(expected), "{host}: {err}");
        assert_eq!(code, 2, "{host}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    fs::create_dir(home.join("server.json")).unwrap();
    fs::create_dir(home.join("opencode.json")).unwrap();
    let (_, err, code) = install("opencode", "https://example.com/mcp");
    assert!(err.contains("not a regular file"), "{err}");
    assert_eq!(code, 2);
}

#[cfg(unix)]
#[test]
fn hosts_that_share_an_entry_change_it_once() {
    use std::os::unix::fs::symlink;

    let home = folder("install-shared");
    fs::write(home.join(".mcp.json"), "{}\n").unwrap();
    for (folder, name) in [(".cursor", "mcp.json"), (".gemini", "settings.json")] {
        fs::create_dir(home.join(folder)).unwrap();
        symlink("../.mcp.json", home.join(folder).join(name)).unwrap();
    }
    let notes = notes();
    let change = |command: &str, hosts: [&str; 2], more: &[&str]| {
        let [first, second] = hosts.map(|it| format!("--host={it}"));
        let args = [command, "--yes", "--scope=project", &first, &second];
        run_at(&home, &[&args, more].concat())
    };
    let server = ["--name=tea", "--", &notes];
    let (_, err, code) = change("install", ["cursor", "gemini"], &server);
    assert_eq!(code, 0, "{err}");
    let installed = read(&home, ".mcp.json");
    assert_eq!(installed.matches(&notes).count(), 1, "{installed}");
    let (_, err, code) = change("uninstall", ["cursor", "gemini"], &["tea"]);
    assert_eq!(code, 0, "{err}");
    let removed = read(&home, ".mcp.json");
    assert!(!removed.contains("tea"), "{removed}");
    let (_, err, code) = change("uninstall", ["cursor", "gemini"], &["tea"]);
    assert!(err.contains("no server \"tea\"") && code == 2, "{err}");

    // Claude Code's form has a type. Neither host gets that of the other.
    for more in [&[][..], &["--replace"]] {
        let more = [more, &server].concat();
        let (_, err, code) = change("install", ["cursor", "claude-code"], &more);
        assert!(err.contains("claude-code needs another form"), "{err}");
        assert_eq!((read(&home, ".mcp.json"), code), (removed.clone(), 2));
    }

    // Hosts can share a folder in which there is no file yet.
    fs::remove_dir_all(home.join(".cursor")).unwrap();
    fs::create_dir(home.join(".vscode")).unwrap();
    symlink(".vscode", home.join(".cursor")).unwrap();
    let (_, err, code) = change("install", ["vscode", "cursor"], &server);
    assert_eq!(code, 0, "{err}");
    let file: Value = serde_json::from_str(&read(&home, ".vscode/mcp.json")).unwrap();
    assert_eq!(file["servers"]["tea"]["command"], notes);
    assert_eq!(file["mcpServers"]["tea"]["command"], notes);
}

#[cfg(unix)]
#[test]
fn programs_keep_their_links() {
    let home = folder("install-program");
    std::os::unix::fs::symlink("/bin/sh", home.join("tool")).unwrap();
    let (_, err, code) = install(&home, "cursor", &["--", "./tool", "serve"]);
    assert_eq!(code, 0, "{err}");
    let file: Value = serde_json::from_str(&read(&home, ".cursor/mcp.json")).unwrap();
    let command = file["mcpServers"]["tool"]["command"].as_str().unwrap();
    assert_eq!(Path::new(command), home.join("tool"));
}

#[test]
fn diffs_show_no_secrets() {
    let home = folder("install-secrets");
    fs::create_dir(home.join(".codex")).unwrap();
    let path = home.join(".codex/config.toml");
    let before = "[mcp_servers.a]\r\ncommand = \"a\"\r\nargs = [\"--api-key\", \"hunter2\"]\r\nenv = { KEY_TOKEN = 'hunter2' }\r\n";
    fs::write(&path, before).unwrap();
    let server = ["--header", "X-Team: hunter2", "https://example.com/mcp"];
    let (out, err, code) = install(&home, "codex", &server);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains("hunter2"), "{out}");
    assert_eq!(out.matches("[redacted]").count(), 3, "{out}");
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(before), "{after}");
    assert!(after.contains("X-Team = \"hunter2\" }\r\n"), "{after}");
}

#[test]
fn servers_move_between_hosts() {
    let home = folder("install-move");
    let config = json!({"mcpServers": {
        "tea": {"command": "npx", "args": ["-y", "tea"], "env": {"A": "1"}},
        "variable": {"command": "npx", "args": ["${HOME}"]},
    }});
    fs::create_dir(home.join(".cursor")).unwrap();
    fs::write(home.join(".cursor/mcp.json"), config.to_string()).unwrap();
    let (_, err, code) = install(&home, "codex", &["cursor:tea"]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(read(&home, ".codex/config.toml"), @r#"
    [mcp_servers.tea]
    command = "npx"
    args = ["-y", "tea"]
    env = { A = "1" }
    "#);
    let (_, err, code) = install(&home, "codex", &["cursor:variable"]);
    assert!(err.contains("uses variables of its host"), "{err}");
    assert_eq!(code, 2);
}

#[test]
fn described_servers_are_installed() {
    let home = folder("install-described");
    let server = json!({
        "name": "io.github.me/tea",
        "packages": [
            {"registryType": "mcpb", "identifier": "https://x/tea.mcpb", "transport": {"type": "stdio"}},
            {"registryType": "npm", "identifier": "@me/tea", "version": "1.2.3", "transport": {"type": "stdio"},
             "packageArguments": [{"type": "named", "name": "--level", "value": "3"}, {"type": "positional", "valueHint": "x", "value": "y"}],
             "environmentVariables": [{"name": "TOKEN", "isRequired": true, "isSecret": true}, {"name": "MODE", "default": "fast"}]},
        ],
    });
    fs::write(home.join("server.json"), server.to_string()).unwrap();
    let (_, err, code) = install(&home, "claude-code", &["server.json"]);
    assert_eq!(code, 0, "{err}");
    let file: Value = serde_json::from_str(&read(&home, ".claude.json")).unwrap();
    assert_eq!(
        file["mcpServers"]["tea"],
        json!({
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "@me/tea@1.2.3", "--level", "3", "y"],
            "env": {"MODE": "fast", "TOKEN": "${TOKEN}"},
        })
    );
    let (_, err, code) = install(&home, "claude-desktop", &["server.json"]);
    assert!(err.contains("--env TOKEN=value"), "{err}");
    assert_eq!(code, 2);
}
