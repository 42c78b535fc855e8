//! Scopes of tasks: those that the tool of a task needs, which whoever asks for the task needs, too.
//!
//! They are kept with the task, and only where its caller's token was held against them: over stdio nobody is.

use super::record::TaskRecord;
use crate::{
    error::{Error, Result},
    session::connection::RequestContext,
};

/// The scopes of a tool, for a task of it that this caller makes.
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(super) fn of_tool(cx: &RequestContext, tool: &str) -> String {
    cx.scopes_of_tool(tool).to_string()
}

/// All scopes that tasks of this caller may have, as far as its token permits them.
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

/// Without tokens nobody is held against scopes; a task that needs some was made elsewhere.
#[cfg(not(all(feature = "auth", feature = "http-server")))]
fn is_permitted(_cx: &RequestContext, scopes: &str) -> bool {
    scopes.is_empty()
}

/// Refuses a caller whose token does not permit the tool of its task any more.
///
/// # Errors
/// The refusal.
pub(super) fn check(cx: &RequestContext, task: &TaskRecord) -> Result<()> {
    if is_permitted(cx, &task.scopes) {
        return Ok(());
    }
    Err(Error::invalid_request(format!(
        "this task needs the scopes {}, which the access token does not permit; ask again with one that does",
        task.scopes
    )))
}
