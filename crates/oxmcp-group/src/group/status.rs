//! The state of a server, as users see it.

use std::collections::BTreeMap;

use oxmcp::{Revision, protocol::Implementation};

/// The state of a server's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// The group connects to the server, for the first time or again.
    Connecting,
    /// The server is connected, and its lists are known.
    Ready,
    /// The server cannot be reached, or its session has ended. The group tries again, at growing intervals of up to a minute.
    Failed {
        /// The reason, for people to read.
        reason: String,
    },
    /// The group is closed.
    Closed,
}

/// A server of a group, from [`GroupSession::servers`](crate::GroupSession::servers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The name that the group gives to the server.
    pub label: String,
    /// The state of its connection.
    pub state: ServerState,
    /// Its name and version, as it declares them.
    pub server_info: Option<Implementation>,
    /// The revision of its session.
    pub revision: Option<Revision>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// The names of its tools in the group, by the names that it lists. Tools that the rules deny are absent.
    pub tools: BTreeMap<String, String>,
    /// The names of its prompts in the group, by the names that it lists.
    pub prompts: BTreeMap<String, String>,
    /// The number of tools that the rules of the group or of the configuration deny.
    pub denied: usize,
    /// The problems with its lists, for people to read: lists that could not be read, entries that were left out.
    pub problems: Vec<String>,
}
