use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{IntoToolResult, RegisteredTool, ToolError, output::ToolOutput};
use crate::{
    Result,
    json::Text,
    schema::{JsonSchema, Schema, refused_property},
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
    note = "`Input` is one type of yours: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`",
    note = "what handlers share comes before these, and is given by `oxmcp::with_state(shared, handler)`"
)]
pub trait ToolArguments: Sized + 'static {
    /// The schema of the input.
    #[doc(hidden)]
    fn input_schema() -> Schema;

    /// Whether the handler is given the context of the request.
    #[doc(hidden)]
    fn takes_context() -> bool;

    /// Reads the input of a call of `tool`, and holds it against the schema, where there is one.
    #[doc(hidden)]
    fn read(
        context: RequestContext,
        tool: &str,
        schema: Option<&Schema>,
        arguments: &str,
    ) -> Result<Self, ToolError>;
}

impl ToolArguments for () {
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn takes_context() -> bool {
        false
    }

    fn read(
        _context: RequestContext,
        tool: &str,
        schema: Option<&Schema>,
        arguments: &str,
    ) -> Result<Self, ToolError> {
        check(tool, schema, arguments)
    }
}

impl ToolArguments for (RequestContext,) {
    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn takes_context() -> bool {
        true
    }

    fn read(
        context: RequestContext,
        tool: &str,
        schema: Option<&Schema>,
        arguments: &str,
    ) -> Result<Self, ToolError> {
        check(tool, schema, arguments).map(|()| (context,))
    }
}

impl<Input: ToolInput> ToolArguments for (Input,) {
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn takes_context() -> bool {
        false
    }

    fn read(
        _context: RequestContext,
        tool: &str,
        schema: Option<&Schema>,
        arguments: &str,
    ) -> Result<Self, ToolError> {
        Ok((read(tool, schema, arguments)?,))
    }
}

impl<Context: HandlerContext, Input: ToolInput> ToolArguments for (Context, Input) {
    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn takes_context() -> bool {
        true
    }

    fn read(
        context: RequestContext,
        tool: &str,
        schema: Option<&Schema>,
        arguments: &str,
    ) -> Result<Self, ToolError> {
        Ok((Context::of(context), read(tool, schema, arguments)?))
    }
}

/// Holds the arguments of a call against the schema.
pub(super) fn check(tool: &str, schema: Option<&Schema>, arguments: &str) -> Result<(), ToolError> {
    let valid = schema.map_or(Ok(()), |it| it.validate_text(Text::checked(arguments)));
    valid.map_err(|violations| {
        ToolError::new(format!(
            "The arguments of {tool} are not valid.\n{violations}"
        ))
    })
}

fn read<T: DeserializeOwned>(
    tool: &str,
    schema: Option<&Schema>,
    arguments: &str,
) -> Result<T, ToolError> {
    // Mostly one walk over them does both.
    if let Some(input) = schema.and_then(|schema| schema.read(Text::checked(arguments))) {
        return Ok(input);
    }
    check(tool, schema, arguments)?;
    serde_json::from_str(arguments).map_err(|error| {
        // The position is one in our own copy of the arguments: it would only confuse.
        let text = error.to_string();
        let text = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(text, _)| text);
        // The schema has nothing against them: it is the type that does not take what it could.
        let place = refused_property::<T>(Text::checked(arguments));
        let place = place.map_or(String::new(), |place| format!("{place}: "));
        ToolError::new(format!(
            "The arguments of {tool} are not valid.\n{place}{text}"
        ))
    })
}

/// A call that has begun, or that could not.
pub(super) type Begun = Result<BoxFuture<Result<Body>>, ToolError>;

/// What is done with a call before its handler runs and after: what goes in and out is held against the tool's schemas.
pub(super) struct Finish(pub(super) Arc<RegisteredTool>);

impl Finish {
    pub(super) fn with(self, output: Result<ToolOutput, ToolError>) -> Result<Body> {
        self.0.finish(output)
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
        let tool = &finish.0;
        let arguments = Arguments::read(context, tool.name(), tool.input(), arguments)?;
        let running = handler.call(arguments).run();
        Ok(Box::pin(
            async move { finish.with(running.await.into_output()) },
        ))
    })
}
