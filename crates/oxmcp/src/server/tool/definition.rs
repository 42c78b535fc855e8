//! Tool definition: the name, schemas, annotations and handler of a tool.

use std::{future::Future, sync::Arc};

use oxmcp_protocol::{RawJson, Tool as Definition, ToolAnnotations};
use oxmcp_schema::{IntoSchema, Schema, SchemaError, SchemaOptions};
use serde_json::value::RawValue;

use super::{
    IntoToolResult, ToolArguments, ToolError,
    handler::{
        ArgumentsCheck, ConvertsArguments, ErasedHandler, check_arguments, check_dynamic, erase,
        erase_dynamic,
    },
    layer::{ErasedLayer, ToolCall, ToolResponse, erase_layer},
};
use crate::{
    error::{Error, Result},
    server::{
        definitions::options::options,
        registry::{Access, AskMode},
    },
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture},
    },
};

/// The maximum length of a tool's name, in bytes.
const MAX_NAME: usize = 128;

/// A tool: its description for the model, and the function that does the work.
///
/// [`new`](Self::new) infers the schemas from the types of the function; [`dynamic`](Self::dynamic) takes them as JSON. The
/// attribute [`#[oxmcp::tool]`](macro@crate::tool) generates the call of `new`, and the struct of the arguments, from a
/// function and its parameters. A tool whose function takes no input advertises that it takes no arguments, and ignores any
/// that it receives, unless [`deny_unknown_arguments`](Self::deny_unknown_arguments) is set. Mistakes, such as a name or a schema that the protocol
/// forbids, are reported by [`Server::add_tools`](crate::Server::add_tools), or when the server begins to serve.
///
/// This is the type for servers. Clients read the entries of a listing as [`protocol::Tool`](crate::protocol::Tool).
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
    pub(crate) definition: Definition,
    pub(crate) input: Schema,
    /// Whether the input schema was inferred from the handler's type.
    pub(crate) is_inferred: bool,
    pub(crate) output: Option<Schema>,
    pub(crate) handler: ErasedHandler,
    pub(crate) check: ArgumentsCheck,
    pub(crate) validated: bool,
    /// Whether every call runs on a separate task from the start.
    pub(crate) spawned: bool,
    pub(crate) access: Access,
    pub(crate) ask_mode: AskMode,
    /// The layers around the calls, the outermost first.
    pub(crate) layers: Vec<ErasedLayer>,
    /// The extensions that the server must have, by their identifiers.
    pub(crate) requires: Vec<String>,
    /// Whether a started call must not be repeated without its client.
    pub(crate) is_live: bool,
    /// Whether invalid arguments are refused, even if they could be repaired.
    pub(crate) is_strict: bool,
    /// Whether the schemas are listed exactly as they validate.
    pub(crate) is_exact: bool,
    /// The outermost transformation of the arguments.
    pub(crate) transform: Option<Arc<dyn ConvertsArguments>>,
    /// The first mistake in the definition.
    pub(crate) mistake: Option<Error>,
}

impl Tool {
    /// Creates a tool with the schemas of the handler's types. The model decides by `description` whether to call it.
    ///
    /// [`#[oxmcp::tool]`](macro@crate::tool) on a free function is shorter. This constructor is for closures, for methods, and
    /// for arguments with a separate type:
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
            (erase(handler), check_arguments::<Arguments>),
            AskMode::of(Arguments::TAKES_CONTEXT, is_reply),
        )
    }

    /// Creates a tool from an input schema as JSON, and a handler that takes the arguments as JSON.
    ///
    /// It is for tools that are known only at run time, from a file or from another server. The arguments are validated against
    /// the schema before the handler is called, unless the tool is [not validated](Self::without_validation).
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
            (erase_dynamic(handler), check_dynamic),
            AskMode::of(true, R::IS_REPLY),
        )
        .holding_as_written()
    }

    fn assemble(
        name: String,
        description: String,
        schemas: Result<(Schema, Option<Schema>)>,
        (handler, check): (ErasedHandler, ArgumentsCheck),
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
            check,
            validated: true,
            spawned: false,
            is_live: false,
            is_strict: false,
            is_exact: false,
            transform: None,
            access: Access::default(),
            ask_mode,
            layers: Vec::new(),
            requires: Vec::new(),
            mistake,
        }
    }

    /// Sets all annotations at once. They are hints: clients must not trust them.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Sets the hint that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate(|annotations| annotations.read_only_hint = Some(true))
    }

    /// Sets the hint whether the tool may destroy something, if it changes anything.
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate(|annotations| annotations.destructive_hint = Some(destructive))
    }

    /// Sets the hint that repeated calls with the same arguments have no additional effect.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate(|annotations| annotations.idempotent_hint = Some(true))
    }

    /// Sets the hint whether the tool interacts with the outside world: a web search does, a memory does not.
    #[must_use]
    pub fn open_world(self, open_world: bool) -> Self {
        self.annotate(|annotations| annotations.open_world_hint = Some(open_world))
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition.annotations.get_or_insert_default());
        self
    }

    /// Adds to the input schema.
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

    /// Replaces the input schema. The new schema is applied exactly as it is written.
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

    /// Refuses unknown arguments, and says so in the input schema.
    ///
    /// By default, a tool ignores unknown arguments, since some clients add their own. It refuses only an obvious misspelling,
    /// such as `txt` if the property `text` is missing. A [hand-written schema](Self::input_schema) is applied exactly as it is
    /// written.
    #[must_use]
    pub fn deny_unknown_arguments(self) -> Self {
        self.input(SchemaOptions::deny_unknown_arguments)
            .holding_as_written()
    }

    fn holding_as_written(mut self) -> Self {
        self.is_inferred = false;
        self
    }

    /// Adds to the output schema.
    #[must_use]
    pub fn output(mut self, options: impl FnOnce(SchemaOptions) -> SchemaOptions) -> Self {
        let base = self.output.take().unwrap_or_else(Schema::empty_object);
        self.set_output(base.with(options))
    }

    /// Replaces the output schema. Structured content is validated against it before it is sent.
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

    /// Lists the exact schemas, for clients that support all of JSON Schema.
    ///
    /// By default, schemas are listed in the form that hosts and model APIs accept (see [`Schema::listed`]): an enum, for
    /// example, becomes one object with the properties of all its variants. Arguments and results are always validated against
    /// the exact schemas. [`Server::check`](crate::Server::check) reports the parts of a listed schema that hosts are known to
    /// reject.
    ///
    /// ```
    /// # use oxmcp::Tool;
    /// let schema = r#"{"type": "object", "anyOf": [{"required": ["id"]}, {"required": ["name"]}]}"#;
    /// let tool = Tool::dynamic("find", "Find a user", schema, |_cx, _arguments| async { Ok("Ann") }).exact_schema();
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn exact_schema(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// Refuses invalid arguments, even if their meaning is clear.
    ///
    /// Models often get arguments slightly wrong, and weak models never get them right. So by default, the server tries to repair
    /// invalid arguments. It changes only the values that validation has refused, and uses the changes only if all arguments
    /// are valid afterwards:
    /// - A null for an optional property is dropped.
    /// - A string is parsed as JSON where the schema accepts no string: `"5"` for a number, or an object in quotes.
    /// - `[]` or `""` in place of all arguments becomes `{}`.
    /// - Half of a surrogate pair in a string, such as `\ud83d`, becomes U+FFFD.
    ///
    /// The handler gets the repaired arguments, and a debug log lists the changes. To refuse invalid arguments for all tools of a
    /// server, use [`Server::strict_arguments`](crate::Server::strict_arguments).
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Server, Tool, testing};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Page { #[serde(default)] number: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> oxmcp::Result<()> {
    /// let page = |name| Tool::new(name, "Show a page", |Page { number }: Page| async move { number });
    /// let server = Server::new("book", "1.0.0").tools([page("lenient"), page("strict").strict_arguments()]);
    /// let t = testing::connect(&server).await?;
    /// assert!(!t.call_tool("lenient", json!({"number": "5"})).await?.is_error);
    /// assert!(t.call_tool("strict", json!({"number": "5"})).await?.is_error);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn strict_arguments(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Disables the validation of arguments and results, for proxies whose peer validates them.
    #[must_use]
    pub fn without_validation(mut self) -> Self {
        self.validated = false;
        self
    }

    /// Spawns a task for every call, for a handler that sometimes computes or blocks for long.
    ///
    /// By default, a handler that has always been ready within half a millisecond starts on the task of the connection. This
    /// saves most of the cost of a call, but delays other messages of the connection. After the first slow call, the tool's
    /// calls start on separate tasks. This method is for servers that cannot afford that first call. Handlers that wait with
    /// `.await` do not need it, and blocking code still belongs in [`spawn_blocking`](tokio::task::spawn_blocking).
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.spawned = true;
        self
    }

    /// Forbids repeating a started call without its client.
    pub(crate) fn live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// Adds a layer around the calls of this tool.
    ///
    /// It is for extensions, which can replace the response, or let a call outlive its request. The layer added first is
    /// outermost. For a layer around all requests, use [`Server::layer`](crate::Server::layer).
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

    /// Changes the tool's entry in the listing, to set members of an extension. Changes of the schemas have no effect: use
    /// [`input`](Self::input) and [`output`](Self::output).
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

    /// Sets a function that decides which callers see the tool in their listing.
    ///
    /// Unlike a tool that is not [visible](Self::visible_to), the other callers can still call it, so that a
    /// [layer](Self::layer) can tell them what is missing. If several functions are set, all must return true. They are called
    /// for each listing, and must be quick.
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

    /// Requires an extension of the server, like [`Extension::requires`](crate::Extension::requires) for extensions.
    #[must_use]
    pub fn requires(mut self, extension: impl Into<String>) -> Self {
        self.requires.push(extension.into());
        self
    }

    /// Returns the name of the tool.
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
    /// Sets a function that decides which callers can list and call the tool. For the others, the tool does not exist. The
    /// function is called for each request, and must be quick.
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

/// Adds the name of the tool to an error.
pub(crate) fn of_tool(name: &str, error: &Error) -> Error {
    Error::misuse(format!("tool {name:?}: {}", error.message()))
}

/// Checks a tool's name against the
/// [rules](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-names), which clients rely on.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(Error::misuse(format!(
            "invalid tool name {name:?}: it has {} characters; use 1 to {MAX_NAME}",
            name.chars().count()
        )));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.chars().find(|c| !allowed(*c)) {
        Some(wrong) => Err(Error::misuse(format!(
            "invalid tool name {name:?}: {wrong:?} is not allowed; use only A-Z, a-z, 0-9, '_', '-' and '.'"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_follow_the_rules() {
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
    fn tool_name_error_lists_allowed_characters() {
        insta::assert_snapshot!(
            check_name("two words").unwrap_err(),
            @r#"invalid tool name "two words": ' ' is not allowed; use only A-Z, a-z, 0-9, '_', '-' and '.'"#
        );
    }
}
