//! Scopes of tasks: the scopes that the tool of a task needs, and that each caller who accesses the task needs, too.
//!
//! They are stored with the task, and only if its caller's token was checked against them: over stdio no token is checked.

use super::record::TaskRecord;
use crate::{
    error::{Error, Result},
    session::connection::RequestContext,
};

/// The scopes of a tool, for a task of it that this caller creates.
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(super) fn of_tool(cx: &RequestContext, tool: &str) -> String {
    cx.scopes_of_tool(tool).to_string()
}

/// All scopes that tasks of this caller may have and that its token permits.
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(super) fn permitted(cx: &RequestContext) -> Vec<String> {
    let all = cx.permitted_tool_scopes(|_| true);
    all.iter().map(ToString::to_string).collect()
}

#[cfg(all(feature = "auth", feature = "http-server"))]
fn is_permitted(cx: &RequestContext, scopes: &str) -> bool {
    let needed = oxmcp_auth::ScopeSet::parse(scopes);
    needed.is_empty() || cx.principal().is_some_and(|it| it.permits(&needed))
}

#[cfg(not(all(feature = "auth", feature = "http-server")))]
pub(super) fn of_tool(_cx: &RequestContext, _tool: &str) -> String {
    String::new()
}

#[cfg(not(all(feature = "auth", feature = "http-server")))]
pub(super) fn permitted(_cx: &RequestContext) -> Vec<String> {
    Vec::new()
}

/// Without tokens no scopes are checked; a task that needs scopes was created elsewhere, and is refused.
#[cfg(not(all(feature = "auth", feature = "http-server")))]
fn is_permitted(_cx: &RequestContext, scopes: &str) -> bool {
    scopes.is_empty()
}

/// Refuses a caller whose token does not permit the tool of its task any more.
///
/// # Errors
/// If the token does not permit the scopes of the task.
pub(super) fn check(cx: &RequestContext, task: &TaskRecord) -> Result<()> {
    if is_permitted(cx, &task.scopes) {
        return Ok(());
    }
    Err(Error::invalid_request(format!(
        "this task needs the scopes {}, which the access token does not permit; ask again with one that does",
        task.scopes
    )))
}
