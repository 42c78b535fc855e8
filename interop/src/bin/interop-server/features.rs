//! The server's features other than plain tools: prompts, resources, questions to the client, and a
//! log.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use oxmcp::{
    JsonSchema, Prompt, RequestContext, Resource, ResourceTemplate, Server, Tool, ToolError,
    protocol::{CreateMessageParams, LoggingLevel, SamplingMessage},
};
use serde::Deserialize;
use serde_json::json;

/// The resource that changes.
const GREETING: &str = "memo://greeting";

#[derive(Deserialize, JsonSchema)]
struct Review {
    code: String,
    language: Option<Language>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    Go,
    Python,
    Rust,
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    topic: String,
    page: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    project: String,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The name of the project
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    question: String,
}

/// Adds all features of this file.
pub(crate) fn offer(server: Server) -> oxmcp::Result<Server> {
    let touched = Arc::new(AtomicBool::new(false));
    let server = server
        .logging()
        .subscriptions()
        .prompt(Prompt::new("review", "Review code", review))
        .resource(greeting(Arc::clone(&touched)))
        .resource(Resource::blob("memo://pixel", "pixel", vec![0, 255, 127]).mime_type("image/png"))
        .resource_template(
            ResourceTemplate::new("memo://pages/{topic}/{page}", "page", page)
                .mime_type("text/plain")
                .complete("topic", ["tea", "teak", "tulip"]),
        )
        .tool(Tool::new(
            "delete",
            "Delete a project, after two questions",
            delete,
        ))
        .tool(Tool::new("think", "Ask the client's model", think))
        .tool(Tool::new("where", "Tell the client's roots", roots))
        .tool(Tool::new("shout", "Log", shout));
    let telling = server.clone();
    server.add_tools([Tool::new("touch", "Change the greeting", move || {
        touched.store(true, Ordering::Relaxed);
        telling.resource_updated(GREETING);
        async { "touched" }
    })])?;
    Ok(server)
}

async fn review(Review { code, language }: Review) -> String {
    let language = language.map_or_else(|| "unknown".into(), |it| format!("{it:?}").to_lowercase());
    format!("Review this {language} code: {code}")
}

fn greeting(touched: Arc<AtomicBool>) -> Resource {
    let greeting = move || {
        let again = if touched.load(Ordering::Relaxed) {
            " again"
        } else {
            ""
        };
        async move { format!("hello{again}") }
    };
    Resource::new(GREETING, "greeting", greeting).mime_type("text/plain")
}

async fn page(Page { topic, page }: Page) -> String {
    format!("page {page} of {topic}")
}

async fn delete(cx: RequestContext, Delete { project }: Delete) -> Result<String, ToolError> {
    /// The number of times that the files were counted, by all calls together.
    static COUNTED: AtomicUsize = AtomicUsize::new(0);

    let before = cx
        .step("before", || async { COUNTED.load(Ordering::Relaxed) })
        .await?;
    let which = format!("Which project shall be deleted? Perhaps {project}?");
    let Which { name } = cx.ask("which", which).await?;
    let count = || async {
        COUNTED.fetch_add(1, Ordering::Relaxed);
        3
    };
    let files: u32 = cx.step("count", count).await?;
    let sure = format!("Really delete {name} with {files} files?");
    let Sure { sure } = cx.ask("sure", sure).await?;
    match COUNTED.load(Ordering::Relaxed) - before {
        _ if !sure => Err(ToolError::new("nothing was deleted")),
        1 => Ok(format!("deleted {name}, counted once")),
        times => Ok(format!("deleted {name}, counted {times} times")),
    }
}

async fn think(cx: RequestContext, Question { question }: Question) -> Result<String, ToolError> {
    let params = CreateMessageParams::new([SamplingMessage::user(question)], 100);
    let thought = cx.sample("thought", params).await?;
    let said = thought.content.iter().find_map(|content| content.as_text());
    Ok(format!("the model says: {}", said.unwrap_or_default()))
}

async fn roots(cx: RequestContext) -> Result<String, ToolError> {
    let uris = cx.roots().await?.into_iter().map(|root| root.uri);
    Ok(uris.collect::<Vec<_>>().join("\n"))
}

async fn shout(cx: RequestContext) -> &'static str {
    cx.log(LoggingLevel::Info, json!({"msg": "quiet"})).await;
    cx.log(LoggingLevel::Warning, json!({"msg": "loud"})).await;
    "shouted"
}
