//! Tool definition: name, schemas and annotations of a tool, and its handler.

use std::future::Future;

use oxmcp_protocol::{RawJson, Tool as Definition, ToolAnnotations};
use oxmcp_schema::{IntoSchema, Schema, SchemaError, SchemaOptions};
use serde_json::value::RawValue;

use super::{
    IntoToolResult, ToolArguments, ToolError,
    handler::{ErasedHandler, erase, erase_dynamic},
    layer::{ErasedLayer, ToolCall, ToolResponse, erase_layer},
};
use crate::{
    error::{Error, Result},
    server::{
        options::options,
        registry::{Access, AskMode},
    },
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture},
    },
};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// A tool: what the model is told of it, and the function that does the work.
///
/// [`new`](Self::new) infers the schemas from the types of the function; [`dynamic`](Self::dynamic) takes them as JSON. The attribute
/// [`#[oxmcp::tool]`](macro@crate::tool) writes `new`, and the struct of the arguments, from a function and its parameters.
/// A tool whose function takes no input says that it takes no arguments, and ignores what comes nevertheless, unless
/// [`deny_unknown`](Self::deny_unknown) says otherwise.
/// What is wrong with a tool (a name or a schema that the protocol does not allow) is reported when it is added to a
/// server with [`Server::add_tools`](crate::Server::add_tools), or when the server begins to serve.
///
/// This is what a server is given. What a client reads of it in a list is the type of the protocol,
/// [`protocol::Tool`](crate::protocol::Tool).
/// See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool).
///
/// ```
/// use oxmcp::{JsonSchema, Tool, ToolError};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Pair {
///     /// the dividend
///     a: f64,
///     /// the divisor
///     b: f64,
/// }
///
/// async fn divide(Pair { a, b }: Pair) -> Result<f64, ToolError> {
///     if b == 0.0 {
///         return Err(ToolError::new("b must not be 0"));
///     }
///     Ok(a / b)
/// }
///
/// let tool = Tool::new("divide", "Divide a by b", divide)
///     .read_only()
///     .input(|s| s.property("b", |p| p.description("the divisor, not 0")));
/// # let _ = tool;
/// ```
pub struct Tool {
    pub(super) definition: Definition,
    pub(super) input: Schema,
    /// Whether the schema of the input is that of the handler's type.
    pub(super) is_inferred: bool,
    pub(super) output: Option<Schema>,
    pub(super) handler: ErasedHandler,
    pub(super) validated: bool,
    /// Whether every call gets a task of its own from the start.
    pub(super) spawned: bool,
    pub(super) access: Access,
    pub(super) ask_mode: AskMode,
    /// Code around its calls, the outermost first.
    pub(super) layers: Vec<ErasedLayer>,
    /// The extensions that its server must have, by their identifiers.
    pub(super) requires: Vec<String>,
    /// Whether a call of it, once it was begun, must not be made again without its client.
    pub(super) is_live: bool,
    /// The first mistake.
    pub(super) mistake: Option<Error>,
}

impl Tool {
    /// A tool whose schemas are those of the handler's types. `description` is what the model decides by.
    ///
    /// [`#[oxmcp::tool]`](macro@crate::tool) on a free function is the shorter form. This one is for closures, for methods, and for
    /// arguments that are a type of their own:
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Tool};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Pair { a: f64, b: f64 }
    ///
    /// let by_hand = Tool::new("add", "Add two numbers.", |Pair { a, b }: Pair| async move { a + b });
    ///
    /// /// Add two numbers.
    /// #[oxmcp::tool]
    /// async fn add(a: f64, b: f64) -> f64 {
    ///     a + b
    /// }
    /// assert_eq!(add::tool().name(), by_hand.name());
    /// ```
    pub fn new<Arguments, H>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<Arguments>,
        Arguments: ToolArguments,
        H::Returned: HandlerFuture<Output: IntoToolResult> + Send + 'static,
    {
        let output = <H::Returned as HandlerFuture>::Output::output_schema();
        let is_reply = <H::Returned as HandlerFuture>::Output::IS_REPLY;
        Self::assemble(
            name.into(),
            description.into(),
            Ok((Arguments::input_schema(), output)),
            erase(handler),
            AskMode::of(Arguments::TAKES_CONTEXT, is_reply),
        )
    }

    /// A tool whose input schema is given as JSON, and whose handler takes the arguments as they arrived. For tools that
    /// are known only at run time: from a file, from another server.
    ///
    /// The arguments are validated against the schema before the handler sees them, unless
    /// [`unvalidated`](Self::unvalidated) says otherwise.
    ///
    /// ```
    /// use oxmcp::{Tool, ToolError, protocol::{CallToolResult, ContentBlock}};
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let tool = Tool::dynamic("weather", "Tell the weather", schema, |_cx, arguments| async move {
    ///     let arguments: serde_json::Value = serde_json::from_str(arguments.get())?;
    ///     Ok(CallToolResult::new([ContentBlock::text(format!("sunny in {}", arguments["city"]))]))
    /// });
    /// # let _ = tool;
    /// ```
    pub fn dynamic<F, Fut, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: impl IntoSchema,
        handler: F,
    ) -> Self
    where
        F: Fn(RequestContext, Box<RawValue>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoToolResult,
    {
        Self::assemble(
            name.into(),
            description.into(),
            input_schema
                .into_schema()
                .map(|input| (input, None))
                .map_err(Error::from),
            erase_dynamic(handler),
            AskMode::of(true, R::IS_REPLY),
        )
        .holding_as_written()
    }

    fn assemble(
        name: String,
        description: String,
        schemas: Result<(Schema, Option<Schema>)>,
        handler: ErasedHandler,
        ask_mode: AskMode,
    ) -> Self {
        let mut mistake = check_name(&name).err();
        let (input, output) = schemas.unwrap_or_else(|error| {
            mistake.get_or_insert_with(|| of_tool(&name, &error));
            (Schema::empty_object(), None)
        });
        let mut definition = Definition::new(name, RawJson::from(input.as_raw()));
        definition.description = Some(description);
        Self {
            definition,
            input,
            is_inferred: true,
            output,
            handler,
            validated: true,
            spawned: false,
            is_live: false,
            access: Access::default(),
            ask_mode,
            layers: Vec::new(),
            requires: Vec::new(),
            mistake,
        }
    }

    /// All annotations at once. They are hints: clients must not trust them.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Hints that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate(|annotations| annotations.read_only_hint = Some(true))
    }

    /// Hints whether the tool may destroy something, where it changes anything at all.
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate(|annotations| annotations.destructive_hint = Some(destructive))
    }

    /// Hints that calling the tool again with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate(|annotations| annotations.idempotent_hint = Some(true))
    }

    /// Hints whether the tool deals with a world outside, as a web search does and a memory does not.
    #[must_use]
    pub fn open_world(self, open_world: bool) -> Self {
        self.annotate(|annotations| annotations.open_world_hint = Some(open_world))
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition.annotations.get_or_insert_default());
        self
    }

    /// Adds to the schema of the input.
    ///
    /// ```
    /// # use oxmcp::{JsonSchema, Tool};
    /// # #[derive(serde::Deserialize, JsonSchema)] struct Order { count: u32 }
    /// # let tool = Tool::new("order", "Order something", |Order { count }: Order| async move { count });
    /// let tool = tool.input(|s| s.property("count", |p| p.description("how many").minimum(1).maximum(100)));
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn input(self, options: impl FnOnce(SchemaOptions) -> SchemaOptions) -> Self {
        let schema = self.input.with(options);
        self.set_input(schema)
    }

    /// Replaces the schema of the input, by one that holds as it is written.
    ///
    /// ```
    /// # use oxmcp::{JsonSchema, Schema, Tool};
    /// # #[derive(serde::Deserialize, JsonSchema)] struct Order { count: u32 }
    /// # let tool = Tool::new("order", "Order something", |Order { count }: Order| async move { count });
    /// // As JSON text, whose members stay in this order; or as a `Value`, or as a `Schema`.
    /// let tool = tool.input_schema(r#"{"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}"#);
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn input_schema(self, schema: impl IntoSchema) -> Self {
        self.set_input(schema.into_schema()).holding_as_written()
    }

    /// Refuses arguments that are no properties of the input, and says so in its schema.
    ///
    /// Without it a tool takes them, since clients add some of their own, and ignores them; only what is surely misspelt is
    /// refused: `txt` where there is a `text` that is not given. A schema that was [written by hand](Self::input_schema)
    /// holds as it is written.
    #[must_use]
    pub fn deny_unknown(self) -> Self {
        self.input(SchemaOptions::deny_unknown).holding_as_written()
    }

    fn holding_as_written(mut self) -> Self {
        self.is_inferred = false;
        self
    }

    /// Adds to the schema of the output.
    #[must_use]
    pub fn output(mut self, options: impl FnOnce(SchemaOptions) -> SchemaOptions) -> Self {
        let base = self.output.take().unwrap_or_else(Schema::empty_object);
        self.set_output(base.with(options))
    }

    /// Replaces the schema of the output. Structured content is validated against it before it leaves.
    ///
    /// ```
    /// # use oxmcp::{JsonSchema, Schema, Tool, protocol::CallToolResult};
    /// # #[derive(serde::Serialize, JsonSchema)] struct Weather { celsius: f64 }
    /// let tool = Tool::new("weather", "Tell the weather", || async { CallToolResult::text("fine") })
    ///     .output_schema(Schema::of_output::<Weather>());
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn output_schema(self, schema: impl IntoSchema) -> Self {
        self.set_output(schema.into_schema())
    }

    /// Leaves out the validation of arguments and results: for proxies, whose peer validates.
    #[must_use]
    pub fn unvalidated(mut self) -> Self {
        self.validated = false;
        self
    }

    /// Runs every call on a task of its own from the start, for a handler that computes or blocks for long now and then.
    ///
    /// A handler that has always been ready within half a millisecond is begun on the connection's own task, which saves
    /// most of the cost of a call; meanwhile nothing else of the connection is taken. The first call that takes long is
    /// noticed, and the tool is begun elsewhere from then on. This is for servers that cannot afford that first time.
    /// Handlers that wait with `.await` do not need it, and code that blocks belongs into
    /// [`spawn_blocking`](tokio::task::spawn_blocking) all the same.
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.spawned = true;
        self
    }

    /// A call of it must not be made again without its client.
    pub(crate) fn live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// Adds code around the calls of this tool: for extensions, which can answer otherwise than the tool does, or go on with a
    /// call that was answered. What was added first is outermost. A layer of all requests is
    /// [`Server::layer`](crate::Server::layer).
    ///
    /// ```
    /// use oxmcp::Tool;
    ///
    /// let tool = Tool::new("now", "Tell the time", || async { "ten past two" }).layer(|call| async move {
    ///     let tool = call.tool().to_owned();
    ///     let response = call.run().await;
    ///     eprintln!("{tool}: {}", if response.is_ok() { "answered" } else { "failed" });
    ///     response
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn layer<F, Fut>(mut self, layer: F) -> Self
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolResponse>> + Send + 'static,
    {
        self.layers.push(erase_layer(layer));
        self
    }

    /// Changes its entry in the list: for the members that an extension sets. The schemas are those of
    /// [`input`](Self::input) and [`output`](Self::output), whatever is set here.
    ///
    /// ```
    /// use oxmcp::{Tool, protocol::{TaskSupport, ToolExecution}};
    ///
    /// let tool = Tool::new("report", "Write a report", || async { "written" }).entry(|entry| {
    ///     let mut execution = ToolExecution::default();
    ///     execution.task_support = Some(TaskSupport::Optional);
    ///     entry.execution = Some(execution);
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn entry(mut self, change: impl FnOnce(&mut Definition)) -> Self {
        change(&mut self.definition);
        if let Err(error) = check_name(&self.definition.name) {
            self.mistake.get_or_insert(error);
        }
        self
    }

    /// Decides whose list shows the tool. Unlike one that is not [visible](Self::visible_to), it can be called by the others too,
    /// so that a [layer](Self::layer) can tell them what they lack. Where several are given, all must agree. The function is
    /// called for each list, and must be quick.
    ///
    /// ```
    /// use oxmcp::{Error, Tool};
    ///
    /// let tool = Tool::new("draw", "Draw a chart", || async { "drawn" })
    ///     .listed_to(|cx| cx.revision().is_modern())
    ///     .layer(|call| async move {
    ///         if call.context().revision().is_modern() {
    ///             return call.run().await;
    ///         }
    ///         Err(Error::invalid_params("\"draw\" is for clients of 2026-07-28: call it with that revision"))
    ///     });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn listed_to(
        mut self,
        lists: impl Fn(&RequestContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.access.list(lists);
        self
    }

    /// Says that a server of this tool must have an extension, as [`Extension::requires`](crate::Extension::requires) does of
    /// another.
    #[must_use]
    pub fn requires(mut self, extension: impl Into<String>) -> Self {
        self.requires.push(extension.into());
        self
    }

    /// The name that the tool is called by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    fn set_input(mut self, schema: Result<Schema, SchemaError>) -> Self {
        match schema {
            Ok(schema) => self.input = schema,
            Err(error) => self.note(&error.into()),
        }
        self
    }

    fn set_output(mut self, schema: Result<Schema, SchemaError>) -> Self {
        match schema {
            Ok(schema) => self.output = Some(schema),
            Err(error) => self.note(&error.into()),
        }
        self
    }

    fn note(&mut self, error: &Error) {
        let name = &self.definition.name;
        self.mistake.get_or_insert_with(|| of_tool(name, error));
    }
}

options! {
    Tool by name: "tool",
    /// Decides which callers the tool is for. To the others it does not exist: it is not in their list, and they cannot call
    /// it. The function is called for each request, and must be quick.
    ///
    /// ```
    /// use oxmcp::Tool;
    ///
    /// let tool = Tool::new("reset", "Reset everything", || async { "done" })
    ///     .visible_to(|cx| cx.peer_info().is_some_and(|client| client.name == "admin-console"));
    /// # let _ = tool;
    /// ```
    visible_to
}

/// The error, with the name of the tool.
pub(super) fn of_tool(name: &str, error: &Error) -> Error {
    Error::misuse(format!("tool {name:?}: {}", error.message()))
}

/// Checks a tool's name against the
/// [rules](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-names), which clients rely on.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(Error::misuse(format!(
            "tool name {name:?}: a name has 1 to {MAX_NAME} characters, this one has {}",
            name.chars().count()
        )));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.chars().find(|c| !allowed(*c)) {
        Some(wrong) => Err(Error::misuse(format!(
            "tool name {name:?}: {wrong:?} is not allowed; a name is made of A-Z, a-z, 0-9, '_', '-' and '.'"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules() {
        for name in [
            "a",
            "getUser",
            "DATA_EXPORT_v2",
            "admin.tools.list",
            &"x".repeat(128),
        ] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "two words",
            "a,b",
            "naïve",
            "a/b",
            "a\n",
            &"x".repeat(129),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_error_says_what_is_allowed() {
        insta::assert_snapshot!(
            check_name("two words").unwrap_err(),
            @r#"tool name "two words": ' ' is not allowed; a name is made of A-Z, a-z, 0-9, '_', '-' and '.'"#
        );
    }
}
