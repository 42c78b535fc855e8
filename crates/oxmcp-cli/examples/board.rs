//! A pinboard, to try `oxmcp ui` on: `oxmcp ui -- target/debug/examples/board`. It has an app, a call that becomes a task, a list of
//! tools that changes, logs, and a resource that changes.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use oxmcp::{
    JsonSchema, RequestContext, Resource, Server, Structured, Tool,
    protocol::LoggingLevel,
    stdio,
    tasks::{TaskPolicy, TaskTool, Tasks},
};
use oxmcp_apps::{App, ServerExt, ToolExt};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Pin {
    /// The text of the note.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

/// The place of a note.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Place {
    /// In centimeters from the left.
    x: f64,
    /// In centimeters from the top.
    y: f64,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Yellow,
    Green,
    Blue,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Move {
    /// The number of the note.
    #[schemars(range(min = 1, max = 99))]
    note: u32,
    place: Place,
    color: Option<Color>,
    /// The people who are told.
    #[serde(default)]
    tell: Vec<String>,
    #[serde(default)]
    pinned: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Export {
    pages: u32,
}

async fn export(cx: RequestContext, Export { pages }: Export) -> String {
    for page in 1..=pages {
        let progress = cx.progress(page).total(pages);
        progress.message(format!("page {page} of {pages}")).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    format!("exported {pages} pages")
}

fn server() -> Server {
    let view = App::new("ui://board/view.html", include_str!("board.html")).border(true);
    let notes = Arc::new(Mutex::new(vec!["Buy tea".to_owned()]));
    let pinned = Arc::clone(&notes);
    let pin = move |cx: RequestContext, Pin { text }: Pin| {
        let notes = Arc::clone(&pinned);
        async move {
            cx.log(LoggingLevel::Notice, format!("pinned {text:?}"))
                .await;
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.push(text);
            Structured(Notes {
                notes: notes.clone(),
            })
        }
    };
    let server = Server::new("board", "1.0.0")
        .instructions("A board for notes. Pin short ones.")
        .logging()
        .extension(
            Tasks::in_memory()
                .poll_interval(Duration::from_millis(200))
                .extension(),
        )
        .tool(Tool::new("pin", "Pin a note to the board", pin).app(&view))
        .tool(Tool::new("move", "Move a note", |it: Move| async move {
            Structured(it)
        }))
        .tool(
            Tool::new("export", "Export the board, page by page", export)
                .task(TaskPolicy::Required),
        )
        .resource(Resource::text(
            "board://rules",
            "Rules",
            "# Rules\n\nKeep it short.\n",
        ))
        .app(view);
    let grown = server.clone();
    let grow = move |cx: RequestContext| {
        let server = grown.clone();
        async move {
            let extra = Tool::new("extra", "A tool that was added", || async { "added" });
            server.add_tools([extra])?;
            cx.log(LoggingLevel::Info, "added a tool").await;
            Ok::<_, oxmcp::Error>("added")
        }
    };
    server.tool(Tool::new("grow", "Add a tool to this server", grow))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match server().run(stdio()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
