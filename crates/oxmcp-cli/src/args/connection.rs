//! The server of a command line, and the options of the connection to it.

use std::{path::PathBuf, time::Duration};

use clap::{Args, builder::ValueParser};
use oxmcp::Revision;

use crate::args::pairs::{Header, Variable};

/// The options of commands that connect to a server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The time to wait for a response, such as `30s` or `5m`. Progress of the server restarts it.
    #[arg(long, value_parser = ValueParser::new(duration), default_value = "60s", value_name = "TIME")]
    pub timeout: Duration,
    /// Speak only this revision of the protocol, such as 2025-11-25.
    #[arg(long, value_parser = ValueParser::new(revision), value_name = "DATE")]
    pub revision: Option<Revision>,
    /// Tolerate no deviation from the specification.
    #[arg(long)]
    pub strict: bool,
    /// Send this header with each request: `Name: value`, or `Name:value`.
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<Header>,
    /// Send a header with the value of an environment variable: `Name=VARIABLE`.
    #[arg(long, value_name = "NAME=VARIABLE")]
    pub header_env: Vec<Variable>,
    /// Set an environment variable of the program: `NAME=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<Variable>,
    /// Start the program in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Never open a browser. It is never opened without a terminal.
    #[arg(long)]
    pub no_browser: bool,
    /// Answer a field of a form of the server: `field=text`, or `field:=json`.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub answer: Vec<String>,
    /// Decline all questions of the server.
    #[arg(long)]
    pub decline: bool,
}

/// The options of a command that listens.
#[derive(Args, Debug)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct Http {
    /// The environment variable with the token that clients must present. Without it, a token is made up and printed.
    #[arg(
        long,
        value_name = "VARIABLE",
        requires = "listen",
        conflicts_with = "no_token"
    )]
    pub token_env: Option<String>,
    /// Serve clients without a token: every program of this machine can use the servers.
    #[arg(long, requires = "listen")]
    pub no_token: bool,
    /// Accept requests for this host name. By default, only those for this machine.
    #[arg(long, value_name = "HOST", requires = "listen")]
    pub allow_host: Vec<String>,
    /// Accept requests of web pages of this origin. By default, only those of this machine.
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub allow_origin: Vec<String>,
}

/// A target, with what follows it.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// The server, and then what the command needs. Without the server if a program follows `--`.
    #[arg(value_name = "TARGET")]
    pub words: Vec<String>,
    /// The program of the server and its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// Parses a duration: a number with `ms`, `s`, `m` or `h`. Without a unit, seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time such as 30s, 500ms or 5m, not {text:?}");
    let digits = text.find(|it: char| !it.is_ascii_digit() && it != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected()),
    };
    let number: f64 = number.parse().map_err(|_| expected())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())
}

fn revision(text: &str) -> Result<Revision, String> {
    let is_meant = |it: &Revision| it.as_str() == text;
    Revision::ALL.into_iter().find(is_meant).ok_or_else(|| {
        let all: Vec<&str> = Revision::ALL.iter().map(|it| it.as_str()).collect();
        format!("expected one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in [
            ("30", 30_000),
            ("1.5s", 1500),
            ("20ms", 20),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1e99", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
