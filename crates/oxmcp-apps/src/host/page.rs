//! An app as a host reads it from a server: its document and the policy that the document gets.

use oxmcp::{
    ClientSession, Error, ErrorCode, Result,
    protocol::{ReadResourceResult, ResourceBody, Tool},
};
use serde_json::{Value, json};

use crate::{
    MIME_TYPE,
    html::with_policy,
    metadata::{AppMeta, ToolUi},
};

/// The most bytes of a document. Bundled pages have a few megabytes at most.
const MAX_HTML: usize = 16 * 1024 * 1024;

/// An app of a server: what a host shows for a tool.
///
/// ```
/// use oxmcp::{Server, Tool, testing};
/// use oxmcp_apps::{App, ServerExt, ToolExt, host::AppPage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// let view = App::new("ui://clock/view.html", "<!doctype html><p>hi").connect("https://time.example.com");
/// let now = Tool::new("now", "Tell the time", || async { "ten past two" }).app(&view);
/// let session = testing::connect(&Server::new("clock", "1.0.0").tool(now).app(view)).await?;
///
/// for tool in session.tools().all().await? {
///     if let Some(page) = AppPage::open(&session, &tool).await? {
///         assert_eq!(page.html, "<!doctype html><p>hi");
///         assert!(page.policy().contains("connect-src https://time.example.com"));
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppPage {
    /// The URI of the app.
    pub uri: String,
    /// The document.
    pub html: String,
    /// The metadata. That of the contents has precedence over that of the listing.
    pub meta: AppMeta,
}

impl AppPage {
    /// Opens the app that shows the results of a tool; `None` if the tool has no app. Reads the app, and its entry in the
    /// listing if the contents have no metadata. If the server answers that it cannot list, the app has the default metadata,
    /// with which it can load nothing.
    ///
    /// # Errors
    /// If the URI does not begin with `ui://`, or the app cannot be read, is not HTML, is not UTF-8, or has more than 16 MiB; if
    /// the connection is lost or the server does not answer in time.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn open(session: &ClientSession, tool: &Tool) -> Result<Option<Self>> {
        match ToolUi::of(tool).resource_uri {
            Some(uri) => Self::read(session, &uri).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens an app by its URI, like [`open`](Self::open).
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn read(session: &ClientSession, uri: &str) -> Result<Self> {
        if !uri.starts_with("ui://") {
            return Err(unreadable(uri, "its URI does not begin with `ui://`"));
        }
        let result = session.read_resource(uri).await?;
        let (html, meta) = document(uri, result)?;
        let meta = match meta {
            Some(meta) => meta,
            None => listed_meta(session, uri).await?.unwrap_or_default(),
        };
        let uri = uri.to_owned();
        Ok(Self { uri, html, meta })
    }

    /// Returns the policy for the `Content-Security-Policy` header of the page.
    #[must_use]
    pub fn policy(&self) -> String {
        self.meta.csp.policy()
    }

    /// Returns the value of the `allow` attribute of the frame.
    #[must_use]
    pub fn allow(&self) -> String {
        self.meta.allow()
    }

    /// Returns the document with its policy inside, for web views without HTTP headers.
    ///
    /// No policy keeps a page from navigating to another one, which has no policy. Show the document in a sandboxed frame, or in a
    /// web view that has nothing else and denies navigation and new windows, and take messages only from this document: a new
    /// document needs a new [`AppBridge`](super::AppBridge).
    #[must_use]
    pub fn html_with_policy(&self) -> String {
        with_policy(&self.html, &self.policy())
    }

    /// The params of the notification that gives the document to a sandbox proxy.
    pub(crate) fn to_sandbox(&self) -> Value {
        json!({
            "html": self.html,
            "csp": self.meta.csp.to_json(),
            "permissions": self.meta.permissions_json(),
        })
    }
}

fn unreadable(uri: &str, problem: &str) -> Error {
    Error::protocol(
        ErrorCode::INVALID_PARAMS,
        format!("could not open the app {uri:?}: {problem}"),
    )
}

/// The document and the metadata of the contents of an app.
fn document(uri: &str, result: ReadResourceResult) -> Result<(String, Option<AppMeta>)> {
    let mut all = result.contents;
    let at = all.iter().position(|it| it.uri == uri).unwrap_or_default();
    if all.is_empty() {
        return Err(unreadable(uri, "it has no contents"));
    }
    let contents = all.swap_remove(at);
    let mime_type = contents.mime_type.as_deref().unwrap_or_default();
    if !is_app(mime_type) {
        let problem = format!("its MIME type is {mime_type:?} instead of \"{MIME_TYPE}\"");
        return Err(unreadable(uri, &problem));
    }
    let html = match contents.body {
        ResourceBody::Text(text) => text,
        ResourceBody::Blob(bytes) => {
            let text = String::from_utf8(bytes.to_vec());
            text.map_err(|_| unreadable(uri, "it is not UTF-8"))?
        }
        _ => return Err(unreadable(uri, "it is neither text nor bytes")),
    };
    if html.len() > MAX_HTML {
        let problem = format!("it has {} bytes, and the limit is {MAX_HTML}", html.len());
        return Err(unreadable(uri, &problem));
    }
    Ok((html, AppMeta::of(&contents.meta)))
}

/// Whether a MIME type is that of apps, in whatever spelling.
fn is_app(mime_type: &str) -> bool {
    let written = mime_type.chars().filter(|it| !matches!(it, ' ' | '"'));
    written.collect::<String>().eq_ignore_ascii_case(MIME_TYPE)
}

/// Whether a call failed without an answer of the server, so that another attempt may succeed.
fn is_lost(error: &Error) -> bool {
    error.is_closed() || error.is_network() || error.is_timeout() || error.is_cancelled()
}

/// The metadata of an app's entry in the listing. Servers may leave apps out of it, or have none.
async fn listed_meta(session: &ClientSession, uri: &str) -> Result<Option<AppMeta>> {
    let mut resources = session.resources();
    while let Some(resource) = resources.next().await {
        match resource {
            Ok(resource) if resource.uri == uri => return Ok(AppMeta::of(&resource.meta)),
            Ok(_) => {}
            Err(error) if is_lost(&error) => return Err(error),
            // The document is there, and without an entry it gets the strictest policy.
            Err(_) => break,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use oxmcp::protocol::ResourceContents;

    use super::*;

    #[test]
    fn only_html_documents_are_opened() {
        let text = |mime: &str| ResourceContents::text("ui://a", "hi").with_mime_type(mime);
        let cases = [
            (vec![text(MIME_TYPE)], Ok("hi")),
            (vec![text("Text/HTML; profile=\"mcp-app\"")], Ok("hi")),
            (vec![], Err("it has no contents")),
            (
                vec![text("text/html")],
                Err("its MIME type is \"text/html\""),
            ),
            (
                vec![ResourceContents::text("ui://a", "hi")],
                Err("its MIME type is \"\""),
            ),
            (
                vec![ResourceContents::blob("ui://a", vec![0xff]).with_mime_type(MIME_TYPE)],
                Err("it is not UTF-8"),
            ),
            (
                vec![
                    ResourceContents::text("ui://b", "no").with_mime_type(MIME_TYPE),
                    text(MIME_TYPE),
                ],
                Ok("hi"),
            ),
        ];
        for (contents, expected) in cases {
            let read = document("ui://a", ReadResourceResult::new(contents));
            match (read, expected) {
                (Ok((html, _)), Ok(expected)) => assert_eq!(html, expected),
                (Err(error), Err(expected)) => {
                    assert!(error.message().contains(expected), "{error}");
                }
                (read, expected) => panic!("{read:?} instead of {expected:?}"),
            }
        }
    }

    // A server sends a document that fills the memory of the host.
    #[test]
    fn large_document_is_refused() {
        let large = "x".repeat(MAX_HTML + 1);
        let contents = ResourceContents::text("ui://a", large).with_mime_type(MIME_TYPE);
        let error = document("ui://a", ReadResourceResult::new([contents])).unwrap_err();
        assert!(error.message().contains("the limit is 16777216"), "{error}");
    }
}
