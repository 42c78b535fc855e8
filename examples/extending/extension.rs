//! A vendor extension of the protocol: a clock that reports the time, with events that clients can subscribe to.
//!
//! `cargo run --example extension`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, Extension, RequestContext, Result, Revision, Server,
    protocol::{EmptyParams, Method, Notification, NotificationParams, Payload},
    testing,
};
use serde_json::json;
use tokio::sync::Notify;

// The definition of the extension, which both sides use.
const ID: &str = "com.example/clock";
/// The key in a subscription for the towers that a client listens to: a list, or `true` for all towers.
const TOWERS: &str = "com.example/clock/towers";

#[derive(serde::Serialize, serde::Deserialize)]
struct Time {
    hour: u8,
}

impl Payload for Time {}

/// A request from the client for the current time.
struct Now;

impl Method for Now {
    const NAME: &'static str = "com.example/clock/now";
    type Params = EmptyParams;
    type Result = Time;
}

/// A notification from the client that it has wound the clock.
struct Wound;

impl Notification for Wound {
    const NAME: &'static str = "notifications/com.example/clock/wound";
    type Params = NotificationParams;
}

/// A notification from the server that the clock has struck.
struct Struck;

impl Notification for Struck {
    const NAME: &'static str = "notifications/com.example/clock/struck";
    type Params = Time;
}

// Notification handlers run concurrently, so the program waits for them.
static WOUND: Notify = Notify::const_new();
static STRUCK: Notify = Notify::const_new();

async fn now(cx: RequestContext) -> Time {
    let declared = cx.client_capabilities().extensions.as_ref();
    let format = declared.and_then(|extensions| extensions.get(ID)?.get("hours"));
    let hour = if format == Some(&json!(12)) { 2 } else { 14 };
    Time { hour }
}

async fn wound(cx: RequestContext) {
    println!("server, in {}: the clock was wound", cx.revision());
    WOUND.notify_one();
}

async fn struck(Time { hour }: Time) {
    println!("client: the clock struck {hour}");
    STRUCK.notify_one();
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The server's side of the extension.
    let clock = Extension::new(ID)
        .method::<Now, _>(.., now)
        .notification::<Wound, _>(.., wound)
        .notifies::<Struck>(..)
        .listen_key(TOWERS);
    let server = Server::new("town-hall", "1.0.0").extension(clock);

    // The client's side of the extension. Each side finds the other's settings in its capabilities.
    let clock = Extension::new(ID)
        .settings(json!({"hours": 12}))
        .calls::<Now>(..)
        .notifies::<Wound>(..)
        .notification::<Struck, _>(.., struck)
        .listen_key(TOWERS);
    let client = Client::new("passer-by", "1.0.0").extension(clock);

    // The extension works the same in a legacy session and in the stateless protocol.
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let connect = testing::connect(&server).client(&client);
        let session = connect.revision(revision).await?;
        let time = session.request::<Now>(EmptyParams::default()).await?;
        println!("{revision}: it is {}", time.hour);
        session
            .notify::<Wound>(NotificationParams::default())
            .await?;
        WOUND.notified().await;
        // One call reaches all subscribers, in every revision.
        server.publish::<Struck>(TOWERS, "north", Time { hour: 3 })?;
        STRUCK.notified().await;
        session.close().await?;
    }

    // The client sends nothing to a server that does not declare the extension.
    let forest = Server::new("forest", "1.0.0");
    let session = testing::connect(&forest).client(&client).await?;
    if let Err(error) = session.request::<Now>(EmptyParams::default()).await {
        println!("{error}");
    }
    Ok(())
}
