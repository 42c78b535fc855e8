//! Tool handlers: the types of functions that can be handlers, the reading of arguments, and the finishing of results.

use std::{borrow::Cow, fmt, future::Future, pin::pin, sync::Arc};

use oxmcp_json::Text;
use oxmcp_protocol::{
    CallToolResult,
    lenient::{Leniency, Tolerated, without_lone_surrogates},
};
use oxmcp_schema::{
    JsonSchema, Schema,
    internal::{
        Change, Mended, Read, misspelt_property, read_whole_numbers, refusal, without_fractions,
    },
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{IntoToolResult, ToolError, output::CheckedResult};
use crate::{
    error::{Error, Result},
    logged::Logged,
    server::registry::{duplicate_key, replace_lone_surrogates},
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerContext, HandlerFuture},
        inbound::{
            body::Body,
            watchdog::{Watched, watched},
        },
        task::BoxFuture,
    },
};

/// The input of a tool: a deserializable type with a JSON schema.
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
    note = "shared state comes first: pass it with `s.with_state(handler)` in `Server::state(shared, |s| …)`, or with `oxmcp::with_state(shared, handler)`"
)]
pub trait ToolArguments: Sized + 'static {
    /// Whether the handler takes the context of the request.
    #[doc(hidden)]
    const TAKES_CONTEXT: bool;

    /// The schema of the input.
    #[doc(hidden)]
    fn input_schema() -> Schema;

    /// Reads and validates the arguments of a call.
    #[doc(hidden)]
    fn read(context: RequestContext, schemas: &ToolSchemas, json: &str) -> Result<Self, ToolError>;
}

impl ToolArguments for () {
    const TAKES_CONTEXT: bool = false;

    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn read(cx: RequestContext, schemas: &ToolSchemas, json: &str) -> Result<Self, ToolError> {
        schemas.check_or_mend(&cx, Text::checked(json)).map(drop)
    }
}

impl ToolArguments for (RequestContext,) {
    const TAKES_CONTEXT: bool = true;

    fn input_schema() -> Schema {
        Schema::empty_object()
    }

    fn read(context: RequestContext, schemas: &ToolSchemas, json: &str) -> Result<Self, ToolError> {
        schemas.check_or_mend(&context, Text::checked(json))?;
        Ok((context,))
    }
}

impl<Input: ToolInput> ToolArguments for (Input,) {
    const TAKES_CONTEXT: bool = false;

    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn read(cx: RequestContext, schemas: &ToolSchemas, json: &str) -> Result<Self, ToolError> {
        Ok((schemas.read(&cx, json)?,))
    }
}

impl<Context: HandlerContext, Input: ToolInput> ToolArguments for (Context, Input) {
    const TAKES_CONTEXT: bool = true;

    fn input_schema() -> Schema {
        Schema::of::<Input>()
    }

    fn read(context: RequestContext, schemas: &ToolSchemas, json: &str) -> Result<Self, ToolError> {
        let input = schemas.read(&context, json)?;
        Ok((Context::of(context), input))
    }
}

/// The schemas that the arguments and results of a tool are validated against.
#[doc(hidden)]
#[expect(unnameable_types, reason = "only a hidden method mentions it")]
#[derive(Debug)]
pub struct ToolSchemas {
    pub(crate) tool: String,
    /// `None` if the tool is [unvalidated](super::Tool::without_validation).
    pub(crate) input: Option<Schema>,
    /// Whether the input schema was inferred. Then an unknown member may be a misspelled property. A hand-written schema is
    /// applied as it is.
    pub(crate) is_inferred: bool,
    pub(crate) output: Option<Schema>,
    pub(crate) check_arguments: ArgumentsCheck,
    /// Whether a call that has begun must not be repeated without its client.
    pub(crate) is_live: bool,
    /// Whether invalid arguments are refused, even if they could be repaired.
    pub(crate) is_strict: bool,
    /// The transformation of the arguments. `None` if the handler takes them as they are sent.
    pub(crate) transform: Option<Arc<dyn ConvertsArguments>>,
}

impl Watched for ToolSchemas {
    fn label(&self) -> String {
        format!("tool {}", self.tool)
    }
}

impl ToolSchemas {
    /// Validates the arguments of a call.
    fn check(&self, arguments: Text<'_>) -> Result<(), ToolError> {
        self.check_names(arguments)?;
        let input = self.input.as_ref();
        let valid = input.map_or(Ok(()), |it| it.validate_text(arguments));
        valid.map_err(|violations| self.invalid(&violations))
    }

    fn check_names(&self, arguments: Text<'_>) -> Result<(), ToolError> {
        let fault = duplicate_key(arguments);
        fault.map_or(Ok(()), |fault| Err(self.invalid(&fault)))
    }

    /// Validates the arguments of a call, and repairs invalid ones. Returns the repaired arguments, if there are any.
    pub(super) fn check_or_mend(
        &self,
        cx: &RequestContext,
        arguments: Text<'_>,
    ) -> Result<Option<String>, ToolError> {
        let checked = self.check(arguments);
        // A schema may accept members without reading them.
        let is_text = matches!(without_lone_surrogates(arguments.get()), Cow::Borrowed(_));
        if checked.is_ok() && is_text {
            return Ok(None);
        }
        match self.mend(cx, arguments) {
            Some(mended) => {
                self.log_mended(&mended);
                Ok(Some(mended.text))
            }
            None => checked.map(|()| None),
        }
    }

    /// Repairs invalid arguments. `None` if they cannot be repaired, or must not be.
    #[cold]
    fn mend(&self, cx: &RequestContext, arguments: Text<'_>) -> Option<Mended> {
        if self.is_strict || cx.has_strict_arguments() {
            return None;
        }
        let text = replace_lone_surrogates(arguments)?;
        let arguments = Text::checked(&text);
        let replaced = (String::new(), Change::SurrogatesReplaced);
        match text {
            Cow::Borrowed(_) => self.input.as_ref()?.mend(arguments),
            Cow::Owned(_) if self.check(arguments).is_ok() => Some(Mended {
                text: text.into_owned(),
                changes: vec![replaced],
            }),
            Cow::Owned(_) => {
                let mut mended = self.input.as_ref()?.mend(arguments)?;
                mended.changes.push(replaced);
                Some(mended)
            }
        }
    }

    fn log_mended(&self, mended: &Mended) {
        let changes = mended.changes.iter().map(|(place, change)| {
            let leniency = match change {
                Change::NullLeftOut => Leniency::NullArgument,
                Change::StringRead => Leniency::TextArgument,
                Change::EmptyObject => Leniency::NoArguments,
                Change::SurrogatesReplaced => Leniency::LoneSurrogate,
            };
            Tolerated::new(leniency, place).to_string()
        });
        let changes = changes.collect::<Vec<_>>().join(", ");
        tracing::debug!(tool = %Logged(&self.tool), changes = %Logged(&changes), "repaired the arguments of a call");
    }

    /// Validates the arguments of a call, and reads them.
    fn read<T: DeserializeOwned>(
        &self,
        cx: &RequestContext,
        arguments: &str,
    ) -> Result<T, ToolError> {
        let arguments = Text::checked(arguments);
        // Usually, one pass over the JSON validates and reads the arguments.
        let read = self.input.as_ref().and_then(|it| it.read(arguments));
        let Some(Read {
            value,
            has_unlisted_names,
        }) = read
        else {
            return self.read_slowly(cx, arguments);
        };
        if has_unlisted_names {
            self.check_names(arguments)?;
            self.check_spelling::<T>(arguments)?;
        }
        Ok(value)
    }

    /// Validates the arguments of a call, and deserializes them with serde_json: as they are, or repaired.
    #[cold]
    fn read_slowly<T: DeserializeOwned>(
        &self,
        cx: &RequestContext,
        arguments: Text<'_>,
    ) -> Result<T, ToolError> {
        let read = self
            .check(arguments)
            .and_then(|()| self.read_valid(arguments));
        let refusal = match read {
            Ok(value) => return Ok(value),
            Err(refusal) => refusal,
        };
        let Some(mended) = self.mend(cx, arguments) else {
            return Err(refusal);
        };
        // If the type refuses the repaired arguments, report the faults of the received ones.
        let read = self.read_valid(Text::checked(&mended.text));
        read.map_err(|_| refusal)
            .inspect(|_| self.log_mended(&mended))
    }

    /// Deserializes valid arguments with serde_json: as they are, or with integers in place of whole numbers.
    fn read_valid<T: DeserializeOwned>(&self, arguments: Text<'_>) -> Result<T, ToolError> {
        let error = match arguments.parse() {
            Ok(value) => return self.check_spelling::<T>(arguments).map(|()| value),
            Err(error) => error,
        };
        // `3.0` is an integer in JSON Schema.
        let Some(rewritten) = without_fractions(arguments) else {
            return Err(self.refused::<T>(arguments, &error));
        };
        let rewritten = Text::checked(&rewritten);
        // Rewrite all numbers only if the type does not tell which of them are integers.
        let value = match read_whole_numbers(arguments) {
            Some(value) => value,
            None => rewritten
                .parse()
                .map_err(|error| self.refused::<T>(rewritten, &error))?,
        };
        self.check_spelling::<T>(rewritten).map(|()| value)
    }

    /// The error for arguments that the schema accepts, but the type does not.
    fn refused<T: DeserializeOwned>(
        &self,
        arguments: Text<'_>,
        error: &serde_json::Error,
    ) -> ToolError {
        self.invalid(&refusal::<T>(self.input.as_ref(), arguments, error))
    }

    /// Refuses a property with a misspelled name. Other unknown properties are accepted, since clients add some.
    fn check_spelling<T: DeserializeOwned>(&self, arguments: Text<'_>) -> Result<(), ToolError> {
        let input = self.input.as_ref().filter(|_| self.is_inferred);
        let Some(input) = input.filter(|it| it.has_others(arguments)) else {
            return Ok(());
        };
        if let Some(misspelt) = misspelt_property::<T>(input, arguments) {
            return Err(self.invalid(&misspelt));
        }
        tracing::debug!(tool = %Logged(&self.tool), "ignoring unknown arguments of a tool call");
        Ok(())
    }

    pub(crate) fn invalid(&self, violations: &dyn fmt::Display) -> ToolError {
        let tool = &self.tool;
        ToolError::new(format!(
            "The arguments of {tool} are not valid.\n{violations}"
        ))
    }

    /// Finishes the result of a call, in the form in which it is encoded.
    ///
    /// # Errors
    /// If the handler failed with a protocol error, or the result does not match the output schema.
    pub(crate) fn finish(&self, output: Result<CheckedResult, ToolError>) -> Result<Body> {
        let CheckedResult { result, is_valid } = match output {
            Ok(checked) => checked,
            Err(error) => error.into_result()?.into(),
        };
        if !is_valid {
            self.check_output(&result)?;
        }
        Ok(Body::Tool(result))
    }

    /// Checks the result against the output schema. A mismatch is the server's fault, so the client gets no details.
    fn check_output(&self, result: &CallToolResult) -> Result<()> {
        let (Some(output), false) = (&self.output, result.is_error) else {
            return Ok(());
        };
        let tool = &self.tool;
        let Some(structured) = &result.structured_content else {
            tracing::error!(tool = %Logged(tool), "tool with an output schema returned no structured content");
            return Err(Error::internal(format!(
                "tool {tool} returned no structured content"
            )));
        };
        output.validate(structured).map_err(|violations| {
            tracing::error!(tool = %Logged(tool), violations = %Logged(&violations), "tool result does not match its output schema");
            Error::internal(format!("the result of tool {tool} does not match its output schema"))
        })
    }
}

/// A type-erased handler. It takes the arguments as JSON. Invalid arguments give a result with an error for the model.
pub(crate) type ErasedHandler = Arc<
    dyn Fn(RequestContext, Box<str>, Arc<ToolSchemas>) -> BoxFuture<Result<Body>> + Send + Sync,
>;

/// A transformation of a tool, between the arguments of callers and those of the handler.
pub(crate) trait ConvertsArguments: fmt::Debug + Send + Sync {
    /// Validates the arguments of a caller, also as the handler would.
    fn check(
        &self,
        context: RequestContext,
        schemas: &ToolSchemas,
        arguments: &str,
    ) -> Result<(), ToolError>;
}

/// The check for a tool whose arguments are converted.
pub(crate) fn check_converted(
    context: RequestContext,
    schemas: &ToolSchemas,
    arguments: &str,
) -> Result<(), ToolError> {
    let transform = schemas.transform.as_ref();
    transform.map_or(Ok(()), |it| it.check(context, schemas, arguments))
}

/// Validates the arguments of a call exactly as its handler would, without running it.
pub(crate) type ArgumentsCheck = fn(RequestContext, &ToolSchemas, &str) -> Result<(), ToolError>;

/// The check for a handler of typed arguments.
pub(crate) fn check_arguments<Arguments: ToolArguments>(
    context: RequestContext,
    schemas: &ToolSchemas,
    arguments: &str,
) -> Result<(), ToolError> {
    Arguments::read(context, schemas, arguments).map(drop)
}

/// The check for a handler that takes the arguments as JSON.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it has the signature of all checks"
)]
pub(crate) fn check_dynamic(
    context: RequestContext,
    schemas: &ToolSchemas,
    arguments: &str,
) -> Result<(), ToolError> {
    let mended = schemas.check_or_mend(&context, Text::checked(arguments));
    mended.map(drop)
}

/// Erases the type of a handler of typed arguments.
pub(crate) fn erase<Arguments, H>(handler: H) -> ErasedHandler
where
    Arguments: ToolArguments,
    H: Handler<Arguments>,
    H::Returned: HandlerFuture<Output: IntoToolResult> + Send + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |context, arguments, schemas| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let read = Arguments::read(context, &schemas, &arguments);
            match read.map(|arguments| handler.call(arguments).run()) {
                Ok(running) => {
                    let output = watched(&schemas, pin!(running)).await;
                    schemas.finish(output.into_checked_result(schemas.output.as_ref()))
                }
                Err(error) => schemas.finish(Err(error)),
            }
        })
    })
}

/// Erases the type of a handler that takes the arguments as JSON.
pub(crate) fn erase_dynamic<F, Fut, R>(handler: F) -> ErasedHandler
where
    F: Fn(RequestContext, Box<RawValue>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult,
{
    let handler = Arc::new(handler);
    Arc::new(move |context, arguments, schemas| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let text = Text::checked(&arguments);
            let output = match schemas.check_or_mend(&context, text) {
                Ok(mended) => {
                    let text = mended.as_deref().map_or(text, Text::checked);
                    let running = pin!(handler(context, text.to_raw()));
                    let output = watched(&schemas, running).await;
                    output.into_checked_result(schemas.output.as_ref())
                }
                Err(error) => Err(error),
            };
            schemas.finish(output)
        })
    })
}
