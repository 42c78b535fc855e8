//! An agent: a model that uses the tools of several servers. The model is scripted, the servers are processes.
//!
//! `cargo run --example agent --features group`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;

use oxmcp::{
    Accept, Client, RequestContext, Result, Server, ToolError, protocol::ElicitFormParams, stdio,
};
use oxmcp_group::{ClientGroup, ConfigReader, ModelApi};
use serde_json::{Value, json};

/// The configuration, in the format of most hosts. Both servers are this program.
const CONFIG: &str = r#"{
  "mcpServers": {
    "calculator": {"command": "${AGENT}", "args": ["calculator"]},
    "notes": {"command": "${AGENT}", "args": ["notes"]}, // a trailing comma
  }
}"#;

/// Add two numbers
#[oxmcp::tool(read_only)]
async fn add(a: f64, b: f64) -> f64 {
    a + b
}

#[derive(serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
struct Confirm {
    confirm: bool,
}

/// Write a note
#[oxmcp::tool]
async fn write(cx: RequestContext, text: String) -> std::result::Result<String, ToolError> {
    let Confirm { confirm } = cx.ask("confirm", format!("Write {text:?}?")).await?;
    Ok(if confirm {
        "written"
    } else {
        "the user did not confirm"
    }
    .into())
}

/// The model: a script in the place of a request to an API. It gets the tools, and answers the last message.
fn model(tools: &Value, messages: &[Value]) -> Value {
    let call = |name: &str, input: Value| {
        let tools = tools.as_array().into_iter().flatten();
        assert!(tools.clone().any(|it| it["name"] == name), "no tool {name}");
        json!([{"type": "tool_use", "id": messages.len().to_string(), "name": name, "input": input}])
    };
    let last = messages.last();
    let last = last.and_then(|it| it.pointer("/content/0/content/0/text"));
    let result = last.and_then(Value::as_str).unwrap_or_default();
    match messages.len() {
        1 => call("calculator_add", json!({"a": 19, "b": 23})),
        3 => call(
            "notes_write",
            json!({"text": format!("The sum is {result}")}),
        ),
        5 => call("calculator_add", json!({"a": "nineteen"})),
        _ => json!([{"type": "text", "text": "I wrote a note, and learned what a number is."}]),
    }
}

/// Runs one of the servers, in a process that the group has started.
async fn serve(name: &str) -> Result<()> {
    let server = match name {
        "calculator" => Server::new("calculator", "1.0.0").tool(add::tool()),
        _ => Server::new("notes", "1.0.0").tool(write::tool()),
    };
    server.run(stdio()).await
}

#[tokio::main]
async fn main() -> Result<()> {
    if let Some(name) = env::args().nth(1) {
        return serve(&name).await;
    }
    let agent = env::current_exe()?.to_string_lossy().into_owned();
    let reader = ConfigReader::new().variables(move |_| Some(agent.clone()));
    let config = reader.parse(CONFIG, "mcp.json")?;
    // One handler for the questions of all servers.
    let user = |form: ElicitFormParams, cx: RequestContext| async move {
        let server = cx.server_label().unwrap_or_default();
        println!("{server} asks the user: {}", form.message);
        Accept(Confirm { confirm: true })
    };
    let client = Client::new("agent", "1.0.0").on_elicit(user);
    let group = ClientGroup::new(client).config(&config).connect().await?;
    for server in group.servers() {
        println!("{} is {:?}", server.label, server.state);
    }
    let api = ModelApi::AnthropicMessages;
    let tools = api.tools(group.tools().iter());
    let mut messages = vec![json!({"role": "user", "content": "Add 19 and 23, and note the sum."})];
    loop {
        let reply = model(&tools, &messages);
        messages.push(json!({"role": "assistant", "content": reply}));
        let mut results = Vec::new();
        for block in reply.as_array().into_iter().flatten() {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            if block["type"] != "tool_use" {
                println!("{}", text("text"));
                continue;
            }
            println!("{} {}", text("name"), block["input"]);
            let outcome = group.call_tool(text("name"), &block["input"]).await;
            let result = api.result(text("id"), &outcome);
            println!("  {result}");
            results.push(result);
        }
        if results.is_empty() {
            break;
        }
        messages.push(json!({"role": "user", "content": results}));
    }
    group.close().await;
    Ok(())
}
