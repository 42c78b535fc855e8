//! Gateways in this process, and clients of them.

use oxmcp::{
    Client, ClientSession, Limits, Principal, Result, Revision, Server, in_memory,
    protocol::CallToolResult,
    transport::{BoxReadHalf, BoxTransport, BoxWriteHalf, Frame, ReadHalf, Transport, boxed},
};
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

/// Connects a client whose messages come from a principal, as over HTTP with authorization.
pub(crate) async fn connect_as(
    gateway: &GatewaySession,
    client: Client,
    principal: &str,
) -> ClientSession {
    let (near, far) = in_memory();
    let far = Authenticated {
        inner: boxed(far),
        principal: Principal::new(principal),
    };
    gateway.server().connect(far).await.unwrap();
    client.connect(near).await.unwrap()
}

/// A transport that knows the sender of its messages.
struct Authenticated {
    inner: BoxTransport,
    principal: Principal,
}

struct AuthenticatedReader {
    inner: BoxReadHalf,
    principal: Principal,
}

impl Transport for Authenticated {
    type Read = AuthenticatedReader;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> Result<(AuthenticatedReader, BoxWriteHalf)> {
        let (inner, write) = self.inner.connect(limits).await?;
        let principal = self.principal.clone();
        Ok((AuthenticatedReader { inner, principal }, write))
    }
}

impl ReadHalf for AuthenticatedReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        let sender = &self.principal;
        Ok(match self.inner.read().await? {
            Some(Frame::Message(message)) => Some(Frame::MessageFrom { message, sender }),
            other => other,
        })
    }
}
