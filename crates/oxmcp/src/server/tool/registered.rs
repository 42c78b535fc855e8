use std::{fmt, sync::Arc};

use super::{
    Tool, ToolError,
    definition::of_tool,
    handler::{ErasedHandler, Finish},
    output::ToolOutput,
};
use crate::{
    Error, Result,
    json::{Logged, Text},
    protocol::{CallToolResult, TextResult, Tool as Definition},
    schema::Schema,
    server::{ask::Asks, registry::Visibility},
    session::{Body, BoxFuture, Pace, RequestContext, Work},
};
#[cfg(feature = "http-server")]
use crate::{limits::Limits, protocol::http_headers::ParamHeaders};

/// A tool in a server's registry: its schemas are compiled, and nothing about it changes any more.
pub(crate) struct RegisteredTool {
    pub(crate) definition: Definition,
    input: Option<Schema>,
    output: Option<Schema>,
    handler: ErasedHandler,
    pub(super) visibility: Option<Visibility>,
    pub(super) asks: Asks,
    /// The arguments that headers repeat, over HTTP.
    #[cfg(feature = "http-server")]
    param_headers: ParamHeaders,
    pace: Arc<Pace>,
}

impl RegisteredTool {
    pub(crate) fn new(tool: Tool) -> Result<Arc<Self>> {
        let Tool {
            mut definition,
            input,
            output,
            handler,
            validated,
            spawned,
            visibility,
            asks,
            problem,
        } = tool;
        if let Some(problem) = problem {
            return Err(problem);
        }
        input
            .ensure_object()
            .map_err(|error| of_tool(&definition.name, &error.into()))?;
        // What clients with the usual limits would not keep in mind helps nobody.
        #[cfg(feature = "http-server")]
        let param_headers = ParamHeaders::of(
            Text::from(input.as_raw()),
            Limits::default().max_mirrored_bytes,
        )
        .map_err(|reason| of_tool(&definition.name, &Error::misuse(reason)))?;
        definition.input_schema = input.as_raw().into();
        definition.output_schema = output.as_ref().map(|output| output.as_raw().into());
        Ok(Arc::new(Self {
            definition,
            input: validated.then_some(input),
            output: output.filter(|_| validated),
            handler,
            visibility,
            asks,
            #[cfg(feature = "http-server")]
            param_headers,
            pace: Arc::new(if spawned { Pace::slow() } else { Pace::new() }),
        }))
    }

    /// Makes a call. What the model did wrong is a result, which it can learn from.
    pub(crate) fn call(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work {
        let now = |context| self.begin(context, arguments);
        let later = |context| -> BoxFuture<Result<Body>> {
            let tool = Arc::clone(self);
            let arguments: Box<str> = arguments.get().into();
            Box::pin(async move { tool.begin(context, Text::checked(&arguments)).await })
        };
        Work::paced(&self.pace, context.is_alone(), context, now, later)
    }

    fn begin(
        self: &Arc<Self>,
        context: RequestContext,
        arguments: Text<'_>,
    ) -> BoxFuture<Result<Body>> {
        let finish = Finish(Arc::clone(self));
        let begun = (self.handler)(context, arguments.get(), finish);
        begun.unwrap_or_else(|error| {
            let failed = self.finish(Err(error));
            Box::pin(async { failed })
        })
    }

    /// The arguments that headers repeat, where there are any.
    #[cfg(feature = "http-server")]
    pub(super) fn param_headers(&self) -> Option<&ParamHeaders> {
        Some(&self.param_headers).filter(|headers| !headers.is_empty())
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    /// What arguments are held against.
    pub(super) fn input(&self) -> Option<&Schema> {
        self.input.as_ref()
    }

    pub(super) fn finish(&self, output: Result<ToolOutput, ToolError>) -> Result<Body> {
        let result = match output {
            Ok(ToolOutput::Text(text)) if self.output.is_none() => {
                return Ok(Body::Text(TextResult::new(text)));
            }
            Ok(output) => output.into_whole(),
            Err(error) => error.into_result()?,
        };
        self.check_output(&result)?;
        Ok(Body::Tool(result))
    }

    /// A result that breaks its own schema is the server's fault: the client is told no more than that.
    fn check_output(&self, result: &CallToolResult) -> Result<()> {
        let Some(output) = &self.output else {
            return Ok(());
        };
        if result.is_error {
            return Ok(());
        }
        let name = &self.definition.name;
        let Some(structured) = &result.structured_content else {
            tracing::error!(tool = %Logged(name), "the tool has an output schema but returned no structured content");
            return Err(Error::internal(format!(
                "tool {name} returned no structured content"
            )));
        };
        output.validate(structured).map_err(|violations| {
            tracing::error!(tool = %Logged(name), violations = %Logged(&violations), "the tool's result does not fit its output schema");
            Error::internal(format!("tool {name} returned a result that does not fit its output schema"))
        })
    }
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredTool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}
