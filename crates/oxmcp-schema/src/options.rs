//! Options that add information to an inferred schema that its type cannot express.

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

/// Options that add information to an inferred schema that its type cannot express, applied from the outside in.
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
/// Each common option has a method; [`schema`](Self::schema) sets any other keyword. Errors, such as a property that does
/// not exist or a limit that is not a number, are reported when the schema is used.
#[derive(Debug)]
#[must_use = "options are returned from the closure that they were given to"]
pub struct SchemaOptions {
    schema: Value,
    /// The original schema as a whole, for references into it.
    root: Arc<Value>,
    /// The position of this schema, for errors.
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

    /// Sets options for the property of this name, which must exist.
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

    /// Sets options for the items of an array.
    pub fn items(mut self, options: impl FnOnce(Self) -> Self) -> Self {
        self.resolve();
        let Some(items) = self
            .schema
            .get_mut("items")
            .filter(|items| items.is_object())
        else {
            return self.failed("cannot set options for items: not an array");
        };
        let schema = items.take();
        let (schema, is_required) = self.within(schema, "items", options);
        self = self.keyword("items", schema);
        if is_required.is_some() {
            self.fail("only a property can be required or optional");
        }
        self
    }

    /// Sets the description, for models.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.keyword("description", text.into())
    }

    /// Sets the title, for people.
    pub fn title(self, text: impl Into<String>) -> Self {
        self.keyword("title", text.into())
    }

    /// Sets the only values that are accepted.
    pub fn enum_values<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        self.keyword(
            "enum",
            values.into_iter().map(Into::into).collect::<Vec<Value>>(),
        )
    }

    /// Sets the value that is used if none is sent. This is a hint: the type decides the actual behavior.
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.keyword("default", value)
    }

    /// Sets examples of valid values.
    pub fn examples<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        self.keyword(
            "examples",
            values.into_iter().map(Into::into).collect::<Vec<Value>>(),
        )
    }

    /// Sets the smallest number that is accepted.
    pub fn minimum(self, limit: impl Into<Value>) -> Self {
        self.keyword("minimum", limit)
    }

    /// Sets the largest number that is accepted.
    pub fn maximum(self, limit: impl Into<Value>) -> Self {
        self.keyword("maximum", limit)
    }

    /// Sets the minimum length of a string, in characters.
    pub fn min_length(self, limit: u32) -> Self {
        self.keyword("minLength", limit)
    }

    /// Sets the maximum length of a string, in characters.
    pub fn max_length(self, limit: u32) -> Self {
        self.keyword("maxLength", limit)
    }

    /// Sets the regular expression that a string must match somewhere; with `^` and `$` it must match as a whole.
    pub fn pattern(self, pattern: impl Into<String>) -> Self {
        self.keyword("pattern", pattern.into())
    }

    /// Sets the format of a string, such as `date-time`. This is a hint: it is not validated.
    pub fn format(self, name: impl Into<String>) -> Self {
        self.keyword("format", name.into())
    }

    /// Makes the property required.
    pub fn required(mut self) -> Self {
        self.is_required = Some(true);
        self
    }

    /// Makes the property optional. The type must accept objects without it.
    pub fn optional(mut self) -> Self {
        self.is_required = Some(false);
        self
    }

    /// Refuses members that are not properties, with a message that lists the properties. This detects misspelled
    /// names of optional properties.
    pub fn deny_unknown_arguments(self) -> Self {
        self.keyword("additionalProperties", false)
    }

    /// Sets any keywords: the members of the given object are added to the schema, or replace those that it has.
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
            return self.failed("the keywords of a schema must be an object");
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

    /// Applies the options to a nested schema.
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

    /// Replaces a reference by a copy of its target, so that options for it apply only here.
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
            return format!("unknown property {name}: this schema has no properties");
        }
        let hint = match nearest(name.trim_matches('"'), names.iter().copied()) {
            Some(near) => format!("; did you mean {}?", quote_text(near)),
            None => String::new(),
        };
        let known = list(names.into_iter().map(quote_text));
        format!("unknown property {name}{hint} (properties: {known})")
    }

    fn failed(mut self, message: &str) -> Self {
        self.fail(message);
        self
    }

    /// Records a failure; only the first one is reported.
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
