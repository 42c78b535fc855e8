//! The command line.

mod connection;
mod packaging;
pub(crate) mod pairs;
mod transcript;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::{
    connection::{Connection, Http, Target},
    packaging::{HostName, Install, New, Package, Place, Registry, Scope, Uninstall},
    transcript::{Record, Replay},
};

const TARGETS: &str = "\
A <TARGET> is one of:
  https://example.com/mcp        a server at a URL
  files                          a server from a configuration file, such as .mcp.json in this folder, or a host's
  cursor:files                   the same, from this host's files only (see `oxmcp config list`)
  path/to/mcp.json#files         a server from this file
  -- npx -y some-server arg      a program that speaks MCP over stdio; it replaces <TARGET>

Exit codes:
    0  success
    1  the server refused the request, the tool failed, or `check` has findings
    2  the command line or a configuration file is wrong
    3  the server requires a login, or rejected it
    4  the server cannot be reached, did not start, or ended
    5  the server violated the protocol
    6  a person had to answer, and none could
  124  the server did not answer in time
  130  interrupted

Results go to stdout, everything else to stderr.";

/// Inspect, call, check and watch any MCP server, of any revision, over stdio or HTTP.
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
  name:=json         JSON, passed on unchanged
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
    /// Print changes to the server's lists, and to the given resources, as they happen: one JSON object per line.
    Watch(Watch),
    /// Find out why a server does not start or misbehaves, without calling a tool.
    #[command(after_help = "\
Examples:
  oxmcp check files                                          a configured server
  oxmcp check --all                                          all servers of all configuration files
  oxmcp check --call search query=tea -- ./my-server         also calls a tool, and checks its result
  oxmcp check --format sarif -- ./my-server > mcp.sarif      for code scanning services")]
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
    /// Pass the messages of a host and a server through, and write both sides to a file.
    #[command(after_help = "\
Put it in front of a server in the configuration of a host:
  oxmcp record https://example.com/mcp session.jsonl
  oxmcp record session.jsonl -- npx -y some-server

The file has one JSON object a line: `t` is the time in milliseconds since the start, `from` is `client` or `server`. Values of members
that are named like secrets are replaced; review the file before you share it.")]
    Record(Record),
    /// Serve a recorded session: answer its requests as the server did.
    Replay(Replay),
    /// Add servers to the configuration files of hosts, after a diff was shown and confirmed.
    #[command(after_help = "\
Examples:
  oxmcp install https://example.com/mcp --host claude-code --host cursor
  oxmcp install --host vscode --scope project --env LEVEL=info -- npx -y some-server
  oxmcp install server.json --host codex                     a server that is described for the registry

The contents of a file before its first change are kept next to it, with the ending `.oxmcp-backup`.")]
    Install(Install),
    /// Remove servers from the configuration files of hosts, after a diff was shown and confirmed.
    Uninstall(Uninstall),
    /// Write `server.json` for the MCP registry, and `.mcpb` bundles of programs that were built.
    #[command(after_help = "\
Examples:
  oxmcp package                                              server.json from Cargo.toml, package.json or pyproject.toml
  oxmcp package --oci ghcr.io/me/weather:1.0.0               and an image
  oxmcp package --binary target/release/weather              and a bundle for this machine
  oxmcp package --binary x86_64-pc-windows-msvc=weather.exe --binary aarch64-apple-darwin=weather")]
    Package(Package),
    /// Create a project of a server, or of a client.
    New(New),
    /// Log in to a server, and store the login for later commands.
    Login(Url),
    /// Revoke and delete the stored login of a server.
    Logout(Url),
    /// Show stored logins.
    #[command(subcommand)]
    Auth(Auth),
    /// Show the configuration files of hosts.
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
    /// Print the server's log messages and standard error. Given twice, also print each protocol message.
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
#[command(override_usage = "oxmcp check [OPTIONS] <TARGET> [ARGUMENT]...")]
pub(crate) struct Check {
    #[command(flatten)]
    pub target: Target,
    /// Check all servers of all configuration files, as `oxmcp config list` shows them.
    #[arg(long, conflicts_with_all = ["words", "program", "call"])]
    pub all: bool,
    /// Use the servers that files of the current folder name without asking: start programs, and send values of the environment to URLs.
    #[arg(short, long, requires = "all")]
    pub yes: bool,
    /// Call this tool, with the arguments that follow the server, and check its result.
    #[arg(long, value_name = "TOOL")]
    pub call: Option<String>,
    /// The format of the report.
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

/// The tools that a bridge offers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tools")]
pub(crate) struct Rules {
    /// Offer only tools whose names match this pattern, such as `read*`.
    #[arg(long, value_name = "PATTERN")]
    pub allow_tool: Vec<String>,
    /// Leave out tools whose names match this pattern.
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
