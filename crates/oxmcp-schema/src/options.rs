//! Options that say more about an inferred schema than its type can.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    error::{Result, SchemaError},
    explain::{
        expected::{list, quote_text},
        spelling::nearest,
    },
    infer::order::{self, NULLABLE},
};

/// Says more about an inferred schema than its type can, from the outside in.
///
/// ```
/// # #[derive(serde::Deserialize, oxmcp_schema::JsonSchema)]
/// # struct Order { count: u32, sizes: Vec<String> }
/// let schema = oxmcp_schema::Schema::of::<Order>().with(|s| {
///     s.property("count", |p| p.description("size of the inventory").minimum(1))
///         .property("sizes", |p| p.optional().items(|i| i.enum_values(["S", "M", "L"])))
/// })?;
/// assert_eq!(schema.to_value()["properties"]["sizes"]["items"]["enum"][1], "M");
/// # Ok::<(), oxmcp_schema::SchemaError>(())
/// ```
///
/// The options are those that are often used; [`schema`](Self::schema) has all the rest. What is wrong with them is
/// told when the schema is used: a property that does not exist, a limit that is no number.
#[derive(Debug)]
#[must_use = "options are returned from the closure that they were given to"]
pub struct SchemaOptions {
    schema: Value,
    /// The whole schema as it was, for references into it.
    root: Arc<Value>,
    /// Where this is, for errors.
    pointer: String,
    is_required: Option<bool>,
    error: Option<String>,
}

impl SchemaOptions {
    pub(crate) fn new(root: &Value) -> Self {
        Self {
            schema: root.clone(),
            root: Arc::new(root.clone()),
            pointer: String::new(),
            is_required: None,
            error: None,
        }
    }

    pub(crate) fn finish(mut self) -> Result<Value> {
        if self.is_required.is_some() {
            self.fail("only a property can be required or optional");
        }
        match self.error {
            Some(message) => Err(SchemaError::invalid(message)),
            None => Ok(self.schema),
        }
    }

    /// Options for the property of this name. It must exist.
    pub fn property(mut self, name: &str, options: impl FnOnce(Self) -> Self) -> Self {
        self.resolve();
        let Some(property) = self
            .schema
            .pointer_mut("/properties")
            .and_then(|all| all.get_mut(name))
        else {
            let message = self.no_property(name);
            return self.failed(&message);
        };
        let schema = property.take();
        let (schema, is_required) = self.within(schema, name, options);
        if let Some(place) = self
            .schema
            .pointer_mut("/properties")
            .and_then(|all| all.get_mut(name))
        {
            *place = schema;
        }
        if let Some(is_required) = is_required {
            self.set_required(name, is_required);
        }
        self
    }

    /// Options for the items of an array.
    pub fn items(mut self, options: impl FnOnce(Self) -> Self) -> Self {
        self.resolve();
        let Some(items) = self
            .schema
            .get_mut("items")
            .filter(|items| items.is_object())
        else {
            return self.failed("there are no items: this is no array");
        };
        let schema = items.take();
        let (schema, is_required) = self.within(schema, "items", options);
        self = self.keyword("items", schema);
        if is_required.is_some() {
            self.fail("only a property can be required or optional");
        }
        self
    }

    /// What it is, for the model to read.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.keyword("description", text.into())
    }

    /// What it is called, for people to read.
    pub fn title(self, text: impl Into<String>) -> Self {
        self.keyword("title", text.into())
    }

    /// The only values that are accepted.
    pub fn enum_values<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        self.keyword(
            "enum",
            values.into_iter().map(Into::into).collect::<Vec<Value>>(),
        )
    }

    /// The value that is used where none is sent. This is a hint: the type decides what really happens.
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.keyword("default", value)
    }

    /// Examples of good values.
    pub fn examples<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        self.keyword(
            "examples",
            values.into_iter().map(Into::into).collect::<Vec<Value>>(),
        )
    }

    /// The least number that is accepted.
    pub fn minimum(self, limit: impl Into<Value>) -> Self {
        self.keyword("minimum", limit)
    }

    /// The greatest number that is accepted.
    pub fn maximum(self, limit: impl Into<Value>) -> Self {
        self.keyword("maximum", limit)
    }

    /// How long a string must be at least, in characters.
    pub fn min_length(self, limit: u32) -> Self {
        self.keyword("minLength", limit)
    }

    /// How long a string may be, in characters.
    pub fn max_length(self, limit: u32) -> Self {
        self.keyword("maxLength", limit)
    }

    /// The regular expression that a string must match somewhere; `^` and `$` make it match as a whole.
    pub fn pattern(self, pattern: impl Into<String>) -> Self {
        self.keyword("pattern", pattern.into())
    }

    /// The format of a string, such as `date-time`. This is a hint: it is not validated.
    pub fn format(self, name: impl Into<String>) -> Self {
        self.keyword("format", name.into())
    }

    /// The property must be sent.
    pub fn required(mut self) -> Self {
        self.is_required = Some(true);
        self
    }

    /// The property may be left out. The type must be able to do without it.
    pub fn optional(mut self) -> Self {
        self.is_required = Some(false);
        self
    }

    /// Members that are not properties are refused, with a message that lists those that are. That catches misspelt
    /// names of optional properties.
    pub fn deny_unknown(self) -> Self {
        self.keyword("additionalProperties", false)
    }

    /// Any keywords: the members of the object given here are added to the schema, or replace those that it has.
    ///
    /// ```
    /// # #[derive(serde::Deserialize, oxmcp_schema::JsonSchema)]
    /// # struct Order { sizes: Vec<String> }
    /// use serde_json::json;
    ///
    /// let schema = oxmcp_schema::Schema::of::<Order>()
    ///     .with(|s| s.property("sizes", |p| p.schema(json!({"uniqueItems": true}))))?;
    /// # assert_eq!(schema.to_value()["properties"]["sizes"]["uniqueItems"], true);
    /// # Ok::<(), oxmcp_schema::SchemaError>(())
    /// ```
    pub fn schema(mut self, keywords: impl Into<Value>) -> Self {
        let Value::Object(keywords) = keywords.into() else {
            return self.failed("the keywords of a schema come in an object");
        };
        for (keyword, value) in keywords {
            self = self.keyword(&keyword, value);
        }
        self
    }

    fn keyword(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        if !self.schema.is_object() {
            self.schema = Value::Object(Map::new());
        }
        if let Value::Object(map) = &mut self.schema {
            map.insert(keyword.to_owned(), value.into());
        }
        self
    }

    /// Applies the options to a schema within this one.
    fn within(
        &mut self,
        schema: Value,
        name: &str,
        options: impl FnOnce(Self) -> Self,
    ) -> (Value, Option<bool>) {
        let inner = options(Self {
            schema,
            root: Arc::clone(&self.root),
            pointer: format!("{}/{name}", self.pointer),
            is_required: None,
            error: None,
        });
        if let Some(message) = inner.error {
            self.error.get_or_insert(message);
        }
        (inner.schema, inner.is_required)
    }

    /// Puts what a reference stands for in its place, so that options for it hold here and nowhere else.
    fn resolve(&mut self) {
        let Some(reference) = self.schema.get("$ref").and_then(Value::as_str) else {
            return;
        };
        let Some(target) = reference
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(pointer))
        else {
            return;
        };
        let (Value::Object(mut resolved), Some(own)) = (target.clone(), self.schema.as_object())
        else {
            return;
        };
        if !self.pointer.is_empty() {
            resolved.remove("$defs");
            resolved.remove(NULLABLE);
            resolved.remove(order::ORDER);
        }
        resolved.extend(
            own.iter()
                .filter(|(key, _)| *key != "$ref")
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        self.schema = Value::Object(resolved);
    }

    fn set_required(&mut self, name: &str, is_required: bool) {
        let Value::Object(map) = &mut self.schema else {
            return;
        };
        let names = map
            .entry("required")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(names) = names {
            names.retain(|known| known != name);
            if is_required {
                names.push(name.into());
            }
            if names.is_empty() {
                map.remove("required");
            }
        }
    }

    fn no_property(&self, name: &str) -> String {
        let names = order::property_names(&self.schema);
        let name = quote_text(name);
        if names.is_empty() {
            return format!("there is no property {name}; there are none here");
        }
        let hint = match nearest(name.trim_matches('"'), names.iter().copied()) {
            Some(near) => format!(", did you mean {}?", quote_text(near)),
            None => String::new(),
        };
        let known = list(names.into_iter().map(quote_text));
        format!("there is no property {name}{hint} (the properties are {known})")
    }

    fn failed(mut self, message: &str) -> Self {
        self.fail(message);
        self
    }

    /// The first failure is the one that is told.
    fn fail(&mut self, message: &str) {
        let place = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        self.error
            .get_or_insert_with(|| format!("schema options at {place}: {message}"));
    }
}
