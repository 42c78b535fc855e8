//! The actions that a bridge asks of its host, and the host's answers.

use std::sync::atomic::{AtomicU64, Ordering};

use oxmcp::{
    ClientSession, ErrorCode, ErrorObject,
    protocol::{
        CallToolParams, CallToolResult, ContentBlock, CreateMessageParams, CreateMessageResult,
        Cursor, JsonObject, LoggingLevel, PaginatedParams, Tool, method,
    },
};
use serde::Serialize;
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use crate::host::context::DisplayMode;

/// The code of errors for requests that the host denies.
pub(crate) const DENIED: i64 = -32000;

/// A request of a view that waits for an answer. The keys of a process differ, also those of several bridges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

/// A request of the host that waits for an answer of the view. The keys of a process differ, also those of several bridges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

impl RequestKey {
    pub(crate) fn new() -> Self {
        Self(next_key())
    }
}

impl CallKey {
    pub(crate) fn new() -> Self {
        Self(next_key())
    }
}

/// A number that no other key has: the answer for one bridge must not be an answer for another. Later keys are larger.
fn next_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An action that a bridge asks of its host.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Post this JSON to the view.
    Send(String),
    /// Forward this request to the server of the app, and give the [answer](ForwardedRequest::forward) to the bridge.
    Forward(ForwardedRequest),
    /// Accept or deny this request, and give the [answer](HostRequest::accept) to the bridge.
    Decide(HostRequest),
    /// Stop working on a request: the view has cancelled it. No answer is needed.
    Cancel(RequestKey),
    /// Take notice of this; the view expects no answer.
    Notice(Notice),
    /// Remove the view. The bridge does nothing more.
    Unmount,
    /// Log this: the view has sent something that is not allowed, and that had no effect.
    Report(String),
}

/// A request of a view that goes to the server of its app. A tool is one that the view may call.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForwardedRequest {
    /// The key of the request.
    pub key: RequestKey,
    /// The request.
    pub kind: ForwardedRequestKind,
}

/// The kinds of requests that go to the server.
#[derive(Debug)]
#[non_exhaustive]
pub enum ForwardedRequestKind {
    /// A tool call.
    CallTool(CallToolParams),
    /// The contents of a resource.
    ReadResource(String),
    /// A page of the resources.
    ListResources(Option<Cursor>),
    /// A page of the resource templates.
    ListResourceTemplates(Option<Cursor>),
}

impl ForwardedRequest {
    /// Makes the request on the session with the server of the app, and returns the answer for
    /// [`AppBridge::answer`](super::AppBridge::answer).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn forward(self, session: &ClientSession) -> Answer {
        let page = |cursor| {
            let mut params = PaginatedParams::default();
            params.cursor = cursor;
            params
        };
        let result = match self.kind {
            ForwardedRequestKind::CallTool(params) => {
                encode(session.request::<method::CallTool>(params).await)
            }
            ForwardedRequestKind::ReadResource(uri) => encode(session.read_resource(uri).await),
            ForwardedRequestKind::ListResources(cursor) => {
                encode(session.list_resources(page(cursor)).await)
            }
            ForwardedRequestKind::ListResourceTemplates(cursor) => {
                encode(session.list_resource_templates(page(cursor)).await)
            }
        };
        Answer {
            key: self.key,
            result,
        }
    }

    /// Denies the request, for a host that asks the user before a tool is called.
    pub fn deny(self, reason: impl Into<String>) -> Answer {
        Answer::denied(self.key, reason)
    }
}

fn encode<T: Serialize>(result: oxmcp::Result<T>) -> Result<Box<RawValue>, ErrorObject> {
    let result = result.map_err(|error| ErrorObject::from(&error))?;
    to_raw_value(&result)
        .map_err(|error| ErrorObject::new(ErrorCode::INTERNAL_ERROR, error.to_string()))
}

/// A request of a view that the host decides about.
#[derive(Debug)]
#[non_exhaustive]
pub struct HostRequest {
    /// The key of the request.
    pub key: RequestKey,
    /// The request.
    pub kind: HostRequestKind,
}

/// The kinds of requests that a host decides about.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostRequestKind {
    /// Open a link, which begins with `https:`, `http:` or `mailto:`.
    OpenLink(String),
    /// Save these files: contents of resources, and links to `https:` and `http:`. Name them with [`file_name`].
    DownloadFile(Vec<ContentBlock>),
    /// Add a message of the user to the conversation.
    Message(Vec<ContentBlock>),
    /// Replace the context of this view for the model.
    UpdateModelContext(ModelContext),
    /// Show the view in this mode. Both sides have declared it.
    DisplayMode(DisplayMode),
    /// Run a prompt on the model.
    CreateMessage(Box<CreateMessageParams>),
}

impl HostRequest {
    /// Answers that it was done.
    pub fn accept(self) -> Answer {
        let result = match self.kind {
            HostRequestKind::DisplayMode(mode) => json!({"mode": mode}),
            _ => json!({}),
        };
        Answer {
            key: self.key,
            result: encode(Ok(result)),
        }
    }

    /// Answers that it was not done.
    pub fn deny(self, reason: impl Into<String>) -> Answer {
        Answer::denied(self.key, reason)
    }

    /// Answers with the mode in which the view is shown now, which may be another than it asked for.
    pub fn shown(self, mode: DisplayMode) -> Answer {
        Answer {
            key: self.key,
            result: encode(Ok(json!({"mode": mode}))),
        }
    }

    /// Answers with the message of the model.
    pub fn created(self, message: &CreateMessageResult) -> Answer {
        Answer {
            key: self.key,
            result: encode(Ok(message)),
        }
    }
}

/// The answer to a request of a view, for [`AppBridge::answer`](super::AppBridge::answer).
#[derive(Debug)]
#[must_use = "give the answer to the bridge"]
pub struct Answer {
    pub(crate) key: RequestKey,
    pub(crate) result: Result<Box<RawValue>, ErrorObject>,
}

impl Answer {
    fn denied(key: RequestKey, reason: impl Into<String>) -> Self {
        Self {
            key,
            result: Err(ErrorObject::new(DENIED.into(), reason)),
        }
    }

    /// Returns the key of the request.
    #[must_use]
    pub fn key(&self) -> RequestKey {
        self.key
    }
}

/// Something that a view tells its host.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// The view is ready.
    Initialized(AppInfo),
    /// The size of the view's content has changed, in pixels.
    SizeChanged {
        /// The width, if it is known.
        width: Option<f64>,
        /// The height, if it is known.
        height: Option<f64>,
    },
    /// A log message.
    Log {
        /// The severity.
        level: LoggingLevel,
        /// The part of the view that logs.
        logger: Option<String>,
        /// The message: a text, or a value as JSON.
        text: String,
    },
    /// The view asks to be removed: call [`AppBridge::teardown`](super::AppBridge::teardown), or ignore it.
    TeardownRequested,
    /// The tools of the view have changed.
    AppToolsChanged,
    /// The tools of the view, as [`AppBridge::list_app_tools`](super::AppBridge::list_app_tools) has requested. Do not trust
    /// their descriptions more than the page.
    AppTools(CallKey, Result<Vec<Tool>, ErrorObject>),
    /// The result of a tool of the view.
    AppToolResult(CallKey, Result<CallToolResult, ErrorObject>),
}

/// The description that a view gives of itself. Do not trust it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether it has tools.
    pub has_tools: bool,
    /// How it can be shown; `None` if it does not say.
    pub display_modes: Option<Vec<DisplayMode>>,
}

/// The context that a view gives to the model.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelContext {
    /// The content.
    pub content: Vec<ContentBlock>,
    /// The structured content.
    pub structured_content: Option<JsonObject>,
}

/// Returns a safe file name for a download, of at most 100 bytes: the last segment of its URI, without path separators, control
/// characters, leading dots and names of devices.
///
/// ```
/// use oxmcp_apps::host::file_name;
///
/// assert_eq!(file_name("file:///export/report.csv"), "report.csv");
/// assert_eq!(file_name("file:///..%2F..%2F.bashrc"), "download");
/// assert_eq!(file_name("file:///a\\..\\.profile"), "profile");
/// ```
#[must_use]
pub fn file_name(uri: &str) -> String {
    const MAX_NAME: usize = 100;
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let is_safe =
        |it: &char| it.is_alphanumeric() || matches!(it, '.' | '-' | '_' | ' ' | '(' | ')');
    // An escape could hide a separator from this function, and not from the file system.
    let is_escaped = last.contains('%');
    let mut name: String = last.chars().filter(is_safe).collect();
    while name.len() > MAX_NAME {
        name.pop();
    }
    let name = name.trim_matches(['.', ' ']);
    // Windows opens a device under these names, with any extension.
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_uppercase();
    let is_numbered = |it: &str| it.len() == 1 && it.starts_with(|it: char| it.is_ascii_digit());
    let port = stem
        .strip_prefix("COM")
        .or_else(|| stem.strip_prefix("LPT"));
    let is_device =
        ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str()) || port.is_some_and(is_numbered);
    match name.is_empty() || is_escaped || is_device {
        true => "download".to_owned(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_safe() {
        let long = format!("file:///{}.txt", "x".repeat(500));
        assert_eq!(file_name(&long).len(), 100);
        assert_eq!(file_name(&"é".repeat(100)).len(), 100);
        for (uri, expected) in [
            ("file:///a/b.txt?x#y", "b.txt"),
            ("b.txt", "b.txt"),
            ("file:///C:\\windows\\b.txt", "b.txt"),
            ("file:///..", "download"),
            ("file:///a/", "download"),
            ("file:///.bashrc", "bashrc"),
            ("file:///a\u{202e}b\n.txt", "ab.txt"),
            ("file:///a%2fb", "download"),
            ("file:///a.exe. ", "a.exe"),
            ("file:///a/ .bashrc", "bashrc"),
            ("file:///x. .", "x"),
            ("file:///nul.txt", "download"),
            ("file:///Com1", "download"),
            ("file:///console.txt", "console.txt"),
        ] {
            assert_eq!(file_name(uri), expected, "{uri}");
        }
    }
}
