//! A server with apps, for the tests in a browser: `interop-apps VIEWS ORIGIN` over stdio, `interop-apps VIEWS ORIGIN ADDRESS` over
//! HTTP. VIEWS is the directory of the documents and of the file `calls`, which lists the tools that were called. ORIGIN is the
//! only one to which a document may connect.

use std::{
    env, fs,
    fs::OpenOptions,
    future::pending,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use oxmcp::{
    Error, JsonSchema, RequestContext, Resource, Result, Server, Structured, Tool,
    http::StreamableHttp,
    middleware::{Next, Request, from_fn},
    stdio,
};
use oxmcp_apps::{App, MIME_TYPE, ServerExt, ToolExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Dice {
    count: u32,
}

#[derive(Serialize, JsonSchema)]
struct Rolled {
    numbers: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    city: String,
    celsius: f64,
}

async fn roll(Dice { count }: Dice) -> Structured<Rolled> {
    let numbers = (0..count).map(|it| it * 5 % 6 + 1).collect();
    Structured(Rolled { numbers })
}

async fn weather(City { city }: City) -> Structured<Weather> {
    Structured(Weather {
        city,
        celsius: 21.5,
    })
}

async fn done() -> &'static str {
    "done"
}

/// A server with one app for each document.
fn server(views: &Path, origin: &str) -> Result<Server> {
    let app = |name: &str| {
        let file = views.join(format!("{name}.html"));
        let html = fs::read_to_string(&file).map_err(|error| {
            Error::internal(format!("could not read {}: {error}", file.display()))
        })?;
        Ok::<_, Error>(App::new(format!("ui://test/{name}.html"), html).border(true))
    };
    let (dice, official, hostile) = (app("dice")?, app("official")?, app("hostile")?);
    let network = app("network")?.connect(origin);
    // An app of another server: this one has only its URI.
    let foreign = "ui://other/view.html";
    let stranger = Tool::new("stranger", "Show a foreign app", done);
    let stranger = stranger.meta("ui", json!({"resourceUri": foreign}));
    let foreign = Resource::new(foreign, "foreign", async |_: RequestContext| {
        Err::<String, _>(Error::resource_not_found("ui://other/view.html"))
    });
    Ok(Server::new("interop-apps", "1.0.0")
        .tool(Tool::new("roll", "Roll some dice", roll).app(&dice))
        .tool(Tool::new("reset", "Begin again", done).app_only(&dice))
        .tool(Tool::new("weather", "Tell the weather", weather).app(&official))
        .tool(Tool::new("refresh", "Read the sensors", done).app_only(&official))
        .tool(Tool::new("network", "Use the network", done).app(&network))
        .tool(Tool::new("hostile", "Attack the host", done).app(&hostile))
        .tool(Tool::new("slow", "Never end", pending::<&str>).app_only(&hostile))
        .tool(Tool::new("delete", "Delete everything", done).model_only(&hostile))
        .tool(stranger)
        .resource(foreign.mime_type(MIME_TYPE))
        .app(dice)
        .app(official)
        .app(network)
        .app(hostile))
}

/// Writes the name of each tool that is called into a file.
async fn record(
    file: Arc<PathBuf>,
    request: Request,
    next: Next,
) -> Result<oxmcp::middleware::Response> {
    if request.method() == "tools/call" {
        let params = request.raw_params().map_or("null", |it| it.get());
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let name = params.get("name").and_then(Value::as_str).unwrap_or("?");
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&*file)
            .and_then(|mut calls| writeln!(calls, "{name}"))
            .map_err(|error| Error::internal(format!("could not record a call: {error}")))?;
    }
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let [views, origin, address @ ..] = args.as_slice() else {
        return Err(Error::internal(
            "usage: interop-apps VIEWS ORIGIN [ADDRESS]",
        ));
    };
    let calls = Arc::new(Path::new(views).join("calls"));
    let layer = from_fn(move |request, next| record(Arc::clone(&calls), request, next));
    let server = server(Path::new(views), origin)?.layer(layer);
    match address {
        [] => server.run(stdio()).await,
        [address, ..] => {
            let _serving = StreamableHttp::from(server).serve(*address).await?;
            pending().await
        }
    }
}
