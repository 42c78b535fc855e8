//! The command line.

pub(crate) mod pairs;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::ValueParser};
use clap_complete::Shell;
use oxmcp::Revision;

use crate::args::pairs::{Header, Variable};

const TARGETS: &str = "\
A <TARGET> is one of:
  https://example.com/mcp        a server at a URL
  files                          a server of a configuration file of this folder or of a host, such as .mcp.json
  cursor:files                   the same, of one host (see `oxmcp config list`)
  path/to/mcp.json#files         a server of this file
  -- npx -y some-server arg      a program that speaks MCP over stdio; it takes the place of <TARGET>

Exit codes:
    0  success
    1  the server refused the request, the tool failed, or `check` has findings
    2  the command line or a configuration file is wrong
    3  the server needs a login, or refused it
    4  the server cannot be reached, did not start, or ended
    5  the server violated the protocol
    6  a person would have had to answer
  124  the server did not answer in time
  130  interrupted

Results go to stdout, everything else to stderr.";

/// See, call, check and watch any MCP server, of any revision, over stdio or HTTP.
#[derive(Debug, Parser)]
#[command(name = "oxmcp", version, after_help = TARGETS, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: Global,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a server: its name, revision, capabilities, tools, prompts and resources.
    Inspect(Inspect),
    /// Call a tool.
    #[command(after_help = "\
Arguments of the tool:
  name=text          typed by the tool's schema: `count=3` is a number where the schema wants one, else a string
  name:=json         JSON, as it is
  name@=file         the contents of a file, as a string
  --args '{…}'       all arguments as one JSON object; `@file` reads it from a file, `-` from stdin

Examples:
  oxmcp call https://example.com/mcp search query=tea limit=5
  oxmcp call add a=1 b=2 -- ./calculator")]
    Call(Call),
    /// Read a resource. Its bytes go to stdout as they are.
    Read(Read),
    /// Get a prompt. Its arguments are `name=text`.
    Prompt(Prompt),
    /// Complete an argument of a prompt or of a resource template.
    Complete(Complete),
    /// Print changes as they happen, one JSON object a line: of lists, and of the resources that are named.
    Watch(Watch),
    /// Find out why a server does not start or misbehaves, without calling a tool.
    Check(Check),
    /// Offer servers over another transport, and to clients of every revision.
    #[command(after_help = "\
Examples:
  oxmcp bridge https://example.com/mcp                       a remote server, for hosts that start programs
  oxmcp bridge --listen 127.0.0.1:8080 -- ./my-server        a program, for clients over HTTP
  oxmcp bridge --deny-tool 'delete*' files github            two configured servers as one, without some tools")]
    Bridge(Bridge),
    /// Open a page in the browser that shows servers and uses them. Without a server, those of the configuration files.
    #[command(after_help = "\
Examples:
  oxmcp ui                                    the servers of the configuration files
  oxmcp ui https://example.com/mcp files      two servers
  oxmcp ui --no-browser -- ./my-server        a program; the URL of the page is printed, and nothing is opened")]
    Ui(Ui),
    /// Log in to a server, and store the login for later commands.
    Login(Url),
    /// Revoke and delete the stored login of a server.
    Logout(Url),
    /// Stored logins.
    #[command(subcommand)]
    Auth(Auth),
    /// Configuration files of hosts.
    #[command(subcommand)]
    Config(Config),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, for `man -l -`.
    Man,
}

/// The options of all commands.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Global {
    /// Print JSON: one value on stdout, and failures as one line of JSON on stderr.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no notes on stderr.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print the server's log and its standard error. Twice: also the messages of both sides.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// When to use colors.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

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

#[derive(Args, Debug)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp call [OPTIONS] <TARGET> <TOOL> [ARGUMENT]...")]
pub(crate) struct Call {
    #[command(flatten)]
    pub target: Target,
    /// All arguments as a JSON object, `@file`, or `-` for stdin.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Print only the structured content of the result.
    #[arg(long)]
    pub(crate) structured: bool,
    /// Write images, audio and other bytes of the result to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp read [OPTIONS] <TARGET> <URI>")]
pub(crate) struct Read {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp prompt [OPTIONS] <TARGET> <PROMPT> [NAME=TEXT]...")]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "oxmcp complete [OPTIONS] <TARGET> <PROMPT or URI TEMPLATE> <ARGUMENT=START> [OTHER=VALUE]..."
)]
pub(crate) struct Complete {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp watch [OPTIONS] <TARGET> [URI]...")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub target: Target,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp bridge [OPTIONS] <TARGET>...")]
pub(crate) struct Bridge {
    #[command(flatten)]
    pub target: Target,
    /// Listen for HTTP at this address, such as 127.0.0.1:8080. Without it, the bridge speaks over stdin and stdout.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub http: Http,
    #[command(flatten)]
    pub rules: Rules,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp ui [OPTIONS] [TARGET]...")]
pub(crate) struct Ui {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub connection: Connection,
}

/// The options of a bridge that listens.
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

/// The tools that a bridge offers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tools")]
pub(crate) struct Rules {
    /// Offer only tools whose names match, such as `read*`.
    #[arg(long, value_name = "PATTERN")]
    pub allow_tool: Vec<String>,
    /// Leave out tools whose names match.
    #[arg(long, value_name = "PATTERN")]
    pub deny_tool: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    /// For code scanning services.
    Sarif,
}

#[derive(Args, Debug)]
pub(crate) struct Url {
    /// The URL of the server.
    pub url: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// List the stored logins, without secrets.
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// List the configuration files that were found, and their servers, without secrets.
    List,
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
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

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
