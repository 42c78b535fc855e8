//! A gateway of three servers on two nodes, behind one protected endpoint. A client logs in once, is asked by one node, and answers
//! another. One of the nodes is then stopped, and the client goes on.
//!
//! `cargo run --example gateway_cluster --features authorization,cluster,gateway`. It needs `redis-server`, or the URL of a Redis
//! in `REDIS_URL`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, net::SocketAddr, process::Command};

use oxmcp::{
    Accept, Client, ClientSession, Error, JsonSchema, RequestContext, Resource, Revision, Server,
    Tool, ToolError,
    auth::server::TrustedIssuer,
    http::{Endpoint, Login, ProtectedResource, StreamableHttp},
    keys::StateKey,
    protocol::ElicitFormParams,
};
use oxmcp_examples::{AnyError, DevelopmentIssuer, Process, balance, browse, free_address, redis};
use oxmcp_group::{Gateway, Upstream};
use oxmcp_redis::Redis;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;

#[derive(Deserialize, Serialize, JsonSchema)]
struct City {
    city: String,
}

/// A server in each node, which asks the user.
fn travel(node: String) -> Server {
    let book = move |cx: RequestContext| {
        let node = node.clone();
        async move {
            let asks = cx.step("asks", || async { node.clone() }).await?;
            let City { city } = cx.ask("city", format!("{asks} asks: where to?")).await?;
            let same = if asks == node {
                "the same"
            } else {
                "the other"
            };
            Ok::<_, ToolError>(format!("{same} node booked a train to {city}"))
        }
    };
    Server::new("travel", "1.0.0").tool(Tool::new("book", "Book a train", book))
}

/// A server of its own, which both nodes reach over HTTP.
fn notes() -> Server {
    let server = Server::new("notes", "1.0.0")
        .resource(Resource::text("note://1", "packing", "two socks"))
        .subscriptions();
    let own = server.downgrade();
    let pack = move || {
        let own = own.upgrade();
        async move {
            own.map(|it| it.resource_updated("note://1"))
                .map_or("late", |()| "packed")
        }
    };
    server.tool(Tool::new("pack", "Pack the socks", pack))
}

/// A node. Both are the same: the same servers behind the gateway, the same URL, issuer, Redis and key.
async fn node([name, address, redis, url, issuer, notes]: [&str; 6]) -> Result<(), AnyError> {
    // A real program reads it from a secret store.
    let key = StateKey::from_base64("q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=")?;
    let weather =
        Server::new("weather", "1.0.0")
            .tool(Tool::new("now", "Tell the weather", || async { "sunny" }));
    let notes = notes.to_owned();
    let gateway = Gateway::new(Client::new("gateway", "1.0.0"))
        .mount("weather", weather)
        // What it asks at one node is answered at another, so that it needs the key, too.
        .mount("travel", travel(name.to_owned()).state_keys([key.clone()]))
        .mount("notes", Upstream::new(move || Endpoint::new(&notes)))
        .start(Server::new("all", "1.0.0"))
        .await?;
    let resource = ProtectedResource::new(url)
        .issuer(TrustedIssuer::new(issuer))
        .scopes("all");
    let endpoint = StreamableHttp::from(gateway.server())
        .protect(resource)
        .cluster(Redis::connect(redis).await?.keys([key]));
    endpoint.serve(address).await?.ended().await;
    Ok(())
}

/// Calls tools of all three servers.
async fn work(session: &ClientSession, watches: bool) -> Result<(), AnyError> {
    for tool in ["weather_now", "travel_book"] {
        println!(
            "  {tool}: {}",
            session.call_tool(tool, json!({})).await?.to_text()
        );
    }
    let mut watch = session.watch_resource("note://1").await?;
    let packed = session.call_tool("notes_pack", json!({})).await?;
    println!("  notes_pack: {}", packed.to_text());
    if watches && watch.next().await.is_some() {
        println!("  the note has changed");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<_> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    if let Ok(args) = args.as_slice().try_into() {
        return node(args).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let issuer = DevelopmentIssuer::new(&format!("http://{}", listener.local_addr()?))?;
    let serving = tokio::spawn(axum::serve(listener, issuer.routes()).into_future());
    let notes = StreamableHttp::from(notes())
        .serve(("127.0.0.1", 0))
        .await?;
    let (_redis, redis) = redis()?;

    let addresses: [SocketAddr; 2] = [free_address()?, free_address()?];
    let url = format!("http://{}/mcp", balance(addresses.to_vec()).await?);
    let start = |(name, address): (&str, SocketAddr)| {
        let mut command = Command::new(env::current_exe()?);
        command.args([name, &address.to_string(), &redis, &url, issuer.url()]);
        command.arg(format!("http://{}/mcp", notes.local_addr()));
        Process::start(&mut command, address)
    };
    let [ann, bob] = addresses;
    let (ann, _bob) = (start(("Ann", ann))?, start(("Bob", bob))?);

    // A real program would use `Login::browser()`.
    let redirect_uri = "http://127.0.0.1:4711/callback";
    let login = Login::with_redirect(redirect_uri, move |page| async move {
        println!("the user logs in");
        let answer = browse(&page, "ann", redirect_uri).await;
        answer.map_err(|error| Error::network(error.to_string()))
    });
    let client = Client::new("traveller", "1.0.0").on_elicit(|_: ElicitFormParams| async {
        Accept(City {
            city: "Lyon".into(),
        })
    });
    let mut sessions = Vec::new();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        println!("{revision}");
        let endpoint = Endpoint::new(&url).login(login.clone());
        let session = client
            .clone()
            .revisions([revision])
            .connect(endpoint)
            .await?;
        work(&session, true).await?;
        sessions.push(session);
    }
    drop(ann);
    println!("a node was killed");
    for session in sessions {
        work(&session, true).await?;
        session.close().await?;
    }
    serving.abort();
    notes.close().await;
    Ok(())
}
