//! Tools that answer at once: with content of every kind, with progress, with a log, or with an error.

use std::time::Duration;

use oxmcp::{
    RequestContext, Server, Tool, ToolError,
    protocol::{ContentBlock, LoggingLevel, ResourceContents},
};
use tokio::time::sleep;

use crate::offers::{self, PNG};

/// A WAV file without sound: a header without samples.
const WAV: &[u8] =
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

/// The pause between two messages, so that they visibly arrive one by one.
const PAUSE: Duration = Duration::from_millis(50);

#[rustfmt::skip]
pub(crate) fn offer(server: Server) -> Server {
    server.tools([
        about(),
        simple_text(),
        Tool::new("test_image_content", "Return an image", image),
        Tool::new("test_audio_content", "Return a sound", audio),
        Tool::new("test_embedded_resource", "Return a resource", embedded_resource),
        Tool::new("test_multiple_content_types", "Return content of several types", several),
        Tool::new("test_tool_with_logging", "Log three messages", log),
        Tool::new("test_logging_tool", "Log one message", log_once),
        Tool::new("test_tool_with_progress", "Report progress", progress),
        Tool::new("test_error_handling", "Fail", fail),
        Tool::new("test_reconnection", "Answer on another stream", on_another_stream),
        Tool::new("test_trigger_tool_change", "Change the list of tools", change_tools),
        Tool::new("test_trigger_prompt_change", "Change the list of prompts", change_prompts),
    ])
}

/// The suite calls the first listed tool without arguments, as a client without capabilities. Lists are sorted by name.
fn about() -> Tool {
    Tool::new("about", "Say what this server is", || async {
        "a server for the conformance suite"
    })
}

fn simple_text() -> Tool {
    Tool::new("test_simple_text", "Return a text", || async {
        "This is a simple text response for testing."
    })
}

async fn image() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

async fn audio() -> ContentBlock {
    ContentBlock::audio(WAV, "audio/wav")
}

async fn embedded_resource() -> ContentBlock {
    let text = "This is an embedded resource content.";
    let contents = ResourceContents::text("test://embedded-resource", text);
    ContentBlock::resource(contents.with_mime_type("text/plain"))
}

async fn several() -> [ContentBlock; 3] {
    let json = r#"{"test":"data","value":123}"#;
    let contents = ResourceContents::text("test://mixed-content-resource", json);
    [
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image(PNG, "image/png"),
        ContentBlock::resource(contents.with_mime_type("application/json")),
    ]
}

async fn log(cx: RequestContext) -> &'static str {
    cx.log(LoggingLevel::Info, "Tool execution started").await;
    sleep(PAUSE).await;
    cx.log(LoggingLevel::Info, "Tool processing data").await;
    sleep(PAUSE).await;
    cx.log(LoggingLevel::Info, "Tool execution completed").await;
    "Three messages were logged, if the client asked for them."
}

/// A modern client receives log messages only if it asks for them.
async fn log_once(cx: RequestContext) -> &'static str {
    cx.log(
        LoggingLevel::Error,
        "Only a client that asked for logs receives this",
    )
    .await;
    "A message was logged, if the client asked for it."
}

async fn progress(cx: RequestContext) -> &'static str {
    for done in [0, 50, 100] {
        cx.progress(done).total(100).await;
        sleep(PAUSE).await;
    }
    "All is done."
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new(
        "This tool intentionally returns an error for testing",
    ))
}

/// The answer is sent while the client reconnects: it is among the events that the client missed.
async fn on_another_stream(cx: RequestContext) -> &'static str {
    cx.close_stream(PAUSE);
    sleep(PAUSE).await;
    "Reconnection test completed successfully."
}

/// The tool replaces the one with the same name. Subscribers are notified, and the list keeps its order.
async fn change_tools(cx: RequestContext) -> oxmcp::Result<&'static str> {
    this_server(&cx)?.add_tools([simple_text()])?;
    Ok("The list of tools has changed.")
}

async fn change_prompts(cx: RequestContext) -> oxmcp::Result<&'static str> {
    this_server(&cx)?.add_prompts([offers::simple_prompt()])?;
    Ok("The list of prompts has changed.")
}

fn this_server(cx: &RequestContext) -> oxmcp::Result<Server> {
    let session = cx.server_session();
    session
        .map(|session| session.server())
        .ok_or_else(|| oxmcp::Error::internal("only servers call tools"))
}
