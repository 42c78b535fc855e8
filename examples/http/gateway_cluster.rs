//! A gateway of three servers on two nodes, behind one protected endpoint. A client logs in once, is asked by one node, and answers
//! another. Then a node is killed, and the client continues.
//!
//! `cargo run --example gateway_cluster --features authorization,cluster,gateway`. It needs `redis-server`, or the URL of a Redis
//! in `REDIS_URL`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, net::SocketAddr, process::Command};

use oxmcp::{
    Accept, Client, ClientSession, RequestContext, Resource, Result, Revision, Server, Tool,
    auth::server::TrustedIssuer,
    http::{Endpoint, ProtectedResource, StreamableHttp},
    keys::StateKey,
    protocol::ElicitFormParams,
};
use oxmcp_examples::{
    AnyError, DevelopmentIssuer, Process, balance, free_address, redis, simulated_login,
};
use oxmcp_group::{Gateway, Upstream};
use oxmcp_redis::Redis;
use serde_json::json;
use tokio::net::TcpListener;

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct City {
    city: String,
}

async fn book(node: String, cx: RequestContext) -> Result<String> {
    let asks = cx.step("asks", || async { node.clone() }).await?;
    let City { city } = cx.ask("city", format!("{asks} asks: where to?")).await?;
    Ok(format!("{node} booked a train to {city}"))
}

/// A node. Both have the same servers behind the gateway, URL, issuer, Redis and key.
async fn node([name, address, redis, url, issuer, notes]: [String; 6]) -> Result<(), AnyError> {
    // A real program reads it from a secret store.
    let key = StateKey::from_base64("q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=")?;
    let now = Tool::new("now", "Tell the weather", || async { "sunny" });
    // This server needs the key, too: what it asks at one node is answered at the other.
    let travel = Server::new("travel", "1.0.0").state_keys([key.clone()]);
    let travel = travel.state(name, |scope| {
        scope.tool(Tool::new("book", "Book a train", scope.with_state(book)))
    });
    let gateway = Gateway::new(Client::new("gateway", "1.0.0"))
        .mount("weather", Server::new("weather", "1.0.0").tool(now))
        .mount("travel", travel)
        .mount("notes", Upstream::new(move || Endpoint::new(&notes)))
        .start(Server::new("all", "1.0.0"))
        .await?;
    let resource = ProtectedResource::new(url).issuer(TrustedIssuer::new(issuer));
    let endpoint = StreamableHttp::from(gateway.server()).protect(resource.scopes("all"));
    let endpoint = endpoint.cluster(Redis::connect(&redis).await?.keys([key]));
    endpoint.serve(&address).await?.ended().await;
    Ok(())
}

/// Calls tools of all three servers, and watches a resource.
async fn work(session: &ClientSession, notes: &Server) -> Result<()> {
    for tool in ["weather_now", "travel_book", "notes_list"] {
        let result = session.call_tool(tool, ()).await?;
        println!("  {tool}: {}", result.to_text());
    }
    let mut watch = session.watch_resource("note://1").await?;
    notes.resource_updated("note://1");
    let is_told = watch.next().await.is_some();
    println!("  note://1 has changed: {is_told}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<_> = env::args().skip(1).collect();
    if let Ok(args) = args.try_into() {
        return node(args).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let issuer = DevelopmentIssuer::new(&format!("http://{}", listener.local_addr()?))?;
    tokio::spawn(axum::serve(listener, issuer.routes()).into_future());
    // A server that both nodes reach over HTTP.
    let notes = Server::new("notes", "1.0.0")
        .resource(Resource::text("note://1", "packing", "two socks"))
        .tool(Tool::new("list", "List the notes", || async { "packing" }))
        .subscriptions();
    let upstream = StreamableHttp::from(notes.clone());
    let upstream = upstream.serve("127.0.0.1:0").await?;
    let upstream = format!("http://{}/mcp", upstream.local_addr());
    let (_redis, redis) = redis()?;
    let (ann, bob) = (free_address()?, free_address()?);
    let url = format!("http://{}/mcp", balance(vec![ann, bob]).await?);
    let start = |name, address: SocketAddr| {
        let mut command = Command::new(env::current_exe()?);
        let shared = [&*redis, &url, issuer.url(), &upstream];
        command.arg(name).arg(address.to_string()).args(shared);
        Process::start(&mut command, address)
    };
    let (ann, _bob) = (start("Ann", ann)?, start("Bob", bob)?);

    // A real program would use `Login::browser()`.
    let login = simulated_login("ann");
    let client = Client::new("traveler", "1.0.0").on_elicit(async |form: ElicitFormParams| {
        println!("  {}", form.message);
        Accept(json!({"city": "Lyon"}))
    });
    let connect = async |revision| {
        let endpoint = Endpoint::new(&url).login(login.clone());
        client.clone().revisions([revision]).connect(endpoint).await
    };
    let older = connect(Revision::V2025_11_25).await?;
    let newer = connect(Revision::V2026_07_28).await?;
    work(&older, &notes).await?;
    work(&newer, &notes).await?;
    drop(ann);
    println!("Ann was killed");
    work(&older, &notes).await?;
    work(&newer, &notes).await?;
    older.close().await?;
    newer.close().await.map_err(Into::into)
}
