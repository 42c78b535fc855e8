//! Shared state: one value for tools, prompts, templates and completers, set in one place.
//!
//! `cargo run --example state`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use oxmcp::{
    CompletionInput, JsonSchema, RequestContext, ResourceTemplate, Result, Server, Tool, testing,
};
use serde_json::json;

/// The state. Each call of a handler gets a clone, and all clones share the same notes.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

impl Notes {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // A method can also be a handler. Its `self` is the state.
    async fn count(self) -> usize {
        self.open().len()
    }
}

#[derive(serde::Deserialize, JsonSchema)]
struct Title {
    title: String,
}

/// Write a note.
#[oxmcp::tool]
async fn write(
    #[state] notes: Notes,
    // The context has the name of the client, the author of the note.
    cx: RequestContext,
    title: String,
    text: String,
) {
    let author = cx.peer_info().map_or("unknown", |client| &client.name);
    notes.open().insert(title, format!("{text} ({author})"));
}

// In handlers without an attribute, the state is the first parameter.
async fn read(notes: Notes, Title { title }: Title) -> Option<String> {
    notes.open().get(&title).cloned()
}

/// Sum up all notes.
#[oxmcp::prompt]
async fn summary(#[state] notes: Notes) -> String {
    let texts: Vec<_> = notes.open().values().cloned().collect();
    format!("Summarize these notes.\n{}", texts.join("\n"))
}

async fn titles(notes: Notes, typed: CompletionInput) -> Vec<String> {
    let notes = notes.open();
    let titles = notes.keys().filter(|title| title.starts_with(&typed.value));
    titles.cloned().collect()
}

fn server(notes: &Notes) -> Server {
    Server::new("notes", "1.0.0").state(notes.clone(), |s| {
        let read = ResourceTemplate::new("note://{title}", "note", s.with_state(read));
        s.tool(write::tool)
            .tool(Tool::new(
                "count",
                "Count notes",
                s.with_state(Notes::count),
            ))
            .prompt(summary::prompt)
            .resource_template(read.complete("title", s.with_state(titles)))
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let notes = Notes::default();
    let session = testing::connect(&server(&notes)).await?;

    for (title, text) in [("tea", "Buy some"), ("teapot", "Mend it")] {
        let note = json!({"title": title, "text": text});
        session.call_tool("write", note).await?;
    }
    let count: usize = session.call_tool("count", ()).structured().await?;
    println!("{count} notes; the program has {}", notes.open().len());

    let titles = session.complete_resource("note://{title}", "title", "te");
    for title in titles.await?.completion.values {
        let uri = format!("note://{title}");
        for note in session.read_resource(uri).await?.contents {
            println!("{title}: {}", note.as_text().unwrap_or_default());
        }
    }
    for message in session.get_prompt("summary", ()).await?.messages {
        println!("{}", message.content.as_text().unwrap_or_default());
    }
    session.close().await
}
