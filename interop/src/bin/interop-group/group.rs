//! A group of all servers.

use std::time::Duration;

use oxmcp::{Client, protocol::CallToolResult};
use oxmcp_group::{ClientGroup, GroupEvent, GroupEvents, GroupSession, ServerState};
use serde_json::{Value, json};

use crate::{
    failures::{self, Caller, Gate, MEMORY, SLOW, TIME},
    processes,
    servers::{Outcome, Servers, ensure},
};

impl Caller for GroupSession {
    async fn call(
        &self,
        tool: &str,
        arguments: Value,
        timeout: Duration,
    ) -> oxmcp::Result<CallToolResult> {
        self.call_tool(tool, arguments)
            .timeout(timeout)
            .max_total(timeout)
            .await
    }
}

fn group(servers: &Servers) -> ClientGroup {
    ClientGroup::new(Client::new("interop-group", "1.0.0")).config(&servers.config)
}

/// Uses a feature of each server.
pub(crate) async fn work(servers: &Servers) -> Outcome {
    let group = group(servers).connect().await?;
    for server in group.servers() {
        let is_whole = server.state == ServerState::Ready && server.problems.is_empty();
        ensure(is_whole, format!("not connected: {server:?}"))?;
    }
    let repository = servers.scratch.join("repository");
    let entities = json!([{"name": "teapot", "entityType": "pot", "observations": ["is blue"]}]);
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    for (tool, arguments, text) in [
        ("everything_get-sum", json!({"a": 1, "b": 2}), "is 3"),
        ("files_list_allowed_directories", json!({}), "servers"),
        (
            "memory_create_entities",
            json!({"entities": entities}),
            "teapot",
        ),
        ("memory_search_nodes", json!({"query": "blue"}), "teapot"),
        ("time_convert_time", noon, "21:00"),
        ("git_git_log", json!({"repo_path": repository}), "first"),
    ] {
        let result = group.call(tool, arguments, processes::LIMIT).await?;
        let seen = result.to_text();
        let is_right = !result.is_error && seen.contains(text);
        ensure(is_right, format!("{tool}: {seen}"))?;
    }
    let prompts: Vec<_> = group.prompts().iter().map(|it| it.name.clone()).collect();
    let has_both = ["everything_args-prompt", "fetch_fetch"].map(|it| prompts.contains(&it.into()));
    ensure(has_both == [true, true], format!("prompts: {prompts:?}"))?;
    let graph = group.read_resource("memory://knowledge-graph").await?;
    let graph = format!("{:?}", graph.contents);
    ensure(graph.contains("is blue"), graph)?;
    group.close().await;
    Ok(())
}

async fn ready(events: &mut GroupEvents, label: &str) -> Outcome {
    while let Some(event) = events.next().await {
        match event {
            GroupEvent::Server { server, state } if server == label => match state {
                ServerState::Ready => return Ok(()),
                ServerState::Failed { reason } => return Err(format!("{label}: {reason}").into()),
                _ => {}
            },
            _ => {}
        }
    }
    Err("the group has ended".into())
}

/// Lets servers fail.
pub(crate) async fn fail(servers: &Servers) -> Outcome {
    let gate = Gate::new(servers);
    let group = group(servers).config(&servers.slow).start()?;
    let mut events = group.events();
    let labels = servers.config.servers().iter().map(|it| it.name());
    let mut left: Vec<_> = labels.collect();
    while !left.is_empty() {
        if let Some(GroupEvent::Server { server, state }) = events.next().await
            && state == ServerState::Ready
        {
            left.retain(|it| *it != server);
        }
    }
    failures::others_answer(&group, SLOW).await?;
    let is_listed = group.tools().iter().any(|it| it.name.starts_with("slow_"));
    ensure(!is_listed, "the gate is closed")?;
    gate.open()?;
    ready(&mut events, "slow").await?;
    failures::answers(&group, SLOW).await?;
    for probe in [MEMORY, TIME] {
        failures::stop(&group, probe).await?;
        failures::kill(&group, probe).await?;
    }
    failures::kill_in_a_call(&group).await?;
    group.close().await;
    Ok(())
}
