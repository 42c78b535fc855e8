//! Roots of a client, which limit the files that it may read.

use std::{ffi::OsString, path::PathBuf};

use oxmcp_protocol::Root;

use super::path::{file_uri, names};
use crate::{error::Result, session::connection::RequestContext};

/// The effect of a client's roots on a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// A client with roots can read only files within them.
    WhereKnown,
    /// The same, and a client without roots can read nothing.
    Required,
    Ignored,
}

/// The client's roots. `None` if it lacks the capability.
pub(crate) async fn of(cx: &RequestContext) -> Result<Option<Vec<Root>>> {
    if cx.client_capabilities().roots.is_none() {
        return Ok(None);
    }
    if let Some(session) = cx.server_session().filter(|_| !cx.revision().is_modern()) {
        // The roots are cached until the client notifies the server of a change. Over HTTP, the question goes to the stream of
        // the request, since the client need not have another.
        let roots = session.roots_by(cx.roots()).await?;
        return Ok(Some(roots.to_vec()));
    }
    cx.roots().await.map(Some)
}

/// Whether one of the paths of a file is within one of the roots.
pub(crate) fn hold(roots: &[Root], paths: &[PathBuf]) -> bool {
    let paths: Vec<_> = paths
        .iter()
        .filter_map(|path| of_uri(&file_uri(path)))
        .collect();
    let mut roots = roots.iter().filter_map(|root| of_uri(&root.uri));
    roots.any(|root| paths.iter().any(|path| path.starts_with(&root)))
}

/// The names in the path of a `file:` URI. `None` if the URI belongs to another machine, or is ambiguous.
fn of_uri(uri: &str) -> Option<Vec<OsString>> {
    let (scheme, rest) = uri.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    let path = path.strip_prefix('/')?;
    if path.contains(['?', '#']) {
        return None;
    }
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Some(Vec::new()),
        path => names(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_contain_everything_below_them() {
        let path = [PathBuf::from("/home/me/a b/c.txt")];
        for uri in [
            "file:///",
            "file:///home",
            "file:///home/me/",
            "file://localhost/home/me",
            "FILE:/home/me/a%20b",
            "file:///home/me/a b/c.txt",
        ] {
            assert!(hold(&[Root::new(uri)], &path), "{uri}");
        }
        for uri in [
            "",
            "file:",
            "file:///hom",
            "file:///home/me/a",
            "file:///home/me/a b/c.txt/d",
            "file:///home/../home",
            "file:///home/me/%2e",
            "file://elsewhere/home",
            "file:///home?x",
            "https:///home",
            "/home",
        ] {
            assert!(!hold(&[Root::new(uri)], &path), "{uri}");
        }
        assert!(!hold(&[], &path));
    }
}
