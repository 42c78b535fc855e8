use std::{future::Future, sync::Arc};

use serde::de::DeserializeOwned;

use super::{IntoToolResult, RegisteredTool, ToolError};
use crate::{
    Result,
    protocol::CallToolResult,
    schema::{JsonSchema, Schema},
    session::{Body, BoxFuture, RequestContext},
};

/// What a tool takes: a type that can be read from JSON and says how that JSON looks.
///
/// Derive both: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`. Doc comments become descriptions.
#[diagnostic::on_unimplemented(
    message = "a tool cannot take `{Self}` as its input",
    label = "not an input type",
    note = "derive what it needs: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`"
)]
pub trait ToolInput: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolInput for T {}

/// An async function that can be a tool's handler.
///
/// It is implemented for async functions and closures of
/// - `(Input)`,
/// - `(RequestContext, Input)`,
/// - `(RequestContext)` and `()`, for tools without arguments,
///
/// where `Input` is a [`ToolInput`] and what they return is an [`IntoToolResult`].
/// You do not need to worry about `Kind`: it only keeps these forms apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler for a tool",
    label = "not an async function of `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`",
    note = "`Input` derives `serde::Deserialize` and `oxmcp::JsonSchema`; `Output` is a String, a number, `Structured<T>`, content blocks, or a `Result` of these",
    note = "what it returns must be `Send`: hold nothing across an `.await` that is not"
)]
pub trait ToolHandler<Kind>: Send + Sync + 'static {
    /// The schema of what the handler takes.
    #[doc(hidden)]
    fn input_schema() -> Schema;

    /// The schema of what it returns.
    #[doc(hidden)]
    fn output_schema() -> Option<Schema>;

    /// Begins a call. The arguments are JSON and have been validated; `finish` checks what comes of it.
    #[doc(hidden)]
    fn begin(&self, context: RequestContext, arguments: &str, finish: Finish) -> Begun;
}

/// A call that has begun, or that could not.
#[doc(hidden)]
pub type Begun = Result<BoxFuture<Result<Body>>, ToolError>;

/// What is done with a handler's result: it is held against the tool's output schema.
#[doc(hidden)]
#[derive(Debug)]
pub struct Finish(pub(super) Arc<RegisteredTool>);

impl Finish {
    pub(super) fn with(self, result: Result<CallToolResult, ToolError>) -> Result<Body> {
        self.0.finish(result)
    }
}

/// Marks handlers that take no input.
#[derive(Debug)]
#[non_exhaustive]
pub struct NoInput;

impl<F, Fut, Input> ToolHandler<(Input,)> for F
where
    F: Fn(Input) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
    Input: ToolInput,
{
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn output_schema() -> Option<Schema> {
        Fut::Output::output_schema()
    }

    fn begin(&self, _context: RequestContext, arguments: &str, finish: Finish) -> Begun {
        Ok(boxed(self(read(arguments)?), finish))
    }
}

impl<F, Fut, Input> ToolHandler<(RequestContext, Input)> for F
where
    F: Fn(RequestContext, Input) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
    Input: ToolInput,
{
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn output_schema() -> Option<Schema> {
        Fut::Output::output_schema()
    }

    fn begin(&self, context: RequestContext, arguments: &str, finish: Finish) -> Begun {
        Ok(boxed(self(context, read(arguments)?), finish))
    }
}

impl<F, Fut> ToolHandler<NoInput> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
{
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn output_schema() -> Option<Schema> {
        Fut::Output::output_schema()
    }

    fn begin(&self, _context: RequestContext, _arguments: &str, finish: Finish) -> Begun {
        Ok(boxed(self(), finish))
    }
}

impl<F, Fut> ToolHandler<(NoInput, RequestContext)> for F
where
    F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
{
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn output_schema() -> Option<Schema> {
        Fut::Output::output_schema()
    }

    fn begin(&self, context: RequestContext, _arguments: &str, finish: Finish) -> Begun {
        Ok(boxed(self(context), finish))
    }
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, ToolError> {
    serde_json::from_str(arguments).map_err(|error| {
        // The position is one in our own copy of the arguments: it would only confuse.
        let text = error.to_string();
        let text = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(text, _)| text);
        ToolError::new(format!("the arguments do not fit: {text}"))
    })
}

fn boxed<Fut>(future: Fut, finish: Finish) -> BoxFuture<Result<Body>>
where
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
{
    Box::pin(async move { finish.with(future.await.into_tool_result()) })
}

/// A handler whose type has been forgotten.
pub(super) type ErasedHandler = Arc<dyn Fn(RequestContext, &str, Finish) -> Begun + Send + Sync>;

/// Forgets the type of a handler.
pub(super) fn erase<K: 'static>(handler: impl ToolHandler<K>) -> ErasedHandler {
    Arc::new(move |context, arguments, finish| handler.begin(context, arguments, finish))
}
