//! Registered tool: a tool in a server's registry, which requests can call.

use std::sync::Arc;

use oxmcp_json::Text;
#[cfg(feature = "http-server")]
use oxmcp_protocol::http_headers::ParamHeaders;
use oxmcp_protocol::{Method, TaskSupport, Tool as Definition, method};
use oxmcp_schema::Schema;

use super::{
    Tool,
    definition::of_tool,
    handler::{ErasedHandler, ToolSchemas},
    layer::wrap,
};
#[cfg(feature = "http-server")]
use crate::{error::Error, limits::Limits};
use crate::{
    error::Result,
    server::{
        definitions::options::{check_access, check_icons},
        registry::{Access, AskMode, Callable, impl_feature},
    },
    session::{
        connection::RequestContext,
        inbound::{body::Body, inline_execution::InlineExecution, run::Work},
    },
};

/// A tool in a server's registry. It is immutable.
pub(crate) struct RegisteredTool {
    definition: Definition,
    schemas: Arc<ToolSchemas>,
    handler: ErasedHandler,
    access: Access,
    ask_mode: AskMode,
    /// The extensions that the server must have, by their identifiers.
    requires: Vec<String>,
    /// The arguments that HTTP headers repeat.
    #[cfg(feature = "http-server")]
    param_headers: ParamHeaders,
    inline: Arc<InlineExecution>,
}

impl_feature! {
    RegisteredTool("tool"): Tool by name,
    ListTools -> ListToolsResult.tools, with_tools_list_changed
}

impl RegisteredTool {
    /// # Errors
    /// The first mistake in the definition.
    pub(crate) fn new(tool: Tool) -> Result<Arc<Self>> {
        let Tool {
            mut definition,
            input,
            is_inferred,
            output,
            handler,
            check,
            validated,
            spawned,
            is_live,
            is_strict,
            is_exact,
            transform,
            access,
            ask_mode,
            layers,
            requires,
            mistake,
        } = tool;
        let handler = wrap(handler, layers);
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        check_icons::<Self>(&definition.name, &definition.icons)?;
        check_access::<Self>(&definition.name, &access)?;
        input
            .ensure_object()
            .map_err(|error| of_tool(&definition.name, &error.into()))?;
        let listed = |schema: &Schema| match is_exact {
            true => schema.as_raw().to_owned(),
            false => schema.listed(),
        };
        let listed_input = listed(&input);
        // This is the default limit of clients, which would not mirror more.
        #[cfg(feature = "http-server")]
        let param_headers = ParamHeaders::of(
            Text::from(&*listed_input),
            Limits::default().client.max_mirrored_bytes,
        )
        .map_err(|reason| of_tool(&definition.name, &Error::misuse(reason)))?;
        definition.input_schema = (&*listed_input).into();
        definition.output_schema = output.as_ref().map(|output| (&*listed(output)).into());
        // A tool without input advertises that it takes no arguments, but accepts those that clients add: none can be a
        // misspelling.
        let takes_nothing = is_inferred && input == Schema::empty_object();
        let input = if takes_nothing {
            Schema::any_object()
        } else {
            input
        };
        let schemas = ToolSchemas {
            tool: definition.name.clone(),
            input: validated.then_some(input),
            is_inferred,
            output: output.filter(|_| validated),
            check_arguments: check,
            is_live,
            is_strict,
            transform,
        };
        Ok(Arc::new(Self {
            definition,
            schemas: Arc::new(schemas),
            handler,
            access,
            ask_mode,
            requires,
            #[cfg(feature = "http-server")]
            param_headers,
            inline: Arc::new(if spawned {
                InlineExecution::never()
            } else {
                InlineExecution::new()
            }),
        }))
    }
}

impl RegisteredTool {
    /// The same tool with another entry in the listing, for one whose entry depends on other tools.
    pub(crate) fn with_entry(&self, change: impl FnOnce(&mut Definition)) -> Arc<Self> {
        let mut definition = self.definition.clone();
        change(&mut definition);
        Arc::new(Self {
            definition,
            schemas: Arc::clone(&self.schemas),
            handler: Arc::clone(&self.handler),
            access: self.access.clone(),
            ask_mode: self.ask_mode,
            requires: self.requires.clone(),
            #[cfg(feature = "http-server")]
            param_headers: self.param_headers.clone(),
            inline: Arc::clone(&self.inline),
        })
    }

    /// The extensions that the server must have, by their identifiers.
    pub(crate) fn requires(&self) -> &[String] {
        &self.requires
    }
}

impl Callable for RegisteredTool {
    const METHOD: &'static str = method::CallTool::NAME;

    fn ask_mode(&self) -> AskMode {
        self.ask_mode
    }

    fn can_be_task(&self) -> bool {
        let execution = self.definition.execution.as_ref();
        let support = execution.and_then(|it| it.task_support.as_ref());
        support.is_some_and(|it| *it != TaskSupport::Forbidden)
    }

    /// The result is an error for the model, so that it can correct the call.
    fn refuse(&self, fault: &str) -> Result<Body> {
        self.schemas.finish(Err(self.schemas.invalid(&fault)))
    }

    fn call(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work {
        let is_alone = context.is_alone();
        let schemas = Arc::clone(&self.schemas);
        let future = (self.handler)(context, arguments.get().into(), schemas);
        Work::of(&self.inline, is_alone, future)
    }
}

/// The HTTP headers that repeat arguments of a tool's calls.
#[cfg(feature = "http-server")]
pub(crate) struct ExpectedHeaders<'a> {
    pub(crate) headers: &'a ParamHeaders,
    /// Whether every caller sees the tool.
    pub(crate) is_for_all: bool,
}

#[cfg(feature = "http-server")]
impl RegisteredTool {
    /// The headers that repeat arguments. `None` if there are none.
    pub(crate) fn expected_headers(&self) -> Option<ExpectedHeaders<'_>> {
        (!self.param_headers.is_empty()).then(|| ExpectedHeaders {
            headers: &self.param_headers,
            is_for_all: self.access.sees.is_none(),
        })
    }
}
