//! Extensions: methods, notifications, subscriptions and declarations that a vendor adds.

mod declarations;
mod invalid_definitions;
mod layers;
mod methods;
mod notifications;
mod official_schemas;
#[cfg(feature = "http-server")]
mod on_serve;
mod requirements;
mod results;
mod revisions;
mod subscriptions;
#[cfg(feature = "tasks")]
pub(crate) mod tasks;
mod tool_layers;

use oxmcp::{
    Client, ClientSession, Extension, Server,
    protocol::{Method, Notification, Payload},
    testing,
};

/// The identifier of the extension that these tests use.
const ID: &str = "com.example/clock";

/// `com.example/clock/add`: adds hours to a time.
struct Add;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Hours {
    hours: u32,
}

impl Payload for Hours {}

impl Method for Add {
    const NAME: &'static str = "com.example/clock/add";
    type Params = Hours;
    type Result = Hours;
}

/// `notifications/com.example/clock/struck`: the number of hours that the clock has struck.
struct Struck;

impl Notification for Struck {
    const NAME: &'static str = "notifications/com.example/clock/struck";
    type Params = Hours;
}

fn clock() -> Extension {
    Extension::new(ID)
}

fn hours(hours: u32) -> Hours {
    Hours { hours }
}

/// A server with the extension and no features.
fn server(clock: Extension) -> Server {
    Server::new("clock", "1.0.0").extension(clock)
}

fn client(clock: Extension) -> Client {
    Client::new("wearer", "1.0.0").extension(clock)
}

async fn connect(server: &Server, client: &Client, revision: oxmcp::Revision) -> ClientSession {
    let session = testing::connect(server).client(client).revision(revision);
    session.await.unwrap()
}
