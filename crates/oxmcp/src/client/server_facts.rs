//! The self-description of a server, in any revision.

use std::sync::OnceLock;

use oxmcp_protocol::{DiscoverResult, Implementation, InitializeResult, ServerCapabilities};

/// What a server has said of itself.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
    /// The answer to `server/discover`, where that is where all this is from.
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

/// The capabilities of a server that has not been asked for them.
pub(crate) fn no_capabilities() -> &'static ServerCapabilities {
    static NONE: OnceLock<ServerCapabilities> = OnceLock::new();
    NONE.get_or_init(ServerCapabilities::default)
}
