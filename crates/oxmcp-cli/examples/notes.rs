//! A small server with some of everything, to try the command on: `oxmcp inspect -- target/debug/examples/notes`. With the argument
//! `noisy`, it prints to stdout before it starts; with `broken`, it ends at once.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it shows what `oxmcp check` finds"
)]

use std::{env, process::ExitCode};

use oxmcp::{
    JsonSchema, Prompt, RequestContext, Resource, ResourceTemplate, Server, Tool, ToolError,
    protocol::{ContentBlock, PromptMessage},
    stdio,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// The text to search for.
    query: String,
    #[serde(default = "ten")]
    limit: u8,
}

fn ten() -> u8 {
    10
}

#[derive(Serialize, JsonSchema)]
struct Hits {
    hits: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirmed: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Day {
    day: String,
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}

fn server() -> Server {
    Server::new("notes", "1.0.0")
        .instructions("Search before you write.")
        .tool(Tool::new("search", "Search the notes", |it: Search| async move {
            let hits = (1..=it.limit.min(3)).map(|n| format!("{} {n}", it.query));
            oxmcp::Structured(Hits { hits: hits.collect() })
        }))
        .tool(Tool::new("delete", "Delete all notes", |cx: RequestContext| async move {
            let Confirmation { confirmed } = cx.ask("confirm", "Delete everything?").await?;
            match confirmed {
                true => Ok("deleted"),
                false => Err(ToolError::new("nothing was deleted")),
            }
        }))
        .tool(Tool::new("draw", "Draw a note", || async {
            ContentBlock::image(&b"\x89PNG"[..], "image/png")
        }))
        .resource(Resource::text("notes://today", "Today", "Buy tea.\n"))
        .resource(Resource::new("notes://photo", "Photo", || async { vec![0_u8, 159, 146, 150] }))
        .resource_template(
            ResourceTemplate::new("notes://days/{day}", "day", |it: Day| async move { format!("Notes of {}", it.day) })
                .description("The notes of a day")
                .complete("day", ["Monday", "Tuesday"]),
        )
        .prompt(Prompt::new("poem", "Write a poem", |it: Topic| async move {
            PromptMessage::user(format!("Write a poem about {}.", it.topic))
        }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("noisy") => println!("starting notes"),
        Some("broken") => {
            eprintln!("notes: the variable NOTES_FOLDER is not set");
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    match server().run(stdio()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("notes: {error}");
            ExitCode::FAILURE
        }
    }
}
