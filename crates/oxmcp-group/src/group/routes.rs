//! The routes of a group for gateways: the server of a name or URI, and its session.

use oxmcp::{ClientSession, Result};

use super::session::GroupSession;

impl GroupSession {
    /// The server of a tool, and its name there.
    pub(crate) fn tool_route(&self, name: &str) -> Option<(usize, String)> {
        let catalog = self.shared().catalog();
        let (server, name) = catalog.tool_names.target(name)?;
        Some((server, name.to_owned()))
    }

    /// The server of a prompt, and its name there.
    pub(crate) fn prompt_route(&self, name: &str) -> Option<(usize, String)> {
        let catalog = self.shared().catalog();
        let (server, name) = catalog.prompt_names.target(name)?;
        Some((server, name.to_owned()))
    }

    /// The server of a URI, and its URI there.
    ///
    /// # Errors
    /// If no server has the resource, or it is not known which.
    pub(crate) fn uri_route(&self, uri: &str) -> Result<(usize, String)> {
        self.shared().route_uri(uri)
    }

    /// Changes a URI of a server to the form by which the group reads it.
    pub(crate) fn expose_uri(&self, server: usize, uri: &mut String) {
        self.shared().expose_uri(server, uri);
    }

    /// The label of a server.
    pub(crate) fn label_at(&self, server: usize) -> &str {
        self.shared().label(server)
    }

    /// The number of servers.
    pub(crate) fn server_count(&self) -> usize {
        self.shared().members.len()
    }

    /// The group's own session with a server, if it is connected.
    pub(crate) fn open_session_at(&self, server: usize) -> Option<ClientSession> {
        self.shared().open_session(server)
    }

    /// The group's own session with a server. Waits while a server that was connected is being connected again.
    ///
    /// # Errors
    /// If the server is not connected.
    pub(crate) async fn session_at(&self, server: usize) -> Result<ClientSession> {
        self.shared().session(server).await
    }
}
