use std::{fmt, sync::Arc};

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{
    Tool, ToolError,
    definition::of_tool,
    handler::{Begun, ErasedHandler},
};
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
        input
            .ensure_object()
            .map_err(|error| of_tool(&definition.name, &error))?;
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

    /// Makes a call. What the model did wrong is a result, which it can learn from.
    ///
    /// A tool that has shown to be quick is begun here and now, with arguments that nobody copies. Any other waits for
    /// the task that it will get: reading its arguments, too, could hold up the connection.
    pub(crate) fn call(
        self: &Arc<Self>,
        context: RequestContext,
        arguments: Option<&RawValue>,
    ) -> Work {
        let arguments = params_or_empty(arguments);
        let tool = Arc::clone(self);
        let pace = Some(Arc::clone(&self.pace));
        if self.pace.is_quick() {
            let begun = Some(Instant::now());
            let running = self.begin(context, arguments);
            let future = Box::pin(async move { tool.finish(running).await });
            return Work {
                future,
                pace,
                begun,
            };
        }
        let arguments = arguments.to_owned();
        let future = Box::pin(async move {
            let running = tool.begin(context, &arguments);
            tool.finish(running).await
        });
        Work {
            future,
            pace,
            begun: None,
        }
    }

    fn begin(&self, context: RequestContext, arguments: &RawValue) -> Begun {
        self.check_input(arguments)?;
        (self.handler)(context, arguments)
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

    async fn finish(&self, running: Begun) -> Result<Body> {
        let result = match running {
            Ok(running) => running.await,
            Err(error) => Err(error),
        };
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
