//! The rules for all tools and apps of a server, checked through a session.

use std::collections::BTreeSet;

use oxmcp::{ClientSession, Error, ErrorCode, Result};

use super::{
    finding::{Finding, Rule},
    listed::{SCHEME, check_contents, check_resource, check_tool},
};
use crate::metadata::ToolUi;

/// The most apps that are read. No server known has as many, and each can be large.
const MAX_APPS: usize = 500;

/// Checks all tools and apps of a server: lists them, and reads each app that is listed or that a tool names. Tools are not
/// called: check their results with [`check_result`](super::check_result).
///
/// An app that is both listed and read can have the same finding twice, since it breaks the rule in two places.
///
/// ```
/// use oxmcp::{Server, Tool, testing};
/// use oxmcp_apps::{App, ServerExt, ToolExt, rules};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// let view = App::new("ui://clock/view.html", "<!doctype html><p>ten past two");
/// let now = Tool::new("now", "Tell the time", || async { "ten past two" }).app(&view);
/// let server = Server::new("clock", "1.0.0").tool(now).app(view);
///
/// let session = testing::connect(&server).await?;
/// assert_eq!(rules::check(&session).await?, []);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If a listing fails, or there are more than 500 apps. That an app cannot be read is a finding.
///
/// # Cancel safety
/// Cancel safe.
pub async fn check(session: &ClientSession) -> Result<Vec<Finding>> {
    let tools = session.tools().all().await?;
    let resources = session.resources().all().await?;
    let mut findings: Vec<_> = tools.iter().flat_map(check_tool).collect();
    findings.extend(resources.iter().flat_map(check_resource));

    let mut apps = BTreeSet::new();
    let listed = resources.iter().map(|it| it.uri.clone());
    apps.extend(listed.filter(|uri| uri.starts_with(SCHEME)));
    let named = tools.iter().filter_map(|it| ToolUi::of(it).resource_uri);
    apps.extend(named);
    if apps.len() > MAX_APPS {
        return Err(Error::limit(format!(
            "too many apps: the server has {}, and at most {MAX_APPS} can be checked",
            apps.len()
        )));
    }
    for uri in apps {
        match session.read_resource(&*uri).await {
            Ok(result) => findings.extend(check_contents(&uri, &result)),
            // The session cannot go on, or a limit of this side was reached, which says nothing about the app.
            Err(error)
                if error.is_closed()
                    || error.is_timeout()
                    || error.is_cancelled()
                    || error.is_limit() =>
            {
                return Err(error);
            }
            // The response of the server is not an error object: it could not be read.
            Err(error) if error.code() == ErrorCode::INTERNAL_ERROR && !error.is_protocol() => {
                findings.push(Finding::of_resource(Rule::Contents, &uri, error.message()));
            }
            Err(error) if error.is_protocol() => {
                let mut named = tools.iter();
                let named = named.find(|it| ToolUi::of(it).resource_uri.as_ref() == Some(&uri));
                let problem = format!(
                    "the app {uri:?} cannot be read: {}; serve a resource with this URI",
                    error.message()
                );
                findings.push(match named {
                    Some(tool) => Finding::of_tool(Rule::AppExists, &tool.name, problem),
                    None => Finding::of_resource(Rule::AppExists, &uri, problem),
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(findings)
}
