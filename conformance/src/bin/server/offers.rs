//! Prompts and resources of the suite's server.

use oxmcp::{
    JsonSchema, Prompt, Resource, ResourceTemplate, Server,
    protocol::{ContentBlock, PromptMessage, ResourceContents},
};
use serde::Deserialize;

/// A red pixel.
pub(crate) const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\xdac\xf8\xcf\xc0\0\0\x03\x01\x01\0\xf7\x03AC\0\0\0\0IEND\xaeB`\x82";

#[rustfmt::skip]
pub(crate) fn offer(server: Server) -> Server {
    server
        .prompts([
            simple_prompt(),
            Prompt::new("test_prompt_with_arguments", "Has two arguments", with_arguments)
                .complete("arg1", ["test", "tested", "testing"]),
            Prompt::new("test_prompt_with_embedded_resource", "Has a resource in it", with_resource),
            Prompt::new("test_prompt_with_image", "Has an image in it", with_image),
        ])
        .resources([
            Resource::text("test://static-text", "text", "This is the content of the static text resource.")
                .description("A text that stays as it is")
                .mime_type("text/plain"),
            Resource::blob("test://static-binary", "binary", PNG)
                .description("An image that stays as it is")
                .mime_type("image/png"),
            Resource::text("test://watched-resource", "watched", "This is a resource to watch.")
                .description("A text that can be watched")
                .mime_type("text/plain"),
        ])
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "template", data)
                .description("Some data for each id")
                .mime_type("application/json"),
        )
}

pub(crate) fn simple_prompt() -> Prompt {
    Prompt::new("test_simple_prompt", "Has no arguments", || async {
        "This is a simple prompt for testing."
    })
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The first argument
    arg1: String,
    /// The second argument
    arg2: String,
}

async fn with_arguments(Arguments { arg1, arg2 }: Arguments) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedding {
    /// The URI of the resource
    resource_uri: String,
}

async fn with_resource(Embedding { resource_uri }: Embedding) -> [PromptMessage; 2] {
    let contents = ResourceContents::text(resource_uri, "Embedded resource content for testing.");
    [
        PromptMessage::user(ContentBlock::resource(
            contents.with_mime_type("text/plain"),
        )),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

async fn with_image() -> [PromptMessage; 2] {
    [
        PromptMessage::user(ContentBlock::image(PNG, "image/png")),
        PromptMessage::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Id {
    id: String,
}

async fn data(Id { id }: Id) -> String {
    serde_json::json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")})
        .to_string()
}
