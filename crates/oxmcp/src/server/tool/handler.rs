use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{IntoToolResult, RegisteredTool, ToolError};
use crate::{
    Result,
    protocol::CallToolResult,
    schema::{JsonSchema, Schema},
    server::handler::{Handler, HandlerContext, HandlerFuture},
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

/// The arguments of a [`Handler`] of tools: `()`, `(RequestContext,)`, `(Input,)` or `(RequestContext, Input)`.
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

    /// Whether the handler is given the context of the request.
    #[doc(hidden)]
    fn takes_context() -> bool;

    /// Reads the input. It has been validated.
    #[doc(hidden)]
    fn read(context: RequestContext, arguments: &str) -> Result<Self, ToolError>;
}

impl ToolArguments for () {
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn takes_context() -> bool {
        false
    }

    fn read(_context: RequestContext, _arguments: &str) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl ToolArguments for (RequestContext,) {
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn takes_context() -> bool {
        true
    }

    fn read(context: RequestContext, _arguments: &str) -> Result<Self, ToolError> {
        Ok((context,))
    }
}

impl<Input: ToolInput> ToolArguments for (Input,) {
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn takes_context() -> bool {
        false
    }

    fn read(_context: RequestContext, arguments: &str) -> Result<Self, ToolError> {
        Ok((read(arguments)?,))
    }
}

impl<Context: HandlerContext, Input: ToolInput> ToolArguments for (Context, Input) {
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn takes_context() -> bool {
        true
    }

    fn read(context: RequestContext, arguments: &str) -> Result<Self, ToolError> {
        Ok((Context::of(context), read(arguments)?))
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
    H: Handler<Arguments>,
    H::Returned: HandlerFuture<Output: IntoToolResult> + Send + 'static,
{
    Arc::new(move |context, arguments, finish| {
        let running = handler.call(Arguments::read(context, arguments)?).run();
        Ok(Box::pin(async move {
            finish.with(running.await.into_tool_result())
        }))
    })
}
