//! The host of clients over HTTP: it starts the server for them.

use std::process::Command;

use crate::process::{Process, Result};

/// `SERVER ARGS... -- CLIENT ARGS...`: starts the server and runs the client, in whose arguments `{url}` stands for the server's
/// URL.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let middle = words.iter().position(|word| word == "--");
    let (server, client) = words.split_at(middle.ok_or("missing `--` before the client")?);
    let (server, address) = Process::start(server)?;
    let url = format!("http://{address}/mcp");
    let client: Vec<_> = client
        .iter()
        .map(|word| word.replace("{url}", &url))
        .collect();
    let (program, args) = client
        .get(1..)
        .and_then(<[String]>::split_first)
        .ok_or("missing the command of the client")?;
    let status = Command::new(program).args(args).status()?;
    server.stop()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the client exited with {status}").into())
    }
}
