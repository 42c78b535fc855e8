//! Gateways in this process, and clients of them.

use oxmcp::{Client, ClientSession, Revision, Server, in_memory, protocol::CallToolResult};
use oxmcp_group::{Gateway, GatewaySession};

/// The last revision with sessions, and the newest.
pub(crate) const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// The revisions of clients and upstreams, each with each.
pub(crate) fn pairs<const N: usize>(
    revisions: [Revision; N],
) -> impl Iterator<Item = (Revision, Revision)> {
    let fronts = revisions.into_iter();
    fronts.flat_map(move |front| revisions.into_iter().map(move |upstream| (front, upstream)))
}

pub(crate) fn gateway() -> Gateway {
    Gateway::new(Client::new("gateway", "1.0.0"))
}

pub(crate) async fn start(gateway: Gateway) -> GatewaySession {
    gateway.start(Server::new("all", "1.0.0")).await.unwrap()
}

pub(crate) fn host() -> Client {
    Client::new("host", "1.0.0")
}

pub(crate) async fn connect(gateway: &GatewaySession, client: Client) -> ClientSession {
    connect_to(&gateway.server(), client).await
}

pub(crate) async fn connect_to(server: &Server, client: Client) -> ClientSession {
    let (near, far) = in_memory();
    server.connect(far).await.unwrap();
    client.connect(near).await.unwrap()
}

pub(crate) fn text(result: &CallToolResult) -> &str {
    result.as_text().unwrap_or_default()
}
