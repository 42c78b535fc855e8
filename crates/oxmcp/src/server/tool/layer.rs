//! Layers of a tool: code of extensions around its calls, which can replace the response, or let a call outlive its request.

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

/// A type-erased layer.
pub(crate) type ErasedLayer =
    Arc<dyn Fn(ToolCall) -> BoxFuture<Result<ToolResponse>> + Send + Sync>;

/// Erases the type of a layer.
pub(crate) fn erase_layer<F, Fut>(layer: F) -> ErasedLayer
where
    F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResponse>> + Send + 'static,
{
    Arc::new(move |call| Box::pin(layer(call)))
}

/// Wraps a handler in layers; the first is the outermost.
pub(crate) fn wrap(handler: ErasedHandler, layers: Vec<ErasedLayer>) -> ErasedHandler {
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

/// A call of a tool, as passed to a [layer](crate::Tool::layer) of the tool.
#[must_use = "the tool is called by `run`"]
pub struct ToolCall {
    context: RequestContext,
    arguments: Box<str>,
    schemas: Arc<ToolSchemas>,
    handler: ErasedHandler,
}

impl ToolCall {
    /// Returns the name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.schemas.tool
    }

    /// Returns the context of the request.
    #[must_use]
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// Returns the arguments as received JSON, not yet validated.
    #[must_use]
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// The response to a call with invalid arguments. `None` if they are valid.
    pub(crate) fn refuse_arguments(&self) -> Option<Result<ToolResponse>> {
        let (context, schemas) = (self.context.clone(), &*self.schemas);
        let error = (schemas.check_arguments)(context, schemas, &self.arguments).err()?;
        Some(schemas.finish(Err(error)).map(ToolResponse))
    }

    /// Calls the tool.
    ///
    /// # Errors
    /// Failures that become protocol errors. Pass on an error that [asks for input](Error::is_input_required): the client then asks
    /// the user, and repeats the call.
    ///
    /// # Cancel safety
    /// Dropping the future drops the future of the handler.
    pub async fn run(self) -> Result<ToolResponse> {
        let body = (self.handler)(self.context, self.arguments, self.schemas).await?;
        Ok(ToolResponse(body))
    }

    /// Turns the call into one that can outlive its request.
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

/// The response to a call of a tool.
pub struct ToolResponse(Body);

impl ToolResponse {
    /// Creates a result of an extension's [result type](crate::Extension::result_type). `members` is an object with the members
    /// of the result, except for the type.
    /// See [result types](https://modelcontextprotocol.io/specification/2026-07-28/basic#result-responses).
    ///
    /// ```
    /// use oxmcp::{Extension, Server, Tool, ToolResponse};
    ///
    /// let tickets = Extension::new("com.example/tickets").result_type("ticket");
    /// let tool = Tool::new("print", "Print a page", || async { "printed" }).layer(|call| async move {
    ///     match ToolResponse::from_extension(call.context(), "ticket", serde_json::json!({"number": 7})) {
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
    /// If the request does not declare the extension, or its revision has no result types: return such an error as the
    /// response. Also if no extension of the server has the type, or `members` is not an object.
    pub fn from_extension(
        cx: &RequestContext,
        result_type: &str,
        members: impl Serialize,
    ) -> Result<Self> {
        let session = cx.server_session();
        let session = session.ok_or_else(|| {
            Error::misuse("not a call of a tool: the context belongs to a client")
        })?;
        let features = session.server().features();
        features.extensions.check_result_type(cx, result_type)?;
        let Ok(Value::Object(members)) = serde_json::to_value(members) else {
            return Err(Error::misuse(format!(
                "invalid result of type {result_type:?}: the members must be a JSON object"
            )));
        };
        let mut result = Map::from_iter([("resultType".to_owned(), result_type.into())]);
        result.extend(members);
        let mut out = Vec::new();
        let info = Some(&*features.info_json);
        encode_payload(&mut out, &mut Members(result), cx.revision(), info)?;
        Ok(Self(Body::Json(into_text(out)?)))
    }

    /// The task that runs the call, as its client requested (2025-11-25 only).
    pub(crate) fn of_task(created: CreateTaskResult) -> Self {
        Self(Body::of(created))
    }

    /// An already serialized result.
    pub(crate) fn of_json(result: &RawValue) -> Self {
        Self(Body::Json(result.get().into()))
    }

    /// Returns the result of the tool. `None` for a result of an extension's type.
    #[must_use]
    pub fn result(&self) -> Option<&CallToolResult> {
        match &self.0 {
            Body::Tool(result) => Some(result),
            Body::Json(_) | Body::Shared(_) | Body::Other(_) => None,
        }
    }

    /// Converts the result to JSON for a revision.
    ///
    /// # Errors
    /// If the result cannot be serialized.
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

/// A call of a tool that can outlive its request; made by [`ToolCall::detachable`].
///
/// Until it is detached, it is a call like any other: the caller can cancel it, and gets its progress.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use oxmcp::{CancellationToken, DetachableCall, ToolResponse, traits::DetachedWork};
///
/// /// Returns the tool's result if it is ready within a second.
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
///         // It has asked the client a question, which is the response.
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

/// The context of a handler that is still attached to its request. Dropping it stops the handler's messages.
struct Attached(Option<RequestContext>);

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(context) = self.0.take() {
            end(context.parts());
        }
    }
}

/// Ends the messages of a handler for a request, before the response is written.
fn end(parts: &ContextParts) {
    flush_progress(parts);
    parts.set_answered();
}

impl DetachableCall {
    /// Runs the call to its end. The future can be dropped, and `run` called again.
    ///
    /// # Errors
    /// As [`ToolCall::run`].
    ///
    /// # Cancel safety
    /// Cancel safe: the handler pauses, and continues with the next `run` or when the call is detached.
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

    /// Waits until the handler asks to be detached. The future borrows nothing.
    pub(crate) fn detach_requested(&self) -> impl Future<Output = ()> + Send + use<> {
        let context = self.context.0.as_ref();
        let requested = context.and_then(|it| it.parts().detached.requested());
        async move {
            match requested {
                Some(requested) => requested.notified().await,
                None => pending().await,
            }
        }
    }

    /// Returns whether the handler waits for an answer in the next round. The call can no longer be detached then.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        ask::is_suspended(&self.request)
    }

    /// Returns the handler's latest progress, even if the caller has not requested any. Once the call is detached, progress goes
    /// to the [`DetachedWork`].
    #[must_use]
    pub fn progress(&self) -> Option<DetachedProgress> {
        self.context.0.as_ref()?.parts().detached.progress()
    }

    /// The stored form of the call, for repeating it. `None` if the tool does not allow that.
    ///
    /// # Errors
    /// If a part of the call is not JSON.
    pub(crate) fn to_stored(&self) -> Result<Option<StoredCall>> {
        if self.is_live {
            return Ok(None);
        }
        StoredCall::of(&self.request, &self.arguments).map(Some)
    }

    /// Detaches the handler from its request, and returns the rest of the call. Spawn this future, and respond to the request
    /// yourself.
    ///
    /// From now on, messages of the handler are dropped, except for its progress and its questions, which go to `work`. Only the
    /// token cancels the handler, which is dropped [`Limits::cancel_grace`](crate::Limits::cancel_grace) later.
    ///
    /// # Errors
    /// Returns the call if its handler has already asked the client a question: [run](Self::run) it to its end, and respond with
    /// the result.
    ///
    /// # Cancel safety
    /// Dropping the future drops the future of the handler.
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
