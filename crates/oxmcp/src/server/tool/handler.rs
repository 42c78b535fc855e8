//! Tool handler: the functions that can be one, reading their arguments, and finishing their results.

use std::{fmt, future::Future, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{IntoToolResult, ToolError, output::ToolOutput};
use crate::{
    error::{Error, Result},
    json::{Logged, Text},
    protocol::{CallToolResult, TextResult},
    schema::{JsonSchema, Schema, refused_property},
    session::{
        Body, BoxFuture, RequestContext,
        handler::{Handler, HandlerContext, HandlerFuture},
    },
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

    /// Reads the input of a call of `tool`, and validates it against the schema, where there is one.
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

/// Validates the arguments of a call.
fn check(tool: &str, schema: Option<&Schema>, arguments: &str) -> Result<(), ToolError> {
    let valid = schema.map_or(Ok(()), |it| it.validate_text(Text::checked(arguments)));
    valid.map_err(|violations| invalid(tool, &violations))
}

fn invalid(tool: &str, violations: &dyn fmt::Display) -> ToolError {
    ToolError::new(format!(
        "The arguments of {tool} are not valid.\n{violations}"
    ))
}

fn read<T: DeserializeOwned>(
    tool: &str,
    schema: Option<&Schema>,
    arguments: &str,
) -> Result<T, ToolError> {
    // Mostly one walk validates and reads them.
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
        // They are valid: it is the type that takes less than its schema says.
        let place = refused_property::<T>(Text::checked(arguments));
        let place = place.map_or(String::new(), |place| format!("{place}: "));
        invalid(tool, &format_args!("{place}{text}"))
    })
}

/// The schemas that the arguments and results of a tool are validated against.
pub(super) struct ToolSchemas {
    pub(super) tool: String,
    /// `None` where the tool is [unvalidated](super::Tool::unvalidated).
    pub(super) input: Option<Schema>,
    pub(super) output: Option<Schema>,
}

impl ToolSchemas {
    /// The result of a call, in the form in which it is encoded.
    ///
    /// # Errors
    /// A protocol error of the handler, and a result that does not fit the output schema.
    pub(super) fn finish(&self, output: Result<ToolOutput, ToolError>) -> Result<Body> {
        let result = match output {
            Ok(ToolOutput::Text(text)) if self.output.is_none() => {
                return Ok(Body::Text(TextResult::new(text)));
            }
            Ok(output) => output.into_result(),
            Err(error) => error.into_result()?,
        };
        self.check_output(&result)?;
        Ok(Body::Tool(result))
    }

    /// A result that breaks its own schema is the server's fault: the client is told no more than that.
    fn check_output(&self, result: &CallToolResult) -> Result<()> {
        let (Some(output), false) = (&self.output, result.is_error) else {
            return Ok(());
        };
        let tool = &self.tool;
        let Some(structured) = &result.structured_content else {
            tracing::error!(tool = %Logged(tool), "the tool has an output schema but returned no structured content");
            return Err(Error::internal(format!(
                "tool {tool} returned no structured content"
            )));
        };
        output.validate(structured).map_err(|violations| {
            tracing::error!(tool = %Logged(tool), violations = %Logged(&violations), "the tool's result does not fit its output schema");
            Error::internal(format!("tool {tool} returned a result that does not fit its output schema"))
        })
    }
}

/// A call that has begun, or that could not.
pub(super) type Begun = Result<BoxFuture<Result<Body>>, ToolError>;

/// A handler without its type. The arguments are JSON.
pub(super) type ErasedHandler =
    Arc<dyn Fn(RequestContext, &str, Arc<ToolSchemas>) -> Begun + Send + Sync>;

/// Erases the type of a handler of typed arguments.
pub(super) fn erase<Arguments, H>(handler: H) -> ErasedHandler
where
    Arguments: ToolArguments,
    H: Handler<Arguments>,
    H::Returned: HandlerFuture<Output: IntoToolResult> + Send + 'static,
{
    Arc::new(move |context, arguments, schemas| {
        let input = schemas.input.as_ref();
        let arguments = Arguments::read(context, &schemas.tool, input, arguments)?;
        let running = handler.call(arguments).run();
        Ok(Box::pin(async move {
            schemas.finish(running.await.into_output())
        }))
    })
}

/// Erases the type of a handler that takes the arguments as they arrived.
pub(super) fn erase_dynamic<F, Fut, R>(handler: F) -> ErasedHandler
where
    F: Fn(RequestContext, Box<RawValue>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult,
{
    Arc::new(move |context, arguments, schemas| {
        check(&schemas.tool, schemas.input.as_ref(), arguments)?;
        let running = handler(context, Text::checked(arguments).to_raw());
        Ok(Box::pin(async move {
            schemas.finish(running.await.into_output())
        }))
    })
}
