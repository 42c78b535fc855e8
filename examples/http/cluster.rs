//! Three nodes of one server with a shared Redis, behind a load balancer without sticky sessions. The node that asks the user is
//! killed before the answer arrives, and another node continues the call.
//!
//! `cargo run --example cluster --features cluster`. It needs `redis-server`, or the URL of a Redis in `REDIS_URL`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    env,
    net::SocketAddr,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use oxmcp::{
    Client, JsonSchema, RequestContext, Result, Revision, Server, Tool,
    http::{Endpoint, StreamableHttp},
    keys::StateKey,
    protocol::{ElicitFormParams, ElicitResult},
};
use oxmcp_examples::{AnyError, Process, balance, free_address, redis};
use oxmcp_redis::Redis;
use serde_json::json;

#[derive(serde::Deserialize, JsonSchema)]
struct Table {
    people: u32,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Wish {
    /// A table at the window?
    at_the_window: bool,
}

async fn book(node: String, cx: RequestContext, Table { people }: Table) -> Result<String> {
    // The result of the step is stored, so a node that continues the call asks the same question.
    let asks = cx.step("asks", || async { node.clone() }).await?;
    let question = format!("A table for {people}: any wish? ({asks} asks)");
    let Wish { at_the_window } = cx.ask("wish", question).await?;
    Ok(format!("{node} booked it, window: {at_the_window}"))
}

/// A node: an ordinary server, except that `cluster` connects it to the other nodes.
async fn node(name: &str, address: &str, redis: &str) -> Result<(), AnyError> {
    // All nodes have the same key. A real program reads it from a secret store; `openssl rand -base64 32` generates one.
    let key = StateKey::from_base64("q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=")?;
    let server = Server::new("restaurant", "1.0.0")
        .tool(Tool::new("menu", "Show the menu", || async { "soup" }))
        .state(name.to_owned(), |scope| {
            scope.tool(Tool::new("book", "Book a table", scope.with_state(book)))
        });
    let endpoint = StreamableHttp::from(server).cluster(Redis::connect(redis).await?.keys([key]));
    endpoint.serve(address).await?.ended().await;
    Ok(())
}

#[derive(Clone)]
struct Node {
    name: &'static str,
    address: SocketAddr,
    process: Arc<Mutex<Option<Process>>>,
}

impl Node {
    /// Starts the node as a process.
    fn start(name: &'static str, redis: &str) -> Result<Self, AnyError> {
        let address = free_address()?;
        let mut command = Command::new(env::current_exe()?);
        command.args([name, &address.to_string(), redis]);
        let process = Arc::new(Mutex::new(Some(Process::start(&mut command, address)?)));
        Ok(Self {
            name,
            address,
            process,
        })
    }

    fn kill(&self) {
        println!("  {} was killed", self.name);
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        drop(process.take());
    }
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<_> = env::args().skip(1).collect();
    if let [name, address, redis] = &args[..] {
        return node(name, address, redis).await;
    }
    let (_redis, redis) = redis()?;
    let names = ["Ann", "Bob", "Eve"];
    let nodes = names.map(|name| Node::start(name, &redis));
    let nodes = nodes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let addresses = nodes.iter().map(|it| it.address).collect();
    let url = format!("http://{}/mcp", balance(addresses).await?);

    // Clients of older revisions have sessions, which all nodes share.
    let older = Client::new("guest", "1.0.0").revisions([Revision::V2025_11_25]);
    let older = older.connect(Endpoint::new(&url)).await?;
    let all = nodes.clone();
    let user = move |form: ElicitFormParams| {
        println!("  the user is asked: {}", form.message);
        // Kill the node that asks, so that it does not receive the answer.
        let asks = |node: &&Node| form.message.contains(node.name);
        all.iter().filter(asks).for_each(Node::kill);
        let answer = ElicitResult::accept(&json!({"at_the_window": true}));
        async move { answer.map_err(|error| oxmcp::Error::internal(error.to_string())) }
    };
    let client = Client::new("guest", "1.0.0").on_elicit(user);
    let session = client.connect(Endpoint::new(&url)).await?;
    for people in [2, 4] {
        let booked = session.call_tool("book", json!({"people": people}));
        println!("=> {}", booked.await?.to_text());
    }
    session.close().await?;
    let menu = older.call_tool("menu", ()).await?;
    println!("=> {}, in the older session", menu.to_text());
    older.close().await.map_err(Into::into)
}
