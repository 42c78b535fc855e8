//! Many third-party servers at once: `interop-group COMMAND FILE NAME=VALUE...` reads the servers from a configuration file with
//! these variables. The first thing that does not happen ends the program with status 1.
//!
//! | command                | what must happen                                                                           |
//! |------------------------|--------------------------------------------------------------------------------------------|
//! | `use`                  | a `ClientGroup` has the tools, prompts and resources of all servers                        |
//! | `fail`                 | servers of a group are stopped, killed, or start slowly: only their own calls notice       |
//! | `fail-behind REVISION` | the same with a gateway, whose client has this revision                                    |
//!
//! No process is left at the end.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

mod failures;
mod gateway;
mod group;
mod processes;
mod servers;

use std::{env, process::ExitCode};

use servers::{Outcome, Servers};

async fn run() -> Outcome {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["use", file, variables @ ..] => group::work(&Servers::read(file, variables)?).await?,
        ["fail", file, variables @ ..] => group::fail(&Servers::read(file, variables)?).await?,
        ["fail-behind", revision, file, variables @ ..] => {
            gateway::fail(&Servers::read(file, variables)?, revision.parse()?).await?;
        }
        _ => {
            return Err(
                "usage: interop-group use|fail|fail-behind REVISION FILE NAME=VALUE...".into(),
            );
        }
    }
    processes::none_left().await
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => {
            println!("all of it happened");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("interop-group: {error}");
            ExitCode::FAILURE
        }
    }
}
