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
/// It is implemented for functions and closures of
/// - `(Input)`,
/// - `(RequestContext, Input)`,
/// - `(RequestContext)` and `()`, for tools without arguments,
///
/// that return a [`ToolFuture`] of an [`IntoToolResult`], where `Input` is a [`ToolInput`].
/// You do not need to worry about `Arguments`: they are those of the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler for a tool",
    label = "not an async function of `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`; put all that the model has to say into one `Input`",
    note = "it is shared by all calls: a closure must be `Fn + Send + Sync + 'static`, so clone what it needs into the future"
)]
pub trait ToolHandler<Arguments>: Send + Sync + 'static {
    /// What calling the function gives: a future, where it is async.
    type Returned;

    /// Calls the function.
    #[doc(hidden)]
    fn call(&self, arguments: Arguments) -> Self::Returned;
}

// These ask for nothing but the number of arguments, so that the compiler knows at once which one is meant, and then says
// what exactly is wrong with it.

impl<F: Fn() -> R + Send + Sync + 'static, R> ToolHandler<()> for F {
    type Returned = R;

    fn call(&self, (): ()) -> R {
        self()
    }
}

impl<F: Fn(A) -> R + Send + Sync + 'static, A, R> ToolHandler<(A,)> for F {
    type Returned = R;

    fn call(&self, (only,): (A,)) -> R {
        self(only)
    }
}

impl<F: Fn(A, B) -> R + Send + Sync + 'static, A, B, R> ToolHandler<(A, B)> for F {
    type Returned = R;

    fn call(&self, (first, second): (A, B)) -> R {
        self(first, second)
    }
}

/// The arguments of a [`ToolHandler`]: `()`, `(RequestContext,)`, `(Input,)` or `(RequestContext, Input)`.
#[diagnostic::on_unimplemented(
    message = "a tool's handler cannot take `{Self}`",
    label = "not `(Input)` or `(RequestContext, Input)`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`, in this order",
    note = "`Input` is one type of yours: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`"
)]
pub trait ToolArguments: Sized + 'static {
    /// The schema of the input.
    #[doc(hidden)]
    fn input_schema() -> Schema;

    /// Reads the input. It has been validated.
    #[doc(hidden)]
    fn read(context: RequestContext, arguments: &str) -> Result<Self, ToolError>;
}

impl ToolArguments for () {
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn read(_context: RequestContext, _arguments: &str) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl ToolArguments for (RequestContext,) {
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn read(context: RequestContext, _arguments: &str) -> Result<Self, ToolError> {
        Ok((context,))
    }
}

impl<Input: ToolInput> ToolArguments for (Input,) {
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn read(_context: RequestContext, arguments: &str) -> Result<Self, ToolError> {
        Ok((read(arguments)?,))
    }
}

impl<Context: HandlerContext, Input: ToolInput> ToolArguments for (Context, Input) {
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn read(context: RequestContext, arguments: &str) -> Result<Self, ToolError> {
        Ok((Context::of(context), read(arguments)?))
    }
}

/// What a handler may take before its input: a [`RequestContext`].
#[diagnostic::on_unimplemented(
    message = "the first of a handler's two arguments must be `RequestContext`, not `{Self}`",
    label = "not a `RequestContext`",
    note = "a handler is `async fn(Input) -> Output` or `async fn(RequestContext, Input) -> Output`, in this order",
    note = "`Input` is one type, for all that the model has to say: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`"
)]
pub trait HandlerContext: Sized + 'static {
    /// Makes it of what there is.
    #[doc(hidden)]
    fn of(context: RequestContext) -> Self;
}

impl HandlerContext for RequestContext {
    fn of(context: RequestContext) -> Self {
        context
    }
}

/// Nobody needs it, since a context is cheap to clone. But with one implementation alone the compiler would take every
/// first argument for a [`RequestContext`], and complain about the function instead of the argument.
impl HandlerContext for Arc<RequestContext> {
    fn of(context: RequestContext) -> Self {
        Self::new(context)
    }
}

/// What an async function returns when it is called: any future.
#[diagnostic::on_unimplemented(
    message = "a tool's handler must be async, and this one returns `{Self}`",
    label = "not an async function",
    note = "write `async fn`, or a closure whose body is `async move {{ … }}`"
)]
pub trait ToolFuture {
    /// What the function returns in the end.
    type Output;

    /// Runs the function.
    #[doc(hidden)]
    fn run(self) -> impl Future<Output = Result<CallToolResult, ToolError>> + Send
    where
        Self: Send + 'static,
        Self::Output: IntoToolResult;
}

#[diagnostic::do_not_recommend]
impl<F: Future> ToolFuture for F {
    type Output = F::Output;

    async fn run(self) -> Result<CallToolResult, ToolError>
    where
        Self: Send + 'static,
        Self::Output: IntoToolResult,
    {
        self.await.into_tool_result()
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

/// A call that has begun, or that could not.
pub(super) type Begun = Result<BoxFuture<Result<Body>>, ToolError>;

/// What is done with a handler's result: it is held against the tool's output schema.
pub(super) struct Finish(pub(super) Arc<RegisteredTool>);

impl Finish {
    pub(super) fn with(self, result: Result<CallToolResult, ToolError>) -> Result<Body> {
        self.0.finish(result)
    }
}

/// A handler whose type has been forgotten. The arguments are JSON.
pub(super) type ErasedHandler = Arc<dyn Fn(RequestContext, &str, Finish) -> Begun + Send + Sync>;

/// Forgets the type of a handler.
pub(super) fn erase<Arguments, H>(handler: H) -> ErasedHandler
where
    Arguments: ToolArguments,
    H: ToolHandler<Arguments>,
    H::Returned: ToolFuture<Output: IntoToolResult> + Send + 'static,
{
    Arc::new(move |context, arguments, finish| {
        let running = handler.call(Arguments::read(context, arguments)?).run();
        Ok(Box::pin(async move { finish.with(running.await) }))
    })
}
