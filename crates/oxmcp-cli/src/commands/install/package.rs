//! Servers that are described by a `server.json` of the registry.

use std::path::Path;

use serde_json::Value;

use super::{
    file,
    server::{Entry, Program, Reach, Url},
};
use crate::failure::{Failure, Result};

/// Reads the first package that can be started, or the first remote server.
///
/// # Errors
/// The file cannot be read, or has neither.
pub(super) fn read(path: &str) -> Result<Entry> {
    let failed = |why: String| Failure::usage(format!("could not use {path}: {why}"));
    let text = file::text(Path::new(path)).map_err(|error| failed(error.to_string()))?;
    let text = text.ok_or_else(|| failed("it does not exist".to_owned()))?;
    let file: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let name = text_of(&file, "name").ok_or_else(|| {
        failed("it has no `name`; expected a `server.json` of the registry".to_owned())
    })?;
    let name = name.rsplit('/').next().unwrap_or(name).replace('.', "-");
    let packages = file.get("packages").and_then(Value::as_array);
    for package in packages.into_iter().flatten() {
        if let Some(words) = command(package) {
            let (env, pass_env) = variables(package);
            return Ok(Entry {
                name,
                reach: Reach::Program(Program {
                    words,
                    env,
                    pass_env,
                    cwd: None,
                }),
            });
        }
    }
    let remotes = file.get("remotes").and_then(Value::as_array);
    for remote in remotes.into_iter().flatten() {
        if let Some(url) = text_of(remote, "url").filter(|it| !it.contains('{')) {
            let is_sse = text_of(remote, "type") == Some("sse");
            let reach = Reach::Url(Url {
                url: url.to_owned(),
                is_sse,
                ..Url::default()
            });
            return Ok(Entry { name, reach });
        }
    }
    Err(failed(
        "it has no package that a host can start, and no URL".to_owned(),
    ))
}

fn text_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// The command line of a package that speaks over stdio.
fn command(package: &Value) -> Option<Vec<String>> {
    if package
        .pointer("/transport/type")
        .is_some_and(|it| it != "stdio")
    {
        return None;
    }
    let id = text_of(package, "identifier")?;
    let version = text_of(package, "version");
    let versioned = |separator: &str| match version {
        Some(version) => format!("{id}{separator}{version}"),
        None => id.to_owned(),
    };
    let runtime = arguments(package, "runtimeArguments");
    let (launcher, defaults, target): (&str, &[&str], String) =
        match text_of(package, "registryType")? {
            "npm" => ("npx", &["-y"], versioned("@")),
            "pypi" => ("uvx", &[], versioned("==")),
            "oci" => ("docker", &["run", "-i", "--rm"], id.to_owned()),
            "nuget" => ("dnx", &["--yes"], versioned("@")),
            // A program of this name is there after `cargo install`.
            "cargo" => ("", &[], id.to_owned()),
            _ => return None,
        };
    let mut words = Vec::new();
    if !launcher.is_empty() {
        words.push(
            text_of(package, "runtimeHint")
                .unwrap_or(launcher)
                .to_owned(),
        );
        words.extend(
            defaults
                .iter()
                .filter(|it| !runtime.iter().any(|own| own == *it))
                .map(|it| (*it).to_owned()),
        );
        words.extend(runtime);
    }
    words.push(target);
    words.extend(arguments(package, "packageArguments"));
    Some(words)
}

/// The arguments with fixed values, or with defaults.
fn arguments(package: &Value, name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for it in package
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let value = text_of(it, "value").or_else(|| text_of(it, "default"));
        match (text_of(it, "type"), text_of(it, "name"), value) {
            (Some("named"), Some(name), Some(value)) => {
                words.extend([name.to_owned(), value.to_owned()]);
            }
            (Some("named"), Some(name), None) if it.get("isRequired").is_none() => {
                words.push(name.to_owned());
            }
            (_, _, Some(value)) => words.push(value.to_owned()),
            _ => {}
        }
    }
    words
}

/// The variables with values, and those that the host passes on.
fn variables(package: &Value) -> (Vec<(String, String)>, Vec<String>) {
    let (mut env, mut pass_env) = (Vec::new(), Vec::new());
    for it in package
        .get("environmentVariables")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(name) = text_of(it, "name") else {
            continue;
        };
        match text_of(it, "value").or_else(|| text_of(it, "default")) {
            Some(value) => env.push((name.to_owned(), value.to_owned())),
            None if it.get("isRequired").is_some_and(|it| it == true) => {
                pass_env.push(name.to_owned());
            }
            None => {}
        }
    }
    (env, pass_env)
}
