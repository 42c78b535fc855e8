//! Results of tools: text, numbers, your own types, images, or the whole result.
//!
//! `cargo run --example structured_output`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    JsonSchema, Result, Server, Structured, Tool,
    protocol::{CallToolResult, ContentBlock},
    testing,
};
use serde_json::json;

#[derive(serde::Deserialize, JsonSchema)]
struct Place {
    city: String,
}

// Doc comments also become descriptions in the output schema. Clients get the schema with the list of tools.
/// the weather of a place
#[derive(Debug, serde::Serialize, serde::Deserialize, JsonSchema)]
struct Weather {
    /// degrees Celsius
    temperature: f64,
    sky: Sky,
}

#[derive(Debug, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sky {
    Clear,
    Cloudy,
}

async fn weather(Place { city }: Place) -> Structured<Weather> {
    let sky = if city == "London" {
        Sky::Cloudy
    } else {
        Sky::Clear
    };
    Structured(Weather {
        temperature: 21.5,
        sky,
    })
}

async fn flag() -> [ContentBlock; 2] {
    let white_pixel = b"P1 1 1 0".to_vec();
    [
        ContentBlock::text("the flag of nowhere"),
        ContentBlock::image(white_pixel, "image/x-portable-bitmap"),
    ]
}

async fn by_hand() -> CallToolResult {
    let mut result = CallToolResult::text("with metadata");
    result.meta.insert("com.example/cost", 3);
    result
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("weather", "1.0.0")
        .tool(Tool::new("weather", "Tell the weather", weather).read_only())
        .tool(Tool::new("flag", "Show a flag", flag))
        .tool(Tool::new("by_hand", "Return a whole result", by_hand));

    let session = testing::connect(&server).await?;
    for tool in session.tools().all().await? {
        let schema = tool
            .output_schema
            .as_ref()
            .map_or("none", |schema| schema.get());
        println!("{}: output schema {schema}", tool.name);
    }

    // Read a result as a type…
    let weather: Weather = session
        .call_tool("weather", json!({"city": "London"}))
        .structured()
        .await?;
    println!("{weather:?}");
    // …or as content of any kind.
    for block in session.call_tool("flag", ()).await?.content {
        match block {
            ContentBlock::Text(text) => println!("text: {}", text.text),
            ContentBlock::Image(image) => {
                println!("image: {}, {} bytes", image.mime_type, image.data.len());
            }
            other => println!("something else: {other:?}"),
        }
    }
    session.close().await
}
