use std::{fmt, sync::Arc};

use serde_json::value::RawValue;

use super::{Tool, ToolError, handler::ErasedHandler};
use crate::{
    Error, Result,
    protocol::{CallToolResult, Tool as Definition},
    schema::Schema,
    session::{Body, Pace, RequestContext, Work, params_or_empty},
};

/// A tool in a server's registry: its schemas are compiled, and nothing about it changes any more.
pub(crate) struct RegisteredTool {
    pub(crate) definition: Definition,
    input: Option<Schema>,
    output: Option<Schema>,
    handler: ErasedHandler,
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
            problem,
        } = tool;
        if let Some(problem) = problem {
            return Err(problem);
        }
        input.ensure_object().map_err(|error| {
            Error::misuse(format!("tool {:?}: {}", definition.name, error.message()))
        })?;
        definition.input_schema = input.as_raw().into();
        definition.output_schema = output.as_ref().map(|output| output.as_raw().into());
        Ok(Arc::new(Self {
            definition,
            input: validated.then_some(input),
            output: output.filter(|_| validated),
            handler,
            pace: Arc::new(Pace::new()),
        }))
    }

    /// Begins a call. What the model did wrong is a result, which it can learn from.
    pub(crate) fn call(
        self: &Arc<Self>,
        context: RequestContext,
        arguments: Option<&RawValue>,
    ) -> Result<Work> {
        let arguments = params_or_empty(arguments);
        let begun = match self.check_input(arguments) {
            Ok(()) => (self.handler)(context, arguments),
            Err(error) => Err(error),
        };
        let tool = Arc::clone(self);
        let future = match begun {
            Ok(running) => running,
            Err(error) => Box::pin(async { Err(error) }),
        };
        Ok(Work {
            future: Box::pin(async move { tool.finish(future.await) }),
            pace: Some(Arc::clone(&self.pace)),
        })
    }

    fn check_input(&self, arguments: &RawValue) -> Result<(), ToolError> {
        let Some(input) = &self.input else {
            return Ok(());
        };
        input.validate(arguments).map_err(|violations| {
            let name = &self.definition.name;
            ToolError::new(format!(
                "The arguments of {name} are not valid.\n{violations}"
            ))
        })
    }

    fn finish(&self, result: Result<CallToolResult, ToolError>) -> Result<Body> {
        let result = match result {
            Ok(result) => result,
            Err(error) => error.into_result()?,
        };
        self.check_output(&result)?;
        Ok(Body::Tool(Box::new(result)))
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
            tracing::error!(tool = %name, "the tool has an output schema but returned no structured content");
            return Err(Error::internal(format!(
                "tool {name} returned no structured content"
            )));
        };
        output.validate(structured).map_err(|violations| {
            tracing::error!(tool = %name, %violations, "the tool's result does not fit its output schema");
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
