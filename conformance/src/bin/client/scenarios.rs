//! The scenarios of the client, one function each.

use std::error::Error;

use oxmcp::{ClientSession, protocol::PaginatedParams};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::skills;

type Outcome = Result<(), Box<dyn Error>>;

/// Runs one scenario.
pub(crate) async fn run(scenario: &str, session: &ClientSession, context: &Value) -> Outcome {
    match scenario {
        "initialize" | "request-metadata" => list_one_page(session).await,
        "json-schema-ref-no-deref" => list(session).await,
        "tools_call" => call(session, "add_numbers", json!({"a": 5, "b": 3})).await,
        "elicitation-sep1034-client-defaults" => {
            call(session, "test_client_elicitation_defaults", json!({})).await
        }
        "sse-retry" => call(session, "test_reconnection", json!({})).await,
        "sep-2322-client-request-state" => call_all_at_once(session).await,
        "http-standard-headers" => try_everything(session).await,
        "http-custom-headers" => call_as_told(session, context).await,
        "http-invalid-tool-headers" => call_what_is_listed(session).await,
        "json-schema-2020-12-preservation" => send_back_schema(session).await,
        "sep-2640-client-no-prefetch" => skills::list(session).await,
        _ if scenario.starts_with("sep-2640-client-verify-") => skills::load(session).await,
        _ if scenario.starts_with("auth/") => call(session, "test-tool", json!({})).await,
        _ => Err(format!("unknown scenario `{scenario}`").into()),
    }
}

/// The servers of these scenarios list tools that they do not declare, and expect the client to list them anyway.
async fn list_one_page(session: &ClientSession) -> Outcome {
    session.list_tools(PaginatedParams::default()).await?;
    Ok(())
}

async fn list(session: &ClientSession) -> Outcome {
    session.tools().all().await?;
    Ok(())
}

/// Lists the tools before the call, as clients do.
async fn call(session: &ClientSession, tool: &str, arguments: Value) -> Outcome {
    list(session).await?;
    session.call_tool(tool, arguments).await?;
    Ok(())
}

/// Some of these tools ask the user, and some do not. No call may get an answer that belongs to another.
async fn call_all_at_once(session: &ClientSession) -> Outcome {
    list(session).await?;
    let call = async |tool| session.call_tool(tool, json!({})).await;
    tokio::try_join!(
        call("test_mrtr_echo_state"),
        call("test_mrtr_no_state"),
        call("test_mrtr_unrelated"),
        call("test_mrtr_no_result_type"),
    )?;
    Ok(())
}

async fn try_everything(session: &ClientSession) -> Outcome {
    for tool in session.tools().all().await? {
        session.call_tool(tool.name, json!({})).await?;
    }
    for resource in session.resources().all().await? {
        session.read_resource(resource.uri).await?;
    }
    for prompt in session.prompts().all().await? {
        session.get_prompt(prompt.name, ()).await?;
    }
    Ok(())
}

async fn call_as_told(session: &ClientSession, context: &Value) -> Outcome {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Context {
        tool_calls: Vec<ToolCall>,
    }
    #[derive(Deserialize)]
    struct ToolCall {
        name: String,
        arguments: Value,
    }
    list(session).await?;
    let Context { tool_calls } = Context::deserialize(context)?;
    for ToolCall { name, arguments } in tool_calls {
        session.call_tool(name, arguments).await?;
    }
    Ok(())
}

/// Tools with invalid definitions are not listed at all.
async fn call_what_is_listed(session: &ClientSession) -> Outcome {
    for tool in session.tools().all().await? {
        session
            .call_tool(tool.name, json!({"region": "us-east1"}))
            .await?;
    }
    Ok(())
}

async fn send_back_schema(session: &ClientSession) -> Outcome {
    let tools = session.tools().all().await?;
    let tool = tools
        .into_iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = tool.ok_or("the tool is not listed")?.input_schema;
    session
        .call_tool("json_schema_echo", json!({"schema": schema}))
        .await?;
    Ok(())
}
