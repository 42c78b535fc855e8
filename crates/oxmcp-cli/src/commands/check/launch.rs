//! The reasons for which a server does not start or cannot be reached, found in its error and its output.

use super::report::{Found, Report, Severity};
use crate::{
    commands::transcript::secret_in,
    failure::{Failure, Reason},
    target::Server,
};

/// The time after which some hosts give up: the shortest default of a known host, Codex, is 10 s.
const SLOW_MILLIS: u128 = 10_000;
/// The time from which on a start is worth a note.
const NOTABLE_MILLIS: u128 = 3_000;

/// The texts in the output of a program that tell why it ended, with the rule and the remedy. The first that is found counts.
const CAUSES: &[(&[&str], &str, &str)] = &[
    (
        &[
            "Cannot find module",
            "MODULE_NOT_FOUND",
            "ModuleNotFoundError",
            "No module named",
            "can't open file",
            "Could not find or load main class",
            "Unable to access jarfile",
        ],
        "wrong-path",
        "check the path of the script, and install its dependencies",
    ),
    (
        &[
            "E404",
            "404 Not Found - GET",
            "not found in the package registry",
            "No matching distribution",
            "could not determine executable to run",
        ],
        "no-package",
        "check the name and the version of the package",
    ),
    (
        &[
            "ENOTFOUND",
            "ETIMEDOUT",
            "EAI_AGAIN",
            "Could not resolve host",
        ],
        "no-network",
        "the launcher downloads the server: check the network and the proxy, or install the server",
    ),
    (
        &[
            "EADDRINUSE",
            "Address already in use",
            "address already in use",
        ],
        "port-in-use",
        "end the other process, or let the server use another port",
    ),
    (
        &["EACCES", "EPERM", "Permission denied", "permission denied"],
        "permission",
        "allow this user to read and execute the files that the output names",
    ),
    (
        &["not executable", "Exec format error"],
        "permission",
        "use a program for this machine, and make it executable",
    ),
    (
        &[
            "ENOENT",
            "No such file or directory",
            "does not exist",
            "command not found",
        ],
        "wrong-path",
        "check the paths in the arguments",
    ),
    (
        &[
            "Unsupported engine",
            "requires Python",
            "SyntaxError",
            "ERR_REQUIRE_ESM",
        ],
        "runtime",
        "use the version of the runtime that the server needs",
    ),
    (
        &["Usage:", "usage:", "USAGE"],
        "arguments",
        "pass the arguments that the server needs",
    ),
    (
        &[
            "panicked at",
            "Traceback (most recent call last)",
            "Segmentation fault",
            "SIGSEGV",
            "SIGABRT",
        ],
        "crash",
        "the server crashed while it started: report it to its author, with this output",
    ),
];

/// Reports why the server could not be connected to. Returns the reason for the exit code.
pub(super) fn explain(report: &mut Report, failure: &Failure, server: &Server) -> Reason {
    let message = failure.to_string();
    let (id, remedy) = if server.is_program() {
        program(&message, failure.reason())
    } else {
        url(&message, failure.reason(), failure.http_status())
    };
    report.findings.push(Found {
        id: id.to_owned(),
        severity: Severity::Error,
        place: "server".to_owned(),
        name: None,
        message,
        remedy,
    });
    match id {
        "not-a-server" => Reason::Protocol,
        _ => failure.reason(),
    }
}

/// The rule and the remedy for a program.
fn program(message: &str, reason: Reason) -> (&'static str, String) {
    if message.contains("cannot start the server") {
        return ("not-started", String::new());
    }
    if message.contains("it is not an MCP server") {
        return ("not-a-server", String::new());
    }
    if message.contains("standard output must contain only messages") {
        let remedy = "print logs to standard error: standard output is for messages only";
        return ("stdout", remedy.to_owned());
    }
    // The names of variables are in the output of the program, which follows the first line.
    let output = message.split_once('\n').map_or("", |(_, output)| output);
    if let Some(name) = output.lines().find_map(missing_variable) {
        let remedy = format!(
            "set the variable: `--env {name}=…` here, `env` in the configuration of a host"
        );
        return ("environment", remedy);
    }
    for (texts, id, remedy) in CAUSES {
        if texts.iter().any(|it| message.contains(it)) {
            return (id, (*remedy).to_owned());
        }
    }
    match reason {
        Reason::Timeout => (
            "no-answer",
            "start the program by hand: it may wait for input, or speak no MCP over stdio; if it only starts slowly, raise `--timeout`"
                .to_owned(),
        ),
        Reason::Protocol | Reason::Refused => (
            "protocol",
            "the response to the first request violates the specification: update the SDK of the server".to_owned(),
        ),
        Reason::Authorization => ("login", "log in with the server's own command".to_owned()),
        _ => (
            "exited",
            "start the program by hand, and look at its output: a server reads requests until its input ends".to_owned(),
        ),
    }
}

/// The rule and the remedy for a server at a URL.
fn url(message: &str, reason: Reason, status: Option<u16>) -> (&'static str, String) {
    let (id, remedy) = match (reason, status) {
        (Reason::Authorization, _) => (
            "login",
            "log in with `oxmcp login URL`, or pass a token with `--header`",
        ),
        (_, Some(403)) => (
            "forbidden",
            "the server refused the request: check the token, the `Host` and the `Origin` that it accepts",
        ),
        (_, Some(404 | 405)) => (
            "wrong-url",
            "check the path of the URL: many servers are at `/mcp`, old ones at `/sse`",
        ),
        (_, Some(500..)) => (
            "server-error",
            "look at the log of the server, or of the proxy in front of it",
        ),
        (Reason::Timeout, _) => (
            "no-answer",
            "check that the URL is that of an MCP server, and raise `--timeout` if it only answers slowly",
        ),
        (Reason::Unreachable, _) if message.contains("certificate") => {
            ("certificate", "use a certificate that this machine trusts")
        }
        (Reason::Unreachable, _) => ("unreachable", "check the host, the port and the network"),
        _ => (
            "protocol",
            "check that the URL is that of an MCP server, and not of a web page",
        ),
    };
    (id, remedy.to_owned())
}

/// The environment variable that a line of output reports as missing.
fn missing_variable(line: &str) -> Option<&str> {
    const SIGNS: [&str; 12] = [
        "environment variable",
        "env var",
        "not set",
        "must be set",
        "must set",
        "is required",
        "required environment",
        "missing",
        "not defined",
        "undefined",
        "not provided",
        "keyerror",
    ];
    let lower = line.to_lowercase();
    if !SIGNS.iter().any(|it| lower.contains(it)) {
        return None;
    }
    let is_variable = |it: &&str| {
        let is_plain = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
        it.len() >= 4
            && !it.starts_with("ERR_")
            && **it != *"MODULE_NOT_FOUND"
            && it.starts_with(|it: char| it.is_ascii_uppercase())
            && it.chars().all(is_plain)
    };
    let words = || line.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let with_underscore = words().filter(is_variable).find(|it| it.contains('_'));
    with_underscore.or_else(|| {
        lower
            .contains("environment")
            .then(|| words().find(is_variable))
            .flatten()
    })
}

/// Reports a start that takes longer than some hosts wait.
pub(super) fn slow_start(report: &mut Report) {
    let Some(millis) = report.connected_after_ms else {
        return;
    };
    let seconds = millis / 1000;
    let remedy = "install the server instead of downloading it at each start, and load what is not needed for the first response later";
    if millis > SLOW_MILLIS {
        let message = format!(
            "took {seconds} s to answer; Codex gives up after 10 s, other hosts after 30 s"
        );
        report.add(("slow-start", Severity::Warning), "server", message, remedy);
    } else if millis > NOTABLE_MILLIS {
        let message = format!("took {seconds} s to answer, for which users wait each time");
        report.add(("slow-start", Severity::Note), "server", message, remedy);
    }
}

/// Reports mistakes in the command line of a configured server, which hosts do not report.
pub(super) fn command_line(report: &mut Report, server: &Server) {
    if let Some(name) = server.configured_name() {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        if !name.chars().all(is_plain) || name.len() > 64 {
            report.add(
                ("server-name", Severity::Warning),
                format!("server {name:?}"),
                "hosts make the names of tools from the name of the server, and drop tools whose names have other characters than A-Z, a-z, 0-9, '_' and '-'",
                "rename the server in the file",
            );
        }
    }
    let words = server.command_words();
    for word in &words {
        if let Some(shown) = secret_in(word) {
            report.add(
                ("secret-argument", Severity::Warning),
                "command line",
                format!("the argument `{shown}` looks like a secret, which other users of the machine can see in the list of processes"),
                "pass it as an environment variable",
            );
        }
    }
    let program = words.first().map_or("", String::as_str);
    if cfg!(windows) && matches!(program, "npx" | "npm" | "uvx.cmd") {
        report.add(
            ("windows-npx", Severity::Warning),
            "command line",
            format!("some hosts cannot start `{program}` on Windows, which is a script"),
            "use `cmd` with the arguments `/c npx …`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_variables_are_named() {
        for (line, expected) in [
            (
                "Error: GITHUB_TOKEN environment variable is required",
                Some("GITHUB_TOKEN"),
            ),
            ("KeyError: 'BRAVE_API_KEY'", Some("BRAVE_API_KEY")),
            (
                "notes: the variable NOTES_FOLDER is not set",
                Some("NOTES_FOLDER"),
            ),
            (
                "Please set the environment variable TOKEN: missing",
                Some("TOKEN"),
            ),
            ("Error: ENOENT, missing file", None),
            ("ERR_MODULE_NOT_FOUND: missing", None),
            ("code: 'MODULE_NOT_FOUND', undefined", None),
            ("listening on HTTP_PORT", None),
        ] {
            assert_eq!(missing_variable(line), expected, "{line}");
        }
    }
}
