//! The options of commands that install, package and create servers.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::connection::Target;
use crate::args::pairs::{Header, Variable};

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp install [OPTIONS] --host <HOST> <TARGET>...")]
pub(crate) struct Install {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub place: Place,
    /// The name of the server in the file. By default, it is made from the target.
    #[arg(long)]
    pub name: Option<String>,
    /// Set an environment variable of the program. The value is written to the file.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<Variable>,
    /// Pass an environment variable of the host to the program, so that the file does not contain its value.
    #[arg(long, value_name = "NAME")]
    pub pass_env: Vec<String>,
    /// Send this header with each request. The value is written to the file.
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<Header>,
    /// Send a header with the value of an environment variable of the host: `Name=VARIABLE`.
    #[arg(long, value_name = "NAME=VARIABLE")]
    pub header_env: Vec<Variable>,
    /// Replace a server that has the same name.
    #[arg(long)]
    pub replace: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Uninstall {
    /// The names of the servers.
    #[arg(required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub place: Place,
}

/// The files that are changed.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// The host. It can be given more than once.
    #[arg(long, value_enum, required = true)]
    pub host: Vec<HostName>,
    /// The file of the user, or the file of the project in the current folder.
    #[arg(long, value_enum, default_value_t = Scope::User)]
    pub scope: Scope,
    /// Change the files without asking.
    #[arg(short, long)]
    pub yes: bool,
    /// Show the diff, and change nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostName {
    ClaudeDesktop,
    ClaudeCode,
    Vscode,
    Cursor,
    Codex,
    Gemini,
    Opencode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    User,
    Project,
}

#[derive(Args, Debug)]
pub(crate) struct Package {
    /// The folder of the project.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// The name in the registry, such as `io.github.me/weather`. By default, the one in `server.json`, in the package's metadata, or
    /// made from the URL of its repository.
    #[arg(long)]
    pub name: Option<String>,
    /// The registries with the package. By default, those of the manifests that exist.
    #[arg(long, value_enum)]
    pub registry: Vec<Registry>,
    /// An image with the server, such as `ghcr.io/me/weather:1.0.0`.
    #[arg(long, value_name = "IMAGE")]
    pub oci: Vec<String>,
    /// A URL at which the server is hosted.
    #[arg(long, value_name = "URL")]
    pub remote: Vec<String>,
    /// A program to bundle, with the target that it was built for: `TARGET=FILE`. Without a target, this machine's.
    #[arg(long, value_name = "[TARGET=]FILE")]
    pub binary: Vec<String>,
    /// The URL of the folder in which the bundles will be published. By default, the release `vVERSION` of the repository.
    #[arg(long, value_name = "URL")]
    pub bundle_url: Option<String>,
    /// The folder for the bundles.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub output: PathBuf,
    /// Compare with the files that exist, and write nothing. The exit code is 1 if they differ.
    #[arg(long)]
    pub check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Registry {
    Cargo,
    Npm,
    Pypi,
}

#[derive(Args, Debug)]
pub(crate) struct New {
    /// The name of the project, and of its folder.
    pub name: String,
    /// Create a client instead of a server.
    #[arg(long)]
    pub client: bool,
}
