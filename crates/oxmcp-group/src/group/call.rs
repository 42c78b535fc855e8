//! A tool call of a group: the options of a call, which is also its future.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use oxmcp::{
    Call, CancellationToken, Error, Result,
    protocol::{CallToolResult, ContentBlock, ProgressParams, ResourceContents, method::CallTool},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{session::GroupSession, state::Shared};

type Progress = Box<dyn FnMut(ProgressParams) + Send>;

/// A call of a tool, created by [`GroupSession::call_tool`]. Await it for the result, or set its options first, which are those of
/// a [`Call`].
///
/// # Errors
/// Those of a [`Call`]. An error if no server lists the tool, and [`Error::is_closed`] if its server is not connected. A server that
/// is being connected again after it was lost is waited for.
///
/// # Cancel safety
/// Dropping the future cancels the call.
#[must_use = "a call is made when it is awaited"]
pub struct GroupCall {
    shared: Arc<Shared>,
    /// The index of the server, and the name of the tool there.
    target: Result<(usize, String)>,
    arguments: Result<Value>,
    timeout: Option<Duration>,
    max_total: Option<Duration>,
    on_progress: Option<Progress>,
    cancel: Option<CancellationToken>,
    meta: Vec<(String, Value)>,
}

impl fmt::Debug for GroupCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("GroupCall");
        shown.field("target", &self.target).finish_non_exhaustive()
    }
}

impl GroupSession {
    /// Calls a tool by its name in the group. `arguments` is anything that serializes to an object: `json!({…})`, or your own
    /// struct.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// # async fn run(group: oxmcp_group::GroupSession) -> oxmcp::Result<()> {
    /// let result = group
    ///     .call_tool("files_read", json!({"path": "notes.txt"}))
    ///     .on_progress(|p| eprintln!("{p}"))
    ///     .await?;
    /// # let _ = result;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_tool(&self, name: impl AsRef<str>, arguments: impl Serialize) -> GroupCall {
        let name = name.as_ref();
        let shared = Arc::clone(self.shared());
        let catalog = shared.catalog();
        let target = catalog.tool_names.target(name);
        let target = target.map(|(server, name)| (server, name.to_owned()));
        GroupCall {
            target: target.ok_or_else(|| {
                let name: String = name.chars().take(200).collect();
                Error::invalid_params(format!("no server of the group has the tool `{name}`"))
            }),
            arguments: serde_json::to_value(arguments).map_err(|error| {
                Error::misuse(format!("could not serialize the arguments: {error}"))
            }),
            shared,
            timeout: None,
            max_total: None,
            on_progress: None,
            cancel: None,
            meta: Vec::new(),
        }
    }
}

impl GroupCall {
    /// Sets the longest time to wait for the response, as [`Call::timeout`] does. Default: that of the server's configuration, or
    /// else of the client.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the longest time to wait in total, as [`Call::max_total`] does. It includes the time in which the server is connected
    /// again.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.max_total = Some(max_total);
        self
    }

    /// Requests progress, as [`Call::on_progress`] does.
    pub fn on_progress(mut self, handler: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(handler));
        self
    }

    /// Cancels the call when the token is cancelled, as [`Call::cancel_with`] does.
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Sets a key of the request's `_meta`, as [`Call::meta`] does.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.push((key.into(), value.into()));
        self
    }

    /// Makes the call, and reads the structured content of the result as `T`, as [`Call::structured`] does.
    ///
    /// # Errors
    /// Those of the call itself, and of [`Call::structured`].
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T> {
        let (_, call) = self.prepare().await?;
        call.structured().await
    }

    /// Finds the session, and passes the options on.
    async fn prepare(self) -> Result<(usize, Call<CallTool>)> {
        let (server, name) = self.target?;
        let arguments = self.arguments?;
        let member = self.shared.members.get(server);
        let limit = self.timeout.or_else(|| member?.call_timeout);
        let begun = Instant::now();
        let cancelled = async {
            match &self.cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let waited = self.max_total.into_iter().chain(limit).min();
        let late = async {
            match waited {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let session = tokio::select! {
            biased;
            () = cancelled => return Err(Error::cancelled("the call was cancelled")),
            session = self.shared.session(server) => session?,
            () = late => return Err(Error::timeout(format!(
                "the server `{}` was not connected again within {:?}",
                self.shared.label(server), waited.unwrap_or_default()
            ))),
        };
        let mut call = session.call_tool(name, arguments);
        if let Some(timeout) = limit {
            call = call.timeout(timeout);
        }
        if let Some(max_total) = self.max_total {
            call = call.max_total(max_total.saturating_sub(begun.elapsed()));
        }
        if let Some(on_progress) = self.on_progress {
            call = call.on_progress(on_progress);
        }
        if let Some(cancel) = self.cancel {
            call = call.cancel_with(cancel);
        }
        for (key, value) in self.meta {
            call = call.meta(key, value);
        }
        Ok((server, call))
    }
}

impl IntoFuture for GroupCall {
    type Output = Result<CallToolResult>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<CallToolResult>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let shared = Arc::clone(&self.shared);
            let (server, call) = self.prepare().await?;
            let mut result = call.await?;
            for block in &mut result.content {
                expose_uris(&shared, server, block);
            }
            Ok(result)
        })
    }
}

/// Makes the URIs in content those by which the group reads them.
pub(super) fn expose_uris(shared: &Shared, server: usize, block: &mut ContentBlock) {
    match block {
        ContentBlock::ResourceLink(link) => {
            shared.expose_uri(server, &mut link.uri);
        }
        ContentBlock::Resource(embedded) => {
            expose_contents(shared, server, &mut embedded.resource);
        }
        _ => {}
    }
}

/// Makes the URI of contents the one by which the group reads them.
pub(super) fn expose_contents(shared: &Shared, server: usize, contents: &mut ResourceContents) {
    shared.expose_uri(server, &mut contents.uri);
}
