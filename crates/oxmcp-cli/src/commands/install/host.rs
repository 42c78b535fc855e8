//! The files of hosts, and the form that each gives to a server.

use std::{env, path::PathBuf};

use clap::ValueEnum;
use jsonc_parser::cst::CstInputValue;

use super::server::{Entry, Program, Reach, Url};
use crate::{
    args::{HostName, Scope},
    failure::{Failure, Result},
    hosts,
};

/// The name of the host, as `oxmcp config list` shows it.
pub(super) fn label(host: HostName) -> String {
    host.to_possible_value()
        .map(|it| it.get_name().to_owned())
        .unwrap_or_default()
}

/// The file of a host.
///
/// # Errors
/// The host has no files of projects.
pub(super) fn path(host: HostName, scope: Scope) -> Result<PathBuf> {
    let name = label(host);
    let path = match scope {
        Scope::User => hosts::file_of_user(&name)
            .ok_or_else(|| Failure::usage("could not find the folder of the user; set `HOME`"))?,
        Scope::Project => hosts::file_of_folder(&name).ok_or_else(|| {
            Failure::usage("Claude Desktop has no files of projects; use `--scope user`")
        })?,
    };
    Ok(match host {
        HostName::Opencode => jsonc_or_json(path),
        _ => path,
    })
}

fn jsonc_or_json(path: PathBuf) -> PathBuf {
    let with_comments = path.with_extension("jsonc");
    if with_comments.is_file() && !path.is_file() {
        return with_comments;
    }
    path
}

/// The members of a server in the file of the host.
///
/// # Errors
/// The host cannot do what the entry needs.
pub(super) fn value(host: HostName, entry: &Entry) -> Result<CstInputValue> {
    let mut members = Members::default();
    match (&entry.reach, host) {
        // It reads no URLs.
        (Reach::Url(url), HostName::ClaudeDesktop) => return through_bridge(url),
        (Reach::Url(url), HostName::Codex) => codex_url(&mut members, url)?,
        (Reach::Url(url), _) => remote(&mut members, host, url)?,
        (Reach::Program(program), _) => local(&mut members, host, program)?,
    }
    if host == HostName::Opencode {
        members
            .0
            .push(("enabled".to_owned(), CstInputValue::Bool(true)));
    }
    Ok(members.value())
}

fn local(members: &mut Members, host: HostName, program: &Program) -> Result<()> {
    let Program {
        words,
        env,
        pass_env,
        cwd,
    } = program;
    let mut env = env.clone();
    if host != HostName::Codex {
        for name in pass_env {
            env.push((name.clone(), reference(host, name)?));
        }
    }
    let (program, args) = words
        .split_first()
        .ok_or_else(|| Failure::usage("the server has no command"))?;
    if host == HostName::Opencode {
        members.text("type", "local");
        members.list("command", words);
        members.pairs("environment", &env);
    } else {
        if matches!(host, HostName::ClaudeCode | HostName::Vscode) {
            members.text("type", "stdio");
        }
        members.text("command", program);
        members.list("args", args);
        members.pairs("env", &env);
    }
    if host == HostName::Codex && !pass_env.is_empty() {
        members.list("env_vars", pass_env);
    }
    if let Some(cwd) = cwd {
        members.text("cwd", cwd);
    }
    Ok(())
}

fn codex_url(members: &mut Members, server: &Url) -> Result<()> {
    if server.is_sse {
        return Err(Failure::usage(
            "Codex does not speak HTTP with SSE; install `oxmcp bridge URL` as the program",
        ));
    }
    members.text("url", &server.url);
    members.pairs("http_headers", &server.headers);
    members.pairs("env_http_headers", &server.env_headers);
    Ok(())
}

fn remote(members: &mut Members, host: HostName, server: &Url) -> Result<()> {
    let Url {
        url,
        headers,
        env_headers,
        is_sse,
    } = server;
    let mut headers = headers.clone();
    for (name, variable) in env_headers {
        headers.push((name.clone(), reference(host, variable)?));
    }
    match host {
        HostName::ClaudeCode | HostName::Vscode => {
            members.text("type", if *is_sse { "sse" } else { "http" });
            members.text("url", url);
        }
        HostName::Gemini if !is_sse => members.text("httpUrl", url),
        HostName::Opencode => {
            members.text("type", "remote");
            members.text("url", url);
        }
        _ => members.text("url", url),
    }
    members.pairs("headers", &headers);
    Ok(())
}

/// The value of a variable of the host's environment.
fn reference(host: HostName, name: &str) -> Result<String> {
    match host {
        HostName::ClaudeCode => Ok(format!("${{{name}}}")),
        HostName::Vscode | HostName::Cursor => Ok(format!("${{env:{name}}}")),
        HostName::Gemini => Ok(format!("${name}")),
        HostName::Opencode => Ok(format!("{{env:{name}}}")),
        HostName::ClaudeDesktop | HostName::Codex => Err(Failure::usage(format!(
            "{} reads no variables in its file; write the value with `--env {name}=value`",
            label(host)
        ))),
    }
}

/// A server at a URL for a host that starts programs only. Values of headers are variables, because arguments can be seen by others.
fn through_bridge(server: &Url) -> Result<CstInputValue> {
    if let Some((_, variable)) = server.env_headers.first() {
        reference(HostName::ClaudeDesktop, variable)?;
    }
    let program = env::current_exe()
        .map_err(|error| Failure::usage(format!("could not find the path of `oxmcp`: {error}")))?;
    let mut args = vec!["bridge".to_owned(), server.url.clone()];
    let mut env = Vec::new();
    for (index, (name, value)) in server.headers.iter().enumerate() {
        let variable = format!("OXMCP_HEADER_{}", index + 1);
        args.extend(["--header-env".to_owned(), format!("{name}={variable}")]);
        env.push((variable, value.clone()));
    }
    let mut members = Members::default();
    members.text("command", &program.display().to_string());
    members.list("args", &args);
    members.pairs("env", &env);
    Ok(members.value())
}

/// The members of an object, in order.
#[derive(Default)]
struct Members(Vec<(String, CstInputValue)>);

impl Members {
    fn text(&mut self, name: &str, value: &str) {
        self.0
            .push((name.to_owned(), CstInputValue::String(value.to_owned())));
    }

    fn list(&mut self, name: &str, values: &[String]) {
        let values = values.iter().map(|it| CstInputValue::String(it.clone()));
        self.0
            .push((name.to_owned(), CstInputValue::Array(values.collect())));
    }

    /// An object of strings, unless it is empty.
    fn pairs(&mut self, name: &str, pairs: &[(String, String)]) {
        if pairs.is_empty() {
            return;
        }
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.clone(), CstInputValue::String(value.clone())));
        self.0
            .push((name.to_owned(), CstInputValue::Object(pairs.collect())));
    }

    fn value(self) -> CstInputValue {
        CstInputValue::Object(self.0)
    }
}
