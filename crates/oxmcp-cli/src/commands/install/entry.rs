//! The servers of the command line of `oxmcp install`.

use std::path::Path;

use serde_json::Value;

use super::{
    file, package,
    server::{Entry, Program, Reach, Url},
};
use crate::{
    args::{Install, Target},
    failure::{Failure, Result},
    hosts,
    target::is_url,
    terminal::Terminal,
};

/// The length of the longest name of a server.
const MAX_NAME: usize = 64;

/// The servers of the command line.
///
/// # Errors
/// A target is none, or an option does not fit it.
pub(super) fn entries(args: &Install, terminal: &Terminal) -> Result<Vec<Entry>> {
    let Target { words, program } = &args.target;
    let mut entries = Vec::new();
    if let Some(name) = program.first() {
        if let Some(word) = words.first() {
            return Err(Failure::usage(format!(
                "unexpected {word:?}; a program follows `--`"
            )));
        }
        let mut program = program.clone();
        if let (true, Some(first)) = (is_path(name), program.first_mut()) {
            // A host starts programs in another folder.
            *first = absolute(name)?;
        }
        let name = name_of_program(&program);
        entries.push(Entry {
            name,
            reach: Reach::program(program),
        });
    }
    for word in words {
        entries.push(entry(word, terminal)?);
    }
    if entries.is_empty() {
        return Err(Failure::usage(
            "no server is named; give a URL, the name of a configured server, a `server.json`, or `-- program`",
        ));
    }
    if let Some(name) = &args.name {
        let [entry] = entries.as_mut_slice() else {
            return Err(Failure::usage("`--name` is for one server"));
        };
        entry.name.clone_from(name);
    }
    for entry in &mut entries {
        add_options(entry, args)?;
        if !is_name(&entry.name) {
            return Err(Failure::usage(format!(
                "{:?} cannot be the name of a server, because hosts make the names of tools from it; choose one of A-Z, a-z, 0-9, '_' and '-' with `--name`",
                entry.name
            )));
        }
    }
    Ok(entries)
}

fn entry(word: &str, terminal: &Terminal) -> Result<Entry> {
    if is_url(word) {
        return Ok(Entry {
            name: name_of_url(word),
            reach: Reach::url(word),
        });
    }
    let is_json = Path::new(word).extension().is_some_and(|it| it == "json");
    if is_json && Path::new(word).is_file() {
        return package::read(word);
    }
    let found = hosts::find(word, terminal)?;
    let name = found.config.name().to_owned();
    let failed = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("could not read {}: {why}", found.path.display()))
    };
    let text = file::text(&found.path).map_err(|error| failed(&error))?;
    let text = text.ok_or_else(|| failed(&"it does not exist"))?;
    let file = hosts::parse(&text, &found.path)?;
    let reach = configured(&file, &name)?;
    Ok(Entry { name, reach })
}

/// A server of the file of another host.
fn configured(file: &Value, name: &str) -> Result<Reach> {
    const PLACES: [&str; 5] = [
        "/mcpServers",
        "/servers",
        "/mcp_servers",
        "/mcp/servers",
        "/mcp",
    ];
    let mut places = PLACES.iter().filter_map(|it| file.pointer(it));
    let server = places.find_map(|it| it.get(name)).ok_or_else(|| {
        Failure::usage(format!("could not read the server {name:?}: it is of a project of another folder; install it with `-- program`"))
    })?;
    if has_variables(server) {
        return Err(Failure::usage(format!(
            "the server {name:?} uses variables of its host, which other hosts write differently; install it with `-- program`, `--env` and `--pass-env`"
        )));
    }
    let texts = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        }
    };
    let pairs = |names: [&str; 2]| -> Vec<(String, String)> {
        let members = names.iter().find_map(|it| server.get(*it)?.as_object());
        let members = members.into_iter().flatten();
        members
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    let url = ["httpUrl", "url", "serverUrl"]
        .iter()
        .find_map(|it| server.get(*it)?.as_str());
    if let Some(url) = url {
        return Ok(Reach::Url(Url {
            url: url.to_owned(),
            headers: pairs(["headers", "http_headers"]),
            env_headers: Vec::new(),
            is_sse: server.get("type").is_some_and(|it| it == "sse"),
        }));
    }
    let words = [texts(server.get("command")), texts(server.get("args"))].concat();
    Ok(Reach::Program(Program {
        words,
        env: pairs(["env", "environment"]),
        pass_env: texts(server.get("env_vars")),
        cwd: server.get("cwd").and_then(Value::as_str).map(str::to_owned),
    }))
}

fn has_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => ["${", "{env:", "{file:"].iter().any(|it| text.contains(it)),
        Value::Array(items) => items.iter().any(has_variables),
        Value::Object(members) => members.values().any(has_variables),
        _ => false,
    }
}

/// Adds the options of the command line.
fn add_options(entry: &mut Entry, args: &Install) -> Result<()> {
    let has_env = !args.env.is_empty() || !args.pass_env.is_empty();
    let has_headers = !args.header.is_empty() || !args.header_env.is_empty();
    match &mut entry.reach {
        Reach::Program(Program { env, pass_env, .. }) => {
            if has_headers {
                return Err(Failure::usage(
                    "headers are for servers at a URL; this one is a program",
                ));
            }
            for it in &args.env {
                env.retain(|(name, _)| *name != it.name);
                env.push((it.name.clone(), it.value.clone()));
            }
            for name in &args.pass_env {
                env.retain(|(it, _)| it != name);
                pass_env.push(name.clone());
            }
        }
        Reach::Url(Url {
            headers,
            env_headers,
            ..
        }) => {
            if has_env {
                return Err(Failure::usage(
                    "`--env` and `--pass-env` are for programs; `--header` is for a server at a URL",
                ));
            }
            headers.extend(
                args.header
                    .iter()
                    .map(|it| (it.name.clone(), it.value.expose().to_owned())),
            );
            env_headers.extend(
                args.header_env
                    .iter()
                    .map(|it| (it.name.clone(), it.value.clone())),
            );
        }
    }
    Ok(())
}

fn is_path(program: &str) -> bool {
    Path::new(program).components().count() > 1
}

fn absolute(program: &str) -> Result<String> {
    let failed = |error| Failure::usage(format!("could not find the program {program}: {error}"));
    let path = Path::new(program);
    // A link stays one: the programs of virtual environments and of rustup find out from it which they are.
    path.metadata().map_err(failed)?;
    let path = std::path::absolute(path).map_err(failed)?;
    Ok(path.display().to_string())
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

/// Whether every host accepts the character in a name.
fn is_plain(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '-' | '_')
}

/// The name of the package that a launcher starts, or of the program.
fn name_of_program(words: &[String]) -> String {
    const LAUNCHERS: [&str; 9] = [
        "npx", "bunx", "pnpx", "uvx", "pipx", "uv", "node", "python", "python3",
    ];
    const WORDS: [&str; 2] = ["run", "tool"];
    let stem = |word: &String| {
        let word = word.rsplit(['/', '\\']).next().unwrap_or_default();
        let word = word.split('@').next().unwrap_or_default();
        word.split("==").next().unwrap_or_default().to_owned()
    };
    let program = words.first().map(stem).unwrap_or_default();
    let program = program.trim_end_matches(".exe").trim_end_matches(".cmd");
    let package = words
        .iter()
        .skip(1)
        .find(|it| !it.starts_with('-') && !WORDS.contains(&it.as_str()));
    let name = match package {
        Some(package) if LAUNCHERS.contains(&program) => stem(package),
        _ => program.to_owned(),
    };
    let name = name
        .rsplit_once('.')
        .map_or(name.as_str(), |(stem, _)| stem);
    plain(name)
}

/// The first part of the host that is no common name.
fn name_of_url(url: &str) -> String {
    let host = url.split("://").nth(1).unwrap_or_default();
    let host = host.split(['/', ':', '?']).next().unwrap_or_default();
    let mut parts = host
        .split('.')
        .filter(|it| !matches!(*it, "mcp" | "www" | "api" | "server"));
    plain(parts.next().unwrap_or(host))
}

fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|it| if is_plain(it) { it } else { '-' })
        .collect();
    plain.trim_matches('-').chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_packages_and_hosts() {
        for (line, expected) in [
            (
                "npx -y @modelcontextprotocol/server-everything@1.0.0",
                "server-everything",
            ),
            ("uvx mcp-server-git==1.2 --repository .", "mcp-server-git"),
            ("uv run --with x server.py", "x"),
            ("/usr/bin/weather --port 1", "weather"),
            ("node ./dist/index.js", "index"),
            ("docker run -i img", "docker"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of_program(&words), expected, "{line}");
        }
        for (url, expected) in [
            ("https://mcp.example.com/mcp", "example"),
            ("https://weather.dev", "weather"),
            ("http://127.0.0.1:8080/mcp", "127"),
        ] {
            assert_eq!(name_of_url(url), expected, "{url}");
        }
    }
}
