//! Transformation of a tool: other names, descriptions and values of its arguments, with the schema and the validation adapted.

use std::sync::{Arc, OnceLock};

use oxmcp_json::Text;
use oxmcp_schema::Schema;
use serde_json::{Map, Value};

use super::{
    Tool, ToolError,
    definition::of_tool,
    handler::{ArgumentsCheck, ConvertsArguments, ErasedHandler, ToolSchemas, check_converted},
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    session::connection::RequestContext,
};

/// The keywords at the root of a schema that may name properties, or count them. Properties of such a schema keep their names.
const INTERTWINED: [&str; 15] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
];

impl Tool {
    /// Changes the tool for its callers: its name and description, and the names, descriptions and values of its arguments. The
    /// handler still gets the arguments that it was written for.
    ///
    /// It is for tools that another crate or another server provides. The input schema follows the changes, and arguments are
    /// validated against it. Default and fixed values must be valid. A hidden argument that is sent nevertheless is dropped, or refused if
    /// the schema refuses unknown arguments. Mistakes, such as an argument that does not exist, are reported like
    /// those of other methods. Names and values cannot be changed if the schema has combinations such as `anyOf` at its root.
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Server, Tool, testing};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Query { q: String, index: String, size: u32 }
    ///
    /// async fn search(Query { q, index, size }: Query) -> String {
    ///     format!("{size} of {q} in {index}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> oxmcp::Result<()> {
    /// let tool = Tool::new("search", "Search an index", search).transform(|t| {
    ///     t.name("search_manuals")
    ///         .description("Search the manuals of our products")
    ///         .argument("q", |a| a.name("words").description("words that the manual contains"))
    ///         .argument("index", |a| a.fixed("manuals"))
    ///         .argument("size", |a| a.default(10))
    /// });
    /// let client = testing::connect(&Server::new("shop", "1.0.0").tool(tool)).await?;
    /// let found = client.call_tool("search_manuals", json!({"words": "oven"})).await?;
    /// assert_eq!(found.to_text(), "10 of oven in manuals");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn transform(self, change: impl FnOnce(ToolTransform) -> ToolTransform) -> Self {
        change(ToolTransform::of(self)).finish()
    }
}

/// The changes that [`Tool::transform`](crate::Tool::transform) makes.
#[must_use = "the changes are returned from the closure that they were given to"]
pub struct ToolTransform {
    tool: Tool,
    arguments: Vec<ArgumentTransform>,
}

/// The changes of one argument; see [`ToolTransform::argument`].
#[must_use = "the changes are returned from the closure that they were given to"]
#[derive(Clone, Debug)]
pub struct ArgumentTransform {
    /// The name for the handler.
    original: String,
    name: Option<String>,
    description: Option<String>,
    value: Option<Value>,
    is_hidden: bool,
}

impl ArgumentTransform {
    /// Sets the name by which callers know the argument.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the description of the argument, for the model.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Makes the argument optional, with this value for calls without it.
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Hides the argument from callers, who can no longer set it. It must be optional, or have a [`default`](Self::default).
    pub fn hide(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// Hides the argument from callers, and sets it to this value in each call.
    pub fn fixed(self, value: impl Into<Value>) -> Self {
        self.default(value).hide()
    }
}

impl ToolTransform {
    pub(crate) fn of(tool: Tool) -> Self {
        Self {
            tool,
            arguments: Vec::new(),
        }
    }

    /// Sets the name of the tool.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.tool = self.tool.entry(|entry| entry.name = name.into());
        self
    }

    /// Sets the title of the tool: the name displayed to people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.tool = self.tool.entry(|entry| entry.title = Some(title.into()));
        self
    }

    /// Sets the description of the tool, for the model.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.tool = self
            .tool
            .entry(|entry| entry.description = Some(text.into()));
        self
    }

    /// Changes an argument of the tool, by its name before the transformation. It must be a property of the input schema.
    pub fn argument(
        mut self,
        name: impl Into<String>,
        change: impl FnOnce(ArgumentTransform) -> ArgumentTransform,
    ) -> Self {
        self.arguments.push(change(ArgumentTransform {
            original: name.into(),
            name: None,
            description: None,
            value: None,
            is_hidden: false,
        }));
        self
    }

    /// The transformed tool.
    pub(crate) fn finish(self) -> Tool {
        let Self {
            mut tool,
            arguments,
        } = self;
        if arguments.is_empty() {
            return tool;
        }
        let input = match outer_schema(&tool.input, &arguments) {
            Ok(input) => input,
            Err(error) => {
                let error = of_tool(&tool.definition.name, &error);
                tool.mistake.get_or_insert(error);
                return tool;
            }
        };
        let takes_nothing = tool.is_inferred && tool.input == Schema::empty_object();
        let drops_unknown = tool.is_inferred && !has_keyword(&tool.input, "additionalProperties");
        let inner = std::mem::replace(&mut tool.input, input);
        let transform = Arc::new(Transform {
            known: names(&tool.input),
            arguments,
            drops_unknown,
            input: if takes_nothing {
                Schema::any_object()
            } else {
                inner
            },
            is_inferred: tool.is_inferred,
            check: tool.check,
            next: tool.transform.take(),
            schemas: OnceLock::new(),
        });
        tool.handler = transform.around(tool.handler);
        tool.check = check_converted;
        tool.transform = Some(transform);
        tool
    }
}

/// A transformation in effect: between the arguments of callers, and those of the handler.
pub(crate) struct Transform {
    arguments: Vec<ArgumentTransform>,
    /// The names of the arguments that callers see.
    known: Vec<String>,
    /// Whether unknown arguments are dropped, which the handler would ignore.
    drops_unknown: bool,
    /// The schema, and the rules, of the handler.
    input: Schema,
    is_inferred: bool,
    check: ArgumentsCheck,
    /// The transformation inside this one.
    next: Option<Arc<dyn ConvertsArguments>>,
    /// The schemas for the handler, made with the first call.
    schemas: OnceLock<Arc<ToolSchemas>>,
}

impl Transform {
    fn around(self: &Arc<Self>, handler: ErasedHandler) -> ErasedHandler {
        let transform = Arc::clone(self);
        Arc::new(move |context, arguments, schemas| {
            let read = transform.read(&context, &schemas, &arguments);
            match read {
                Ok(arguments) => {
                    handler(context, arguments.into(), transform.inner_schemas(&schemas))
                }
                Err(error) => {
                    let refused = schemas.finish(Err(error));
                    Box::pin(async { refused })
                }
            }
        })
    }

    /// Validates the arguments of a caller, and converts them to those of the handler.
    fn read(
        &self,
        cx: &RequestContext,
        schemas: &ToolSchemas,
        arguments: &str,
    ) -> Result<String, ToolError> {
        let sent = Text::checked(arguments);
        let mended = schemas.check_or_mend(cx, sent)?;
        let sent = mended.as_deref().map_or(sent, Text::checked);
        Ok(self.converted(sent))
    }

    fn converted(&self, sent: Text<'_>) -> String {
        let mut members = Members(String::from("{"));
        let mut given = Vec::new();
        for (key, value) in sent.members() {
            let Some(name) = key.as_str() else { continue };
            let renamed = self
                .arguments
                .iter()
                .find(|it| it.exposed() == Some(&*name));
            if let Some(argument) = renamed {
                members.push(&argument.original, value.get());
                given.push(&argument.original);
                continue;
            }
            let is_taken = self.arguments.iter().any(|it| it.original == *name);
            let is_known = self.known.iter().any(|known| *known == *name);
            if !is_taken && (is_known || !self.drops_unknown) {
                members.push(&name, value.get());
            }
        }
        for argument in &self.arguments {
            if let Some(value) = &argument.value
                && !given.contains(&&argument.original)
            {
                members.push(&argument.original, &value.to_string());
            }
        }
        members.0.push('}');
        members.0
    }

    fn inner_schemas(&self, outer: &ToolSchemas) -> Arc<ToolSchemas> {
        let schemas = self.schemas.get_or_init(|| {
            Arc::new(ToolSchemas {
                tool: outer.tool.clone(),
                input: outer.input.is_some().then(|| self.input.clone()),
                is_inferred: self.is_inferred,
                output: outer.output.clone(),
                check_arguments: self.check,
                is_live: outer.is_live,
                is_strict: outer.is_strict,
                transform: self.next.clone(),
            })
        });
        Arc::clone(schemas)
    }
}

opaque_debug!(Transform, |it| { arguments: it.arguments });
opaque_debug!(ToolTransform, |it| { tool: it.tool.name(), arguments: it.arguments });

impl ConvertsArguments for Transform {
    fn check(
        &self,
        context: RequestContext,
        schemas: &ToolSchemas,
        arguments: &str,
    ) -> Result<(), ToolError> {
        let arguments = self.read(&context, schemas, arguments)?;
        let inner = self.inner_schemas(schemas);
        (inner.check_arguments)(context, &inner, &arguments)
    }
}

impl ArgumentTransform {
    /// The name by which callers know the argument. `None` if it is hidden.
    fn exposed(&self) -> Option<&str> {
        let name = self.name.as_deref().unwrap_or(&self.original);
        (!self.is_hidden).then_some(name)
    }

    /// Whether only the description changes.
    fn keeps_values(&self) -> bool {
        self.name.is_none() && self.value.is_none() && !self.is_hidden
    }
}

/// A JSON object that is written member by member.
struct Members(String);

impl Members {
    fn push(&mut self, name: &str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(value);
    }
}

fn has_keyword(schema: &Schema, keyword: &str) -> bool {
    schema.to_value().get(keyword).is_some()
}

fn names(schema: &Schema) -> Vec<String> {
    let schema = schema.to_value();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

/// The schema for callers.
///
/// # Errors
/// The first change that cannot be made.
fn outer_schema(schema: &Schema, arguments: &[ArgumentTransform]) -> Result<Schema> {
    let value = schema.to_value();
    for argument in arguments {
        let name = &argument.original;
        if value
            .pointer("/properties")
            .and_then(|it| it.get(name))
            .is_none()
        {
            let known = names(schema).join(", ");
            return Err(Error::misuse(format!(
                "cannot transform the argument {name:?}: the input schema has no such property (properties: {known})"
            )));
        }
        if !argument.keeps_values()
            && let Some(keyword) = INTERTWINED.iter().find(|it| value.get(**it).is_some())
        {
            return Err(Error::misuse(format!(
                "cannot transform the argument {name:?}: the input schema has `{keyword}`, which may depend on it; change only its description"
            )));
        }
        let is_required = required(&value).any(|it| it == *name);
        if argument.is_hidden && argument.value.is_none() && is_required {
            return Err(Error::misuse(format!(
                "cannot hide the argument {name:?}: it is required; give it a value with `fixed`"
            )));
        }
        if let Some(given) = &argument.value {
            check_value(schema, name, given)?;
        }
    }
    let mut exposed = names(schema);
    exposed.retain(|name| arguments.iter().all(|it| it.original != *name));
    exposed.extend(
        arguments
            .iter()
            .filter_map(|it| it.exposed().map(str::to_owned)),
    );
    exposed.sort_unstable();
    if exposed
        .windows(2)
        .any(|pair| matches!(pair, [one, other] if one == other))
    {
        return Err(Error::misuse(
            "cannot transform the arguments: two of them have the same name",
        ));
    }
    Ok(schema.edited(|schema| edit(schema, arguments))?)
}

/// Checks a default or fixed value by the schema of its property.
fn check_value(schema: &Schema, name: &str, value: &Value) -> Result<()> {
    let alone = schema.edited(|schema| {
        if let Value::Object(keywords) = schema {
            keywords.remove("required");
        }
    })?;
    let given = Value::from(Map::from_iter([(name.to_owned(), value.clone())])).to_string();
    let checked = alone.validate_text(Text::checked(&given));
    checked.map_err(|violations| {
        Error::misuse(format!(
            "cannot transform the argument {name:?}: its value is not valid: {violations}"
        ))
    })
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn edit(schema: &mut Value, arguments: &[ArgumentTransform]) {
    let Value::Object(keywords) = schema else {
        return;
    };
    let mut names = Vec::new();
    if let Some(Value::Array(required)) = keywords.remove("required") {
        names = required;
    }
    let Some(Value::Object(properties)) = keywords.get_mut("properties") else {
        return;
    };
    // All are taken out first, so that two arguments can exchange their names.
    let taken: Vec<_> = arguments
        .iter()
        .map(|argument| (argument, properties.remove(&argument.original)))
        .collect();
    let mut renamed = Vec::new();
    for (argument, property) in taken {
        let was_required = names.iter().any(|name| *name == *argument.original);
        names.retain(|name| *name != *argument.original);
        let (Some(name), Some(mut property)) = (argument.exposed(), property) else {
            continue;
        };
        if let Value::Bool(true) = property {
            property = Value::Object(Map::new());
        }
        if let Value::Object(property) = &mut property {
            let description = argument.description.clone().map(Value::from);
            let described = description.map(|it| ("description".to_owned(), it));
            let default = argument.value.clone().map(|it| ("default".to_owned(), it));
            property.extend(described.into_iter().chain(default));
        }
        if was_required && argument.value.is_none() {
            renamed.push(Value::from(name));
        }
        properties.insert(name.to_owned(), property);
    }
    names.extend(renamed);
    if !names.is_empty() {
        keywords.insert("required".to_owned(), names.into());
    }
}
