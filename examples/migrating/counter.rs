//! The counter of rmcp's examples, ported to oxmcp: tools and prompts that share state, resources, and a test of all of them.
//!
//! `cargo run --example counter`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering::Relaxed},
    },
    time::Duration,
};

use oxmcp::{RequestContext, Resource, Server, protocol::PromptMessage, testing};
use serde_json::json;
use tokio::time::sleep;

type Counter = Arc<AtomicI32>;

/// Increment the counter by 1
#[oxmcp::tool]
async fn increment(#[state] counter: Counter) -> i32 {
    counter.fetch_add(1, Relaxed) + 1
}

/// Decrement the counter by 1
#[oxmcp::tool]
async fn decrement(#[state] counter: Counter) -> i32 {
    counter.fetch_sub(1, Relaxed) - 1
}

/// Get the value of the counter
#[oxmcp::tool(read_only)]
async fn get_value(#[state] counter: Counter) -> i32 {
    counter.load(Relaxed)
}

/// Run a long task
#[oxmcp::tool]
async fn long_task(cx: RequestContext) -> &'static str {
    for second in 0..10 {
        cx.progress(second).total(10).await;
        sleep(Duration::from_secs(1)).await; // a cancelled call ends here
    }
    "done"
}

/// Calculate the sum of two numbers
#[oxmcp::tool]
async fn sum(a: i32, b: i32) -> i32 {
    a.saturating_add(b)
}

/// Repeat a message
#[oxmcp::prompt]
async fn example_prompt(
    /// what to put into the prompt
    message: String,
) -> String {
    format!("The message is: {message}")
}

/// Analyze the counter, and suggest the next steps
#[oxmcp::prompt]
async fn counter_analysis(
    #[state] counter: Counter,
    /// the value to reach
    goal: i32,
    /// "fast" or "careful"
    strategy: Option<String>,
) -> [PromptMessage; 2] {
    let (value, strategy) = (
        counter.load(Relaxed),
        strategy.unwrap_or_else(|| "careful".to_owned()),
    );
    [
        PromptMessage::assistant("I look at the counter, and suggest what to do."),
        PromptMessage::user(format!(
            "The value is {value}, the goal is {goal}. Be {strategy}."
        )),
    ]
}

fn server(counter: &Counter) -> Server {
    Server::new("counter", "1.0.0")
        .instructions("Count with the tools. The prompts help to reach a goal.")
        .state(counter.clone(), |s| {
            s.tools([increment::tool, decrement::tool, get_value::tool])
                .prompt(counter_analysis::prompt)
        })
        .tools([long_task::tool(), sum::tool()])
        .prompt(example_prompt::prompt())
        .resources([
            Resource::text("str:////Users/to/some/path/", "cwd", "/Users/to/some/path/"),
            Resource::text("memo://insights", "memo", "Five things that we know …"),
        ])
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let counter = Counter::default();
    let t = testing::connect(&server(&counter)).await?;
    for (tool, arguments) in [
        ("increment", json!({})),
        ("increment", json!({})),
        ("decrement", json!({})),
        ("sum", json!({"a": 40, "b": 2})),
    ] {
        println!("{tool}: {}", t.call_tool(tool, arguments).await?.to_text());
    }
    let analysis = t.get_prompt("counter_analysis", [("goal", "20")]).await?;
    println!("{}", analysis.messages.len());
    println!("called as a function: {}", get_value(counter).await);
    Ok(())
}
