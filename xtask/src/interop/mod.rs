//! `cargo xtask test interop`: third-party software against ours. Third-party clients talk to our server, and our client talks to
//! third-party servers.

mod cases;
mod command;
mod groups;
pub(crate) mod record;
mod runner;

use std::{ffi::OsString, iter};

use crate::{
    setup::Tools,
    step::{self, Outcome, headline, root},
};
use cases::{CLIENTS, Client, Over, PROTECTED, SERVERS, Server, twin};
use command::{Meeting, Parties, start};
use runner::{Case, run_cases, transcript};

/// The notification that a client sends when a call is dropped.
const CANCELLED: &[&str] = &["\"notifications/cancelled\""];

/// The line of the transcript that takes its place over HTTP in the modern era.
const HUNG_UP: &[&str] = &["the client hung up on POST"];

/// Runs the cases that have `word` in their names.
pub(crate) fn run(word: &str) -> Outcome {
    let parties = Parties::gather(|needs| wants(word, needs))?;
    step::build(&["interop-server", "interop-client", "interop-group"])?;
    let gateways = clients(word, &parties).filter(|it| it.is_gateway());
    let groups = groups::selected(word).map(|it| it.name);
    gateways
        .map(|it| it.name)
        .chain(groups)
        .try_for_each(groups::prepare)?;

    headline(
        "interop: third-party clients with our server, and our client with third-party servers",
    );
    let clients = clients(word, &parties).map(|client| {
        let server = parties.us.with_file_name("interop-server").into();
        let server = match client.over {
            Over::Stdio => {
                let words = client.serves.iter().map(OsString::from);
                let behind = client.is_gateway();
                let behind = behind.then(|| groups::servers(client.name, &parties));
                let behind = behind.into_iter().flatten();
                iter::once(server).chain(words).chain(behind).collect()
            }
            Over::Sse => vec![server, "sse".into(), "127.0.0.1:{port}".into()],
            Over::Nodes | Over::Rolling => {
                let words = ["nodes", "127.0.0.1:{port}", "{redis}"].map(OsString::from);
                iter::once(server).chain(words).collect()
            }
            Over::Login(_) | Over::RemoteLogin => {
                let words = PROTECTED.iter().skip(1).map(OsString::from);
                iter::once(server).chain(words).collect()
            }
            _ => vec![server, "http".into(), "127.0.0.1:{port}".into()],
        };
        their_client(client, "strict", &parties, server, client.waits)
    });
    let servers = SERVERS
        .iter()
        .filter(|server| server.name.contains(word) && parties.have(server.name, server.over))
        .map(|server| our_client(server, &parties));
    let groups = groups::selected(word).map(|group| groups::case(group, &parties));
    let cases = clients.chain(servers).chain(groups);
    let outcome = run_cases("interop", cases, &parties.left_out);
    step::all([outcome, wire(word)])
}

/// Whether any case with `word` in its name has a need.
fn wants(word: &str, needs: fn(Over) -> bool) -> bool {
    let clients = CLIENTS.iter().map(|it| (it.name, it.over));
    let servers = SERVERS.iter().map(|it| (it.name, it.over));
    clients
        .chain(servers)
        .any(|(name, over)| needs(over) && name.contains(word))
}

/// The clients that have `word` in their names, without those that need a missing program.
fn clients(word: &str, parties: &Parties) -> impl Iterator<Item = &'static Client> {
    CLIENTS
        .iter()
        .filter(move |client| client.name.contains(word))
        .filter(|client| parties.have(client.name, client.over))
}

/// Validates all messages that our side sent against the official schemas.
fn wire(word: &str) -> Outcome {
    let node = Tools::set_up_node()?;
    let schemas = node.schemas()?;
    // The messages of a gateway are those of the servers behind it.
    let ours = CLIENTS.iter().filter(|it| !it.is_gateway());
    let clients = ours.map(|it| ("server", it.revision, it.name));
    let servers = SERVERS.iter().map(|it| ("client", it.revision, it.name));
    let transcripts = clients
        .chain(servers)
        .filter(|(_, _, name)| name.contains(word))
        .map(|(side, revision, name)| (side, revision, transcript(name)))
        // A case without a transcript could not be run, and has reported that.
        .filter(|(_, _, transcript)| transcript.exists())
        .map(|(side, revision, transcript)| format!("{side}:{revision}:{}", transcript.display()));
    step::run(
        "our messages against the official schemas",
        node.run("wire.mjs").arg(schemas).args(transcripts),
    )
}

/// Runs the scripts of the clients against third-party servers. If that fails, the script is wrong, and not our server.
pub(crate) fn run_twins(word: &str) -> Outcome {
    let parties = Parties::gather(|needs| wants(word, needs))?;

    headline("interop-twins: third-party clients with third-party servers");
    let cases = clients(word, &parties).filter_map(|client| {
        let server = start(twin(client)?, &parties);
        Some(their_client(client, "lenient", &parties, server, false))
    });
    run_cases("interop-twins", cases, &parties.left_out)
}

/// The case of a third-party client: the arguments `SCRIPT MODE STRICTNESS`, and those that say how to reach the server.
fn their_client(
    client: &Client,
    strictness: &str,
    parties: &Parties,
    server: Vec<OsString>,
    clean_exit: bool,
) -> Case {
    let script = root().join("interop").join(client.script);
    let program = [
        parties.runtime(client.runtime).into(),
        script.into(),
        client.mode.into(),
        strictness.into(),
    ];
    let meeting = Meeting {
        name: client.name,
        over: client.over,
        client: program.into(),
        server,
        clean_exit,
    };
    Case {
        name: client.name,
        revision: Some(client.revision),
        command: meeting.command(parties),
        clean_exit,
        says: Vec::new(),
    }
}

/// The case of our client: the arguments `interop-client TASKS --`, and those that say how to reach the server.
fn our_client(server: &Server, parties: &Parties) -> Case {
    let tasks = server.tasks.concat();
    let program: Vec<OsString> = [parties.us.with_file_name("interop-client").into()]
        .into_iter()
        .chain(tasks.iter().map(OsString::from))
        .chain(["--".into()])
        .collect();
    let meeting = Meeting {
        name: server.name,
        over: server.over,
        client: program,
        server: start(server, parties),
        clean_exit: false,
    };
    let mut command = meeting.command(parties);
    command.current_dir(root().join("interop/servers"));
    Case {
        name: server.name,
        revision: Some(server.revision),
        command,
        clean_exit: false,
        says: server
            .over
            .signs()
            .iter()
            .chain(server.says)
            .chain(match (server.over, server.revision) {
                _ if !tasks.contains(&"--cancel") => &[],
                (Over::Stdio, _) => CANCELLED,
                (_, "2026-07-28") => HUNG_UP,
                _ => CANCELLED,
            })
            .copied()
            .collect(),
    }
}
