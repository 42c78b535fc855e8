//! `oxmcp watch`: prints changes as they happen.

use oxmcp::{Client, ClientSession};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Sender, channel};

use crate::{
    args::Watch,
    failure::{Failure, Reason, Result},
    output, session,
    target::Server,
    terminal::Terminal,
};

/// The number of changes that wait for stdout. The connection waits while there are more.
const MAX_CHANGES: usize = 256;

pub(crate) async fn run(args: Watch, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let (changes, mut changed) = channel(MAX_CHANGES);
    let client = watching(session::client(&args.connection, terminal)?, &changes);
    let session = session::connect_with(client, &server, &args.connection, terminal).await?;
    for uri in &server.words {
        let mut watch = session.watch_resource(uri).await?;
        let changes = changes.clone();
        tokio::spawn(async move {
            while let Some(update) = watch.next().await {
                let _ = changes
                    .send(json!({"changed": "resource", "uri": update.uri}))
                    .await;
            }
        });
    }
    drop(changes);
    terminal.note("watching; press Ctrl-C to stop");
    loop {
        tokio::select! {
            change = changed.recv() => match change {
                Some(change) => output::json_line(&change)?,
                None => break,
            },
            ended = session.wait() => {
                ended?;
                break;
            }
        }
    }
    Err(Failure::new(
        Reason::Unreachable,
        "the server ended the session",
    ))
}

fn watching(client: Client, changes: &Sender<Value>) -> Client {
    let report = |kind: &'static str| {
        let changes = changes.clone();
        move |_: ClientSession| {
            let changes = changes.clone();
            async move {
                // It fails only when the command ends.
                let _ = changes.send(json!({"changed": kind})).await;
            }
        }
    };
    client
        .on_tools_changed(report("tools"))
        .on_prompts_changed(report("prompts"))
        .on_resources_changed(report("resources"))
}
