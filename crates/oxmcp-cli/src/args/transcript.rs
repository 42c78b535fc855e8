//! The options of commands for recorded sessions.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::connection::{Connection, Http, Target};

#[derive(Args, Debug)]
#[command(override_usage = "oxmcp record [OPTIONS] <TARGET> <FILE>")]
pub(crate) struct Record {
    #[command(flatten)]
    pub target: Target,
    /// Replace a file that exists. By default, the session is written to the next free name, such as `session-2.jsonl`.
    #[arg(long)]
    pub force: bool,
    /// Stop writing when the file has this many MiB. The messages still pass.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub max_size: u64,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// The file that `oxmcp record` wrote.
    pub file: PathBuf,
    /// Listen for HTTP at this address, such as 127.0.0.1:8080. Without it, the session is served over stdin and stdout.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub http: Http,
    /// Take as long for each answer as the server did.
    #[arg(long)]
    pub realtime: bool,
}
