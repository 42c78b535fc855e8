//! Scopes of tasks: a caller who accesses a task needs the scopes of its tool.
//!
//! They are stored with the task, but only if the caller's token was checked against them: over stdio no token is checked.

use super::record::TaskRecord;
use crate::{
    error::{Error, Result},
    session::connection::RequestContext,
};

/// The scopes of a tool, for a task of it that this caller creates.
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(crate) fn of_tool(cx: &RequestContext, tool: &str) -> String {
    cx.scopes_of_tool(tool).to_string()
}

/// All scopes that tasks of this caller may need and that its token permits.
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(crate) fn permitted(cx: &RequestContext) -> Vec<String> {
    let all = cx.permitted_tool_scopes(|_| true);
    all.iter().map(ToString::to_string).collect()
}

#[cfg(all(feature = "auth", feature = "http-server"))]
fn is_permitted(cx: &RequestContext, scopes: &str) -> bool {
    let needed = oxmcp_auth::ScopeSet::parse(scopes);
    needed.is_empty() || cx.principal().is_some_and(|it| it.permits(&needed))
}

#[cfg(not(all(feature = "auth", feature = "http-server")))]
pub(crate) fn of_tool(_cx: &RequestContext, _tool: &str) -> String {
    String::new()
}

#[cfg(not(all(feature = "auth", feature = "http-server")))]
pub(crate) fn permitted(_cx: &RequestContext) -> Vec<String> {
    Vec::new()
}

/// Without tokens no scopes are checked; a task that needs scopes was created elsewhere, and is refused.
#[cfg(not(all(feature = "auth", feature = "http-server")))]
fn is_permitted(_cx: &RequestContext, scopes: &str) -> bool {
    scopes.is_empty()
}

/// Refuses a caller whose token no longer permits the tool of its task.
///
/// # Errors
/// If the token does not permit the scopes of the task.
pub(crate) fn check(cx: &RequestContext, task: &TaskRecord) -> Result<()> {
    if is_permitted(cx, &task.scopes) {
        return Ok(());
    }
    Err(Error::invalid_request(format!(
        "insufficient scope: this needs {}; use an access token that grants it",
        task.scopes
    )))
}
