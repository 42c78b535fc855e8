//! The tools of a server for its two callers: the agent, and the views of its apps.

use oxmcp::{Extension, protocol::Tool};
use serde_json::json;

use crate::{ID, MIME_TYPE, metadata::ToolUi};

/// Returns the extension for clients, which declares that the host shows apps.
///
/// ```
/// use oxmcp::Client;
/// use oxmcp_apps::host;
///
/// let client = Client::new("my-host", "1.0.0").extension(host::extension());
/// # let _ = client;
/// ```
#[must_use]
pub fn extension() -> Extension {
    Extension::new(ID).settings(json!({"mimeTypes": [MIME_TYPE]}))
}

/// Returns whether the agent may see a tool. A host must hide the others from it: they are for views.
///
/// ```
/// use oxmcp_apps::host::is_for_model;
/// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
/// let mut tools = session.tools().all().await?;
/// tools.retain(is_for_model);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn is_for_model(tool: &Tool) -> bool {
    ToolUi::of(tool).visibility.model
}

/// Returns whether a view of the same server may call a tool.
#[must_use]
pub fn is_for_app(tool: &Tool) -> bool {
    ToolUi::of(tool).visibility.app
}
