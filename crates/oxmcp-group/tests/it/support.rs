//! Servers in this process that can be stopped, refuse connections, or hang.

use std::sync::{Arc, Mutex};

use oxmcp::{
    Client, Error, JsonSchema, Limits, Revision, Server, ServerSession, Tool, in_memory,
    transport::{BoxReadHalf, BoxTransport, BoxWriteHalf, Transport, boxed},
};
use oxmcp_group::{ClientGroup, GroupEvent, GroupEvents, GroupSession, ServerState};

/// What happens when a client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Up,
    Refuse,
    Hang,
}

/// A server that a test can stop and start again. Clones are the same server.
#[derive(Clone)]
pub(crate) struct Remote {
    server: Server,
    state: Arc<Mutex<(Mode, Option<ServerSession>)>>,
}

impl Remote {
    pub(crate) fn new(server: Server) -> Self {
        Self {
            server,
            state: Arc::new(Mutex::new((Mode::Up, None))),
        }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.state.lock().unwrap().0 = mode;
    }

    /// Ends the current session, as a crash does.
    pub(crate) async fn kill(&self) {
        let session = self.state.lock().unwrap().1.take();
        session.unwrap().close().await.unwrap();
    }
}

impl Transport for Remote {
    type Read = BoxReadHalf;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> oxmcp::Result<(BoxReadHalf, BoxWriteHalf)> {
        let mode = self.state.lock().unwrap().0;
        match mode {
            Mode::Up => {}
            Mode::Refuse => return Err(Error::closed("connection refused")),
            Mode::Hang => std::future::pending().await,
        }
        let (near, far) = in_memory();
        let session = self.server.connect(far).await?;
        self.state.lock().unwrap().1 = Some(session);
        let mut near: BoxTransport = boxed(near);
        near.connect(limits).await
    }
}

#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
pub(crate) struct Name {
    pub(crate) name: String,
}

/// A tool that returns a text.
pub(crate) fn tool(name: &str, says: &str) -> Tool {
    let says = says.to_owned();
    let handler = move |Nothing {}: Nothing| std::future::ready(says.clone());
    Tool::new(name, format!("Says {name}"), handler)
}

/// A server with tools that say the name of the server.
pub(crate) fn server(name: &str, tools: &[&str]) -> Server {
    let tools: Vec<Tool> = tools
        .iter()
        .map(|it| tool(it, &format!("{it} of {name}")))
        .collect();
    Server::new(name, "1.0.0").tools(tools)
}

pub(crate) fn client() -> Client {
    Client::new("tests", "1.0.0")
}

/// Clients of the last legacy revision and of the modern one.
pub(crate) fn clients() -> [Client; 2] {
    [Revision::V2025_11_25, Revision::V2026_07_28].map(|it| client().revisions([it]))
}

pub(crate) async fn connect(client: Client, servers: &[(&str, &Remote)]) -> GroupSession {
    let group = ClientGroup::new(client);
    let add = |group: ClientGroup, (label, remote): &(&str, &Remote)| {
        group.server(*label, Remote::clone(remote))
    };
    servers.iter().fold(group, add).connect().await.unwrap()
}

pub(crate) fn tool_names(group: &GroupSession) -> Vec<String> {
    group.tools().iter().map(|it| it.name.clone()).collect()
}

pub(crate) async fn say(group: &GroupSession, tool: &str) -> oxmcp::Result<String> {
    let result = group.call_tool(tool, ()).await?;
    Ok(result.as_text().unwrap_or_default().to_owned())
}

/// Waits for an event.
pub(crate) async fn wait_for(events: &mut GroupEvents, expected: &GroupEvent) {
    loop {
        let event = events.next().await.expect("the group is open");
        if event == *expected {
            return;
        }
    }
}

pub(crate) fn ready(label: &str) -> GroupEvent {
    GroupEvent::Server {
        server: label.into(),
        state: ServerState::Ready,
    }
}
