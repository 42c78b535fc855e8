//! The server's tools whose calls become tasks.

use std::time::Duration;

use oxmcp::{
    Error, JsonSchema, RequestContext, Server, Tool, ToolError,
    tasks::{TaskPolicy, TaskTool, Tasks},
};
use serde::Deserialize;
use tokio::time::sleep;

/// Adds all tools of this file.
pub(crate) fn offer(server: Server) -> Server {
    let tasks = Tasks::in_memory().poll_interval(Duration::from_millis(50));
    let soon = TaskPolicy::After(Duration::from_millis(100));
    server.extension(tasks.extension()).tools([
        Tool::new("mill", "Mill sacks of grain, 20 ms for each", mill).task(soon),
        Tool::new("bake", "Bake what the user wants", bake).task(TaskPolicy::Required),
        Tool::new(
            "burn",
            "Fail, by an error of the tool or of the protocol",
            burn,
        )
        .task(TaskPolicy::Required),
    ])
}

#[derive(Deserialize, JsonSchema)]
struct Grain {
    sacks: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Bread {
    /// White, or rye
    flour: String,
}

#[derive(Deserialize, JsonSchema)]
struct Loaves {
    loaves: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Whose {
    /// Whether to fail with a protocol error
    protocol: bool,
}

async fn mill(cx: RequestContext, Grain { sacks }: Grain) -> String {
    for sack in 1..=sacks {
        sleep(Duration::from_millis(20)).await;
        let progress = cx.progress(sack).total(sacks);
        progress.message(format!("sack {sack}")).await;
    }
    format!("{sacks} sacks of flour")
}

async fn bake(cx: RequestContext) -> Result<String, ToolError> {
    let Bread { flour } = cx.ask("flour", "Of which flour?").await?;
    let how_many = format!("How many loaves of {flour}?");
    let Loaves { loaves } = cx.ask("loaves", how_many).await?;
    Ok(format!("{loaves} loaves of {flour}"))
}

async fn burn(Whose { protocol }: Whose) -> Result<String, ToolError> {
    sleep(Duration::from_millis(20)).await;
    match protocol {
        true => Err(Error::invalid_params("there is nothing to burn").into()),
        false => Err(ToolError::new("it is burnt")),
    }
}
