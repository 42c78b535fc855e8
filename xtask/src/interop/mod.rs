//! Software that we did not write, against ours: their clients start our server, our client starts their servers.

mod cases;
pub(crate) mod record;
mod runner;

use std::{env, ffi::OsString, path::PathBuf, process::Command};

use crate::{
    setup::Tools,
    step::{self, Outcome, cargo, headline, root},
};
use cases::{CLIENTS, Client, Runtime, SERVERS, Server, twin};
use runner::{Case, run_cases, transcript};

/// What a client says when a call is dropped.
const CANCELLED: &[&str] = &["\"notifications/cancelled\""];

/// Runs the cases that have `word` in their names.
pub(crate) fn run(word: &str) -> Outcome {
    let tools = Tools::set_up()?;
    let build = ["build", "--quiet", "--locked", "-p", "oxmcp-interop"];
    step::run("build our server and our client", &mut cargo(build))?;
    let us = this_program()?;

    headline("interop: clients of others start our server, our client starts servers of others");
    let clients = CLIENTS.iter().map(|client| Case {
        clean_exit: client.waits,
        ..their_client(
            client,
            "strict",
            &tools,
            &us,
            &[us.with_file_name("interop-server").into()],
        )
    });
    let servers = SERVERS.iter().map(|server| our_client(server, &tools, &us));
    let cases = clients.chain(servers);
    let outcome = run_cases("interop", cases.filter(|case| case.name.contains(word)));
    step::all([outcome, wire(word)])
}

/// Holds all that we sent against the official schemas.
fn wire(word: &str) -> Outcome {
    let node = Tools::set_up_node()?;
    let schemas = node.schemas()?;
    let clients = CLIENTS.iter().map(|it| ("server", it.revision, it.name));
    let servers = SERVERS.iter().map(|it| ("client", it.revision, it.name));
    let transcripts = clients
        .chain(servers)
        .filter(|(_, _, name)| name.contains(word))
        .map(|(side, revision, name)| (side, revision, transcript(name)))
        // A case that could not be run has said so.
        .filter(|(_, _, transcript)| transcript.exists())
        .map(|(side, revision, transcript)| format!("{side}:{revision}:{}", transcript.display()));
    step::run(
        "what we sent, against the official schemas",
        node.run("wire.mjs").arg(schemas).args(transcripts),
    )
}

/// Runs the scripts of the clients against servers of others: if that fails, the script is wrong, not our server.
pub(crate) fn run_twins(word: &str) -> Outcome {
    let tools = Tools::set_up()?;
    let us = this_program()?;

    headline("interop-twins: clients of others start servers of others");
    let cases = CLIENTS.iter().filter_map(|client| {
        let server = start(twin(client)?, &tools);
        Some(their_client(client, "lenient", &tools, &us, &server))
    });
    run_cases(
        "interop-twins",
        cases.filter(|case| case.name.contains(word)),
    )
}

/// `SCRIPT MODE STRICTNESS xtask record TRANSCRIPT SERVER...`
fn their_client(
    client: &Client,
    strictness: &str,
    tools: &Tools,
    us: &PathBuf,
    server: &[OsString],
) -> Case {
    let mut command = Command::new(runtime(client.runtime, tools));
    command
        .arg(root().join("interop").join(client.script))
        .args([client.mode, strictness])
        .arg(us)
        .arg("record")
        .arg(transcript(client.name))
        .args(server);
    Case {
        name: client.name,
        revision: client.revision,
        command,
        clean_exit: false,
        says: &[],
    }
}

/// `interop-client TASKS -- xtask record TRANSCRIPT SERVER...`
fn our_client(server: &Server, tools: &Tools, us: &PathBuf) -> Case {
    let mut command = Command::new(us.with_file_name("interop-client"));
    command
        .args(server.tasks.concat())
        .arg("--")
        .arg(us)
        .arg("record")
        .arg(transcript(server.name))
        .args(start(server, tools))
        .current_dir(root().join("interop/servers"));
    Case {
        name: server.name,
        revision: server.revision,
        command,
        clean_exit: false,
        says: if server.tasks.concat().contains(&"--cancel") {
            CANCELLED
        } else {
            &[]
        },
    }
}

/// The command that starts a server of others.
fn start(server: &Server, tools: &Tools) -> Vec<OsString> {
    let (script, args) = server
        .program
        .split_first()
        .expect("a program has a script");
    let script = root().join("interop").join(script);
    let args = args.iter().map(OsString::from);
    [runtime(server.runtime, tools).into(), script.into()]
        .into_iter()
        .chain(args)
        .collect()
}

fn runtime(runtime: Runtime, tools: &Tools) -> &PathBuf {
    match runtime {
        Runtime::Node => &tools.node,
        Runtime::Python1 => &tools.python1,
        Runtime::Python2 => &tools.python2,
    }
}

/// The programs of `oxmcp-interop` are built into the directory that this one was built into.
fn this_program() -> Outcome<PathBuf> {
    env::current_exe().map_err(|error| format!("cannot find the programs that were built: {error}"))
}
