//! Layers of a tool: code of extensions around its calls, which can answer otherwise than the tool does, and go on with a call
//! that was answered.

use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    CallToolResult, CreateTaskResult, Payload, Revision,
    internal::{encode_payload, into_text},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{
    handler::{ErasedHandler, ToolSchemas},
    stored_call::StoredCall,
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    server::ask,
    session::{
        connection::{ContextParts, RequestContext},
        handler::detached::{DetachedProgress, DetachedWork},
        inbound::{body::Body, run::unless_cancelled},
        notifications::progress_out::flush_progress,
        panics,
        task::BoxFuture,
    },
};

/// A layer without its type.
pub(super) type ErasedLayer =
    Arc<dyn Fn(ToolCall) -> BoxFuture<Result<ToolResponse>> + Send + Sync>;

/// Erases the type of a layer.
pub(super) fn erase_layer<F, Fut>(layer: F) -> ErasedLayer
where
    F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResponse>> + Send + 'static,
{
    Arc::new(move |call| Box::pin(layer(call)))
}

/// Puts layers around a handler, the first outermost.
pub(super) fn wrap(handler: ErasedHandler, layers: Vec<ErasedLayer>) -> ErasedHandler {
    layers.into_iter().rev().fold(handler, |inner, layer| {
        Arc::new(move |context, arguments, schemas| {
            let call = ToolCall {
                context,
                arguments,
                schemas,
                handler: Arc::clone(&inner),
            };
            let answered = layer(call);
            Box::pin(async move { answered.await.map(|response| response.0) })
        })
    })
}

/// A call of a tool, as a [layer](crate::Tool::layer) of the tool gets it.
#[must_use = "the tool is called when this is run"]
pub struct ToolCall {
    context: RequestContext,
    arguments: Box<str>,
    schemas: Arc<ToolSchemas>,
    handler: ErasedHandler,
}

impl ToolCall {
    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.schemas.tool
    }

    /// The context of the request.
    #[must_use]
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// The arguments as JSON, as they came: the tool has not looked at them yet.
    #[must_use]
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Calls the tool.
    ///
    /// # Errors
    /// What is answered as an error of the protocol. One that [is for input](Error::is_input_required) is to be handed on: the
    /// client is asked then, and makes the call again.
    ///
    /// # Cancel safety
    /// Dropping the future drops the handler's.
    pub async fn run(self) -> Result<ToolResponse> {
        let body = (self.handler)(self.context, self.arguments, self.schemas).await?;
        Ok(ToolResponse(body))
    }

    /// Calls the tool so that it can go on when the request has been answered without it.
    #[must_use]
    pub fn detachable(self) -> DetachableCall {
        let request = self.context;
        let context = ask::detachable(&request);
        let arguments = self.arguments.clone();
        let is_live = self.schemas.is_live;
        let again = {
            let context = context.clone();
            move || {
                let (arguments, schemas) = (self.arguments.clone(), Arc::clone(&self.schemas));
                (self.handler)(context.clone(), arguments, schemas)
            }
        };
        let first = again();
        let cx = context.clone();
        let future = Box::pin(async move { ask::go_on_detached(cx, first.await, again).await });
        DetachableCall {
            request,
            arguments,
            is_live,
            context: Attached(Some(context)),
            future,
        }
    }
}

opaque_debug!(ToolCall, |it| { tool: it.schemas.tool });

/// What a call of a tool is answered with.
pub struct ToolResponse(Body);

impl ToolResponse {
    /// A result of a type that an extension has added, by [`Extension::result_type`](crate::Extension::result_type). `members`
    /// are those of the result, as an object; the type is added to them.
    /// See [result types](https://modelcontextprotocol.io/specification/2026-07-28/basic#result-responses).
    ///
    /// ```
    /// use oxmcp::{Extension, Server, Tool, ToolResponse};
    ///
    /// let tickets = Extension::new("com.example/tickets").result_type("ticket");
    /// let tool = Tool::new("print", "Print a page", || async { "printed" }).layer(|call| async move {
    ///     match ToolResponse::of_extension(call.context(), "ticket", serde_json::json!({"number": 7})) {
    ///         Ok(ticket) => Ok(ticket),
    ///         // The client has not declared the extension.
    ///         Err(_) => call.run().await,
    ///     }
    /// });
    /// let server = Server::new("printer", "1.0.0").extension(tickets).tool(tool);
    /// # let _ = server;
    /// ```
    ///
    /// # Errors
    /// Where this request does not declare the extension, or its revision has no types of results: the error is one to answer
    /// with.
    /// Besides, where no extension of the server has the type, or the members are no object.
    pub fn of_extension(
        cx: &RequestContext,
        result_type: &str,
        members: impl Serialize,
    ) -> Result<Self> {
        let session = cx.server_session();
        let session = session.ok_or_else(|| Error::misuse("only servers answer calls of tools"))?;
        let features = session.server().features();
        features.extensions.check_result_type(cx, result_type)?;
        let Ok(Value::Object(members)) = serde_json::to_value(members) else {
            return Err(Error::misuse(format!(
                "the result of the type {result_type:?} must be a JSON object"
            )));
        };
        let mut result = Map::from_iter([("resultType".to_owned(), result_type.into())]);
        result.extend(members);
        let mut out = Vec::new();
        let info = Some(&*features.info_json);
        encode_payload(&mut out, &mut Members(result), cx.revision(), info)?;
        Ok(Self(Body::Json(into_text(out)?)))
    }

    /// The task that the call has become because its client asked for one (2025-11-25 only).
    pub(crate) fn of_task(created: CreateTaskResult) -> Self {
        Self(Body::of(created))
    }

    /// The result of the tool. `None` for that of an extension.
    #[must_use]
    pub fn result(&self) -> Option<&CallToolResult> {
        match &self.0 {
            Body::Tool(result) => Some(result),
            Body::Json(_) | Body::Shared(_) | Body::Other(_) => None,
        }
    }

    /// The result as JSON, as a revision has it.
    ///
    /// # Errors
    /// Where it cannot be JSON.
    pub fn into_json(self, revision: Revision) -> Result<Box<RawValue>> {
        let json = self.0.into_json(revision, None)?;
        Ok(Text::checked(&json).to_raw())
    }
}

impl From<CallToolResult> for ToolResponse {
    fn from(result: CallToolResult) -> Self {
        Self(Body::Tool(result))
    }
}

impl fmt::Debug for ToolResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolResponse").finish_non_exhaustive()
    }
}

/// The members of an extension's result.
#[derive(Serialize)]
#[serde(transparent)]
struct Members(Map<String, Value>);

impl Payload for Members {}

/// A call of a tool that can go on when its request has been answered without it; made by [`ToolCall::detachable`].
///
/// Until then it is a call like any other: it ends when the caller cancels it, and its progress reaches the caller.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use oxmcp::{CancellationToken, DetachableCall, ToolResponse, traits::DetachedWork};
///
/// /// Answers with what the tool returns, if it returns soon enough.
/// async fn run_or_detach(mut call: DetachableCall, work: Arc<dyn DetachedWork>) -> oxmcp::Result<ToolResponse> {
///     tokio::select! {
///         done = call.run() => return done,
///         () = tokio::time::sleep(Duration::from_secs(1)) => {}
///     }
///     match call.detach(work, CancellationToken::new()) {
///         Ok(rest) => {
///             tokio::spawn(rest);
///             Ok(oxmcp::protocol::CallToolResult::text("It takes a while.").into())
///         }
///         // It has asked the client something, which is the answer.
///         Err(mut call) => call.run().await,
///     }
/// }
/// ```
pub struct DetachableCall {
    /// The context of the request.
    request: RequestContext,
    arguments: Box<str>,
    is_live: bool,
    context: Attached,
    future: BoxFuture<Result<Body>>,
}

/// The context of a handler that belongs to its request for now. With it ends what the handler sends.
struct Attached(Option<RequestContext>);

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(context) = self.0.take() {
            end(context.parts());
        }
    }
}

/// Ends what a handler sends for a request: the answer follows.
fn end(parts: &ContextParts) {
    flush_progress(parts);
    parts.set_answered();
}

impl DetachableCall {
    /// Runs the call to its end. It can be dropped, and awaited again.
    ///
    /// # Errors
    /// As [`ToolCall::run`].
    ///
    /// # Cancel safety
    /// Cancel safe: the handler stops where it is, and goes on with the next `run` or when it is detached.
    pub async fn run(&mut self) -> Result<ToolResponse> {
        let request = &self.request;
        let parts = self.context.0.as_ref().map(RequestContext::parts);
        let cancelled = async {
            request.cancelled().await;
            if let Some(parts) = parts {
                parts.cancel.set();
            }
            pending().await
        };
        let ended = tokio::select! {
            biased;
            ended = &mut self.future => ended,
            ended = cancelled => ended,
        };
        if let Some(parts) = parts {
            end(parts);
        }
        ended.map(ToolResponse)
    }

    /// Whether the handler has asked what the client is to answer with the next round: then it cannot be detached any more.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        ask::is_suspended(&self.request)
    }

    /// The newest progress that the handler has reported, whether its caller asked for it or not. What it reports once it is detached
    /// goes to its work.
    #[must_use]
    pub fn progress(&self) -> Option<DetachedProgress> {
        self.context.0.as_ref()?.parts().detached.progress()
    }

    /// The call as it can be stored, to be made again. `None` where the tool does not allow that.
    ///
    /// # Errors
    /// Where it is no JSON.
    pub(crate) fn to_stored(&self) -> Result<Option<StoredCall>> {
        if self.is_live {
            return Ok(None);
        }
        StoredCall::of(&self.request, &self.arguments).map(Some)
    }

    /// Detaches the handler from its request, which is to be answered by other means. What it sends is dropped from now on but
    /// for its progress and its questions, which go to `work`. It is cancelled by the token alone, and dropped after
    /// [`Limits::cancel_grace`](crate::Limits::cancel_grace) then. The future that is returned is the rest of the call, to be
    /// spawned.
    ///
    /// # Errors
    /// The call, where its handler has asked the client something before it was detached: [run](Self::run) it to its end, and
    /// answer with what it returns.
    ///
    /// # Cancel safety
    /// Dropping the future drops the handler's.
    pub fn detach(
        mut self,
        work: Arc<dyn DetachedWork>,
        cancel: CancellationToken,
    ) -> Result<impl Future<Output = Result<ToolResponse>> + Send + 'static, Self> {
        if self.has_asked() {
            return Err(self);
        }
        let Some(context) = self.context.0.take() else {
            return Err(self);
        };
        let parts = Arc::clone(context.parts());
        parts.detached.set(work);
        parts.set_answered();
        let future = self.future;
        Ok(async move {
            let work = async {
                let cancelled = async {
                    cancel.cancelled().await;
                    parts.cancel.set();
                    pending().await
                };
                tokio::select! {
                    biased;
                    ended = panics::catch(future) => panics::flatten(ended),
                    ended = cancelled => ended,
                }
            };
            let ended = unless_cancelled(&parts, work).await;
            let cancelled = || Error::cancelled("the call was cancelled");
            ended.ok_or_else(cancelled)?.map(ToolResponse)
        })
    }
}

opaque_debug!(DetachableCall, |it| { request: it.request });
