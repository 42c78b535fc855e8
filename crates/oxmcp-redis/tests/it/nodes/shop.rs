//! The server of the nodes, the ledger of its handlers' actions, and clients that know the right answers.

use std::time::Duration;

use oxmcp::{
    Client, ClientSession, JsonSchema, RequestContext, Result, Revision, Server, Tool,
    http::{Endpoint, ServerHandle, StreamableHttp},
    protocol::{ElicitFormParams, ElicitResult},
    tasks::{ClientTasks, TaskPolicy, TaskTool, Tasks},
};
use oxmcp_redis::Redis;
use redis::{AsyncConnectionConfig, aio::MultiplexedConnection};
use serde_json::json;

#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    id: String,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    code: String,
}

/// Counts the actions of handlers, by call ID.
#[derive(Clone)]
pub(super) struct Ledger {
    connection: MultiplexedConnection,
    prefix: String,
}

impl Ledger {
    pub(super) async fn open(url: &str, prefix: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        // Reads the actions of an hour of calls at once.
        let config =
            AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(60)));
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        Self {
            connection: connection.await.unwrap(),
            prefix: format!("ledger:{prefix}"),
        }
    }

    async fn note(&self, entry: &str) {
        let mut command = redis::cmd("HINCRBY");
        command.arg(&self.prefix).arg(entry).arg(1);
        let mut connection = self.connection.clone();
        let () = command.query_async(&mut connection).await.unwrap();
    }

    /// The number of times each action was done.
    pub(super) async fn entries(&self) -> Vec<(String, u32)> {
        let mut command = redis::cmd("HGETALL");
        command.arg(&self.prefix);
        let mut connection = self.connection.clone();
        command.query_async(&mut connection).await.unwrap()
    }
}

async fn plain(ledger: Ledger, _cx: RequestContext, Order { id }: Order) -> String {
    ledger.note(&format!("plain {id}")).await;
    answer("plain", &id)
}

async fn streamed(ledger: Ledger, cx: RequestContext, order: Order) -> String {
    in_parts(("streamed", 5), ledger, cx, order).await
}

/// A handler that runs long enough to be killed.
async fn slow(ledger: Ledger, cx: RequestContext, order: Order) -> String {
    in_parts(("slow", 100), ledger, cx, order).await
}

async fn in_parts(
    (tool, parts): (&str, u32),
    ledger: Ledger,
    cx: RequestContext,
    Order { id }: Order,
) -> String {
    for part in 1..=parts {
        cx.progress(part).total(parts).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ledger.note(&format!("{tool} {id}")).await;
    answer(tool, &id)
}

async fn asked(ledger: Ledger, cx: RequestContext, Order { id }: Order) -> Result<String> {
    let step = cx.step("reserve", || async {
        ledger.note(&format!("reserved {id}")).await;
        answer("reserved", &id)
    });
    let reserved: String = step.await?;
    let Confirm { code } = cx.ask("confirm", format!("The code of {id}?")).await?;
    ledger.note(&format!("asked {id}")).await;
    Ok(format!("{reserved}, {code}"))
}

async fn long(ledger: Ledger, cx: RequestContext, Order { id }: Order) -> String {
    cx.progress(1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    ledger.note(&format!("long {id}")).await;
    answer("long", &id)
}

fn answer(what: &str, id: &str) -> String {
    format!("{what} {id}")
}

/// The result of a tool call.
pub(super) fn right_answer(tool: &str, id: &str) -> String {
    match tool {
        "asked" => format!("reserved {id}, code of {id}"),
        tool => answer(tool, id),
    }
}

/// A server that records its actions in the ledger.
pub(super) fn server(ledger: &Ledger) -> Server {
    Server::new("shop", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .state(ledger.clone(), |scope| {
            let long = Tool::new("long", "Becomes a task", scope.with_state(long));
            scope
                .tool(Tool::new("plain", "Answers", scope.with_state(plain)))
                .tool(Tool::new(
                    "streamed",
                    "Reports first",
                    scope.with_state(streamed),
                ))
                .tool(Tool::new("slow", "Reports long", scope.with_state(slow)))
                .tool(Tool::new("asked", "Asks first", scope.with_state(asked)))
                .tool(long.task(TaskPolicy::Always))
        })
}

/// A node, at this port or any free one.
pub(super) async fn node(ledger: &Ledger, store: Redis, port: u16) -> Result<ServerHandle> {
    let endpoint = StreamableHttp::from(server(ledger)).cluster(store);
    endpoint.serve((std::net::Ipv4Addr::LOCALHOST, port)).await
}

/// A client whose user gives the right code for each order.
pub(super) fn client() -> Client {
    Client::new("customer", "1.0.0")
        .tasks()
        .on_elicit(|form: ElicitFormParams| async move {
            let id = form.message.trim_start_matches("The code of ");
            let code = format!("code of {}", id.trim_end_matches('?'));
            ElicitResult::accept(&json!({"code": code}))
                .map_err(|error| oxmcp::Error::internal(error.to_string()))
        })
}

pub(super) async fn connect(url: &str, revision: Revision) -> Result<ClientSession> {
    let client = client().revisions([revision]);
    client.connect(Endpoint::new(url)).await
}

/// Calls a tool.
pub(super) async fn call(session: &ClientSession, tool: &str, id: &str) -> Result<String> {
    let call = session.call_tool(tool, json!({"id": id}));
    // Progress turns the response into a stream.
    Ok(call.on_progress(|_| {}).await?.to_text())
}
