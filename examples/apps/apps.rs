//! A host that shows the apps of any server in the browser.
//!
//! `cargo run --example apps --features apps`, or with a server: `… --features apps -- my-server --its-arguments`
//!
//! Without a server it shows the app of a dice game. It runs until you press Enter.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    env,
    io::stdin,
    sync::atomic::{AtomicU32, Ordering},
};

use oxmcp::{Client, Command, JsonSchema, RequestContext, Server, Structured, Tool, testing};
use oxmcp_apps::{
    App, ServerExt, ToolExt,
    host::{self, is_for_app, is_for_model},
};
use oxmcp_examples::{AnyError, AppHost};
use tokio::task::spawn_blocking;

#[derive(serde::Deserialize, JsonSchema)]
struct Dice {
    /// How many dice to roll
    #[schemars(range(min = 1, max = 6))]
    count: u32,
}

#[derive(serde::Serialize, JsonSchema)]
struct Rolled {
    /// The numbers on the dice
    numbers: Vec<u32>,
}

static ROLLS: AtomicU32 = AtomicU32::new(0);

/// Rolls dice that are fair only in the long run.
async fn roll(_cx: RequestContext, Dice { count }: Dice) -> Structured<Rolled> {
    let first = ROLLS.fetch_add(count, Ordering::Relaxed);
    let numbers = (first..first + count).map(|it| it * 5 % 6 + 1).collect();
    Structured(Rolled { numbers })
}

/// A server with an app. The view can roll the dice again; only the view can reset the game.
fn dice() -> Server {
    let view = App::new("ui://dice/view.html", include_str!("dice.html")).border(true);
    let reset = || async {
        ROLLS.store(0, Ordering::Relaxed);
        "The game begins again."
    };
    Server::new("dice", "1.0.0")
        .tool(Tool::new("roll", "Roll some dice", roll).app(&view))
        .tool(Tool::new("reset", "Begin again", reset).app_only(&view))
        .app(view)
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let client = Client::new("app-host", "1.0.0").extension(host::extension());
    let session = match arguments.split_first() {
        Some((program, arguments)) => {
            client
                .connect(Command::new(program).args(arguments))
                .await?
        }
        None => testing::connect(&dice()).client(&client).await?,
    };
    let tools = session.tools().all().await?;
    for tool in &tools {
        let callers = match (is_for_model(tool), is_for_app(tool)) {
            (true, true) => "the model and the app",
            (true, false) => "the model",
            (false, true) => "the app",
            (false, false) => "nobody",
        };
        println!("{} is for {callers}", tool.name);
    }

    let host = AppHost::start(session.clone(), tools).await?;
    println!("Open {} and press Enter here to end", host.url());
    spawn_blocking(|| stdin().read_line(&mut String::new())).await??;
    session.close().await?;
    Ok(())
}
