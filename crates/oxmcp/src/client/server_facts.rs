//! The self-description of a server, in any revision.

use std::sync::OnceLock;

use oxmcp_protocol::{DiscoverResult, Implementation, InitializeResult, ServerCapabilities};

/// The self-description of a server.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
    /// The response to `server/discover`, if the other fields are taken from it.
    pub(crate) discovered: Option<DiscoverResult>,
}

impl From<DiscoverResult> for ServerFacts {
    fn from(found: DiscoverResult) -> Self {
        Self {
            info: found.server_info(),
            capabilities: found.capabilities.clone(),
            instructions: found.instructions.clone(),
            discovered: Some(found),
        }
    }
}

impl From<InitializeResult> for ServerFacts {
    fn from(opened: InitializeResult) -> Self {
        Self {
            info: Some(opened.server_info),
            capabilities: opened.capabilities,
            instructions: opened.instructions,
            discovered: None,
        }
    }
}

/// The empty capabilities, for a server that has not been asked for its own.
pub(crate) fn no_capabilities() -> &'static ServerCapabilities {
    static NONE: OnceLock<ServerCapabilities> = OnceLock::new();
    NONE.get_or_init(ServerCapabilities::default)
}
