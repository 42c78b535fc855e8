//! A gateway: three servers behind one endpoint, with the tools and resources of all.
//!
//! `cargo run --example mounting --features gateway`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, JsonSchema, RequestContext, Resource, Result, Server, Tool, ToolError,
    http::{Endpoint, StreamableHttp},
    protocol::ElicitFormParams,
};
use oxmcp_group::Gateway;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, Serialize, JsonSchema)]
struct City {
    city: String,
}

fn weather() -> Server {
    let now = |City { city }: City| async move { format!("sunny in {city}") };
    Server::new("weather", "1.0.0").tool(Tool::new("now", "Tell the weather", now))
}

/// A server that asks the user: the question passes through the gateway.
fn travel() -> Server {
    let book = |cx: RequestContext| async move {
        let City { city } = cx.ask("city", "Where to?").await?;
        Ok::<_, ToolError>(format!("booked a train to {city}"))
    };
    Server::new("travel", "1.0.0").tool(Tool::new("book", "Book a train", book))
}

fn notes() -> Server {
    Server::new("notes", "1.0.0").resource(Resource::text("note://1", "packing", "two socks"))
}

#[tokio::main]
async fn main() -> Result<()> {
    // A server could also be a process: `Upstream::new(|| Command::new("notes-server"))`.
    let gateway = Gateway::new(Client::new("gateway", "1.0.0"))
        .mount("weather", weather())
        .mount("travel", travel())
        .mount("notes", notes())
        .start(Server::new("all", "1.0.0"))
        .await?;
    let handle = StreamableHttp::from(gateway.server())
        .serve(("127.0.0.1", 0))
        .await?;

    let client = Client::new("example", "1.0.0").on_elicit(|form: ElicitFormParams| async move {
        println!("the gateway asks: {}", form.message);
        oxmcp::Accept(City {
            city: "Lyon".into(),
        })
    });
    let url = format!("http://{}/mcp", handle.local_addr());
    let session = client.connect(Endpoint::new(url)).await?;
    for tool in session.tools().all().await? {
        println!("{}", tool.name);
    }
    for (tool, arguments) in [
        ("weather_now", json!({"city": "Oslo"})),
        ("travel_book", json!({})),
    ] {
        let result = session.call_tool(tool, arguments).await?;
        println!("{tool}: {}", result.as_text().unwrap_or_default());
    }
    let note = session.read_resource("note://1").await?;
    println!("{:?}", note.contents.first().and_then(|it| it.as_text()));
    session.close().await?;
    handle.close().await;
    Ok(())
}
