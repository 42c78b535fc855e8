//! A server with five hundred tools, of which clients list two: one that finds the others, and one that calls them.
//!
//! `cargo run --example search`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{Result, SearchOptions, Server, Tool, testing};
use serde_json::{Value, json};

const PLACES: [&str; 10] = [
    "boiler", "pump", "valve", "tank", "mixer", "furnace", "conveyor", "cooler", "filter", "press",
];
const QUANTITIES: [&str; 5] = ["temperature", "pressure", "speed", "level", "vibration"];

/// The tools of a plant with ten lines, each with ten machines and five sensors.
fn sensors() -> impl Iterator<Item = Tool> {
    let machines = (1..=10).flat_map(|line| PLACES.map(|place| (line, place)));
    machines.flat_map(|(line, place)| {
        QUANTITIES.map(|quantity| {
            Tool::new(
                format!("{place}_{line}_{quantity}"),
                format!("Read the {quantity} of the {place} of production line {line}"),
                move || async move { format!("{quantity} of {place} {line}: normal") },
            )
            .read_only()
        })
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = SearchOptions::default().max_results(3);
    let server = Server::new("plant", "1.0.0")
        .tools(sensors())
        .search_tools(options);
    let session = testing::connect(&server).await?;

    let listed = session.tools().all().await?;
    let names: Vec<_> = listed.iter().map(|tool| &*tool.name).collect();
    println!("of 500 tools, a client lists {}", names.join(" and "));

    // What a model would do:
    for query in [
        "vibration of the pump in line 7",
        "how hot is furnace 3: temperature",
    ] {
        let call = session.call_tool("search_tools", json!({"query": query}));
        let found: Value = call.structured().await?;
        let best = found
            .pointer("/tools/0/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        println!("{query:?} finds {best}");
        // This is a call of the tool found, with its own validation, scopes and metrics.
        let result = session
            .call_tool("call_tool", json!({"name": best}))
            .await?;
        println!("{}", result.to_text());
    }

    // All tools only read, so the tool that calls them is read-only, too.
    let calling = listed.iter().find(|tool| tool.name == "call_tool");
    let annotations = calling.and_then(|tool| tool.annotations.as_ref());
    let is_read_only = annotations.and_then(|it| it.read_only_hint);
    println!("call_tool is read-only: {}", is_read_only == Some(true));
    Ok(())
}
