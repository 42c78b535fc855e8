//! [`Schema`]: a compiled schema, ready to be sent and to validate.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use oxmcp_json::Text;
use serde::{Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::{
    error::{Result, SchemaError},
    explain::{expected::expected, messages},
    fast::{
        accept,
        check::{ANYTHING, Check},
        read::{self, Read},
        write::{self, Written},
    },
    full::{dialect::Dialect, nodes::Validator},
    hosts::listed::listed,
    infer::{
        json_schema::{Direction, JsonSchema, infer},
        order, portable,
    },
    limits,
    mend::{Mended, mend},
    options::SchemaOptions,
    violations::Violations,
};

/// A [JSON Schema](https://json-schema.org), compiled and ready to be sent. Clones share the same allocation.
///
/// Schemas that are inferred from types use only features that clients and models understand: nested types are inlined
/// (only recursive ones are references, to `$defs`), formats are those of the specification, doc comments are
/// descriptions, properties come in the order of the fields. An `Option` is an optional property. Null is accepted for it as
/// well, since models send it, but the schema does not advertise that.
///
/// `format` is a hint for the reader of the schema, in every dialect, and is not validated. Use a `pattern` instead,
/// which is a regular expression of ECMAScript. It supports look-around, but no references to its groups; of the
/// Unicode properties it supports the general categories.
///
/// ```
/// use serde_json::{json, value::to_raw_value};
///
/// #[derive(serde::Deserialize, oxmcp_schema::JsonSchema)]
/// struct Pair { b: f64, a: f64 }
///
/// let schema = oxmcp_schema::Schema::of::<Pair>();
/// assert_eq!(
///     schema.as_raw().get(),
///     r#"{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["b","a"]}"#,
/// );
/// assert!(schema.validate(&to_raw_value(&json!({"a": 1, "b": 2}))?).is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    text: Box<RawValue>,
    /// The schema as a value, with the marks of inference.
    marked: Value,
    fast: Check,
    full: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// Returns the schema of the JSON that is deserialized into a `T`, for the input of a tool.
    #[must_use]
    pub fn of<T: JsonSchema + ?Sized>() -> Self {
        Self::trusted(infer::<T>(Direction::Input))
    }

    /// Returns the schema of the JSON that a `T` serializes to, for the output of a tool.
    ///
    /// It differs from [`of`](Self::of) if serde does: a field with a default is optional in the input, but always
    /// present in the output.
    #[must_use]
    pub fn of_output<T: JsonSchema + ?Sized>() -> Self {
        Self::trusted(infer::<T>(Direction::Output))
    }

    /// Creates the schema of an object without members, for tools that take no arguments.
    #[doc(hidden)]
    #[must_use]
    pub fn empty_object() -> Self {
        Self::trusted(json!({"type": "object", "additionalProperties": false}))
    }

    /// Creates the schema that accepts every object.
    #[doc(hidden)]
    #[must_use]
    pub fn any_object() -> Self {
        Self::trusted(json!({"type": "object"}))
    }

    /// Creates a schema from a JSON value. It validates exactly as written. Its members are sorted by name, which
    /// [`from_raw`](Self::from_raw) avoids.
    ///
    /// The dialect is the one that `$schema` names: 2020-12 (also the default), 2019-09, draft-07, draft-06 or
    /// draft-04.
    ///
    /// # Errors
    /// If the schema is not valid in its dialect, the dialect is unknown, a reference leads outside of the schema
    /// (nothing is ever fetched), a pattern cannot be used, or the schema exceeds the limits on depth and size.
    pub fn from_json(schema: impl Into<Value>) -> Result<Self> {
        let schema = schema.into();
        let text = order::write(&schema);
        Self::checked(schema, text)
    }

    /// Creates a schema from JSON text, which is kept byte for byte.
    ///
    /// ```
    /// use oxmcp_schema::{IntoSchema, Schema};
    ///
    /// let text = r#"{"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}}"#;
    /// assert_eq!(Schema::from_raw(serde_json::from_str(text)?)?.as_raw().get(), text);
    /// // A string is read as JSON, too, wherever a schema is expected.
    /// assert_eq!(text.into_schema()?.as_raw().get(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_raw(schema: &RawValue) -> Result<Self> {
        let value = serde_json::from_str(schema.get())
            .map_err(|error| SchemaError::invalid(format!("cannot parse the schema: {error}")))?;
        Self::checked(value, schema.get().to_owned())
    }

    /// Returns the schema with [options](SchemaOptions), which add information that the type cannot express.
    ///
    /// # Errors
    /// If an option names a property that does not exist, or makes the schema invalid.
    pub fn with(&self, options: impl FnOnce(SchemaOptions) -> SchemaOptions) -> Result<Self> {
        let schema = options(SchemaOptions::new(&self.0.marked)).finish()?;
        let text = order::write(&schema);
        Self::checked(schema, text)
    }

    /// Returns the schema after a change of its value, in the same order.
    ///
    /// # Errors
    /// If the change makes the schema invalid.
    #[doc(hidden)]
    pub fn edited(&self, edit: impl FnOnce(&mut Value)) -> Result<Self> {
        let mut schema = self.0.marked.clone();
        order::number_as_written(&mut schema, Text::from(self.as_raw()));
        edit(&mut schema);
        let text = order::write(&schema);
        Self::checked(schema, text)
    }

    /// Returns the schema as it is sent, serialized once.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0.text
    }

    /// Returns the schema in the form that hosts accept, in which a server lists its tools.
    ///
    /// Model APIs support only a part of JSON Schema, and many refuse all tools of a host because of one schema. So the variants
    /// of an enum at the root are merged into one object: it has the properties of all variants, requires those that all of them
    /// require, and describes which belong together. The root always has `properties`, and an array always has `items`. The
    /// result accepts all values that the schema accepts, and may accept more. A schema that has this form already is returned
    /// unchanged.
    ///
    /// ```
    /// #[derive(serde::Deserialize, oxmcp_schema::JsonSchema)]
    /// #[serde(tag = "shape")]
    /// enum Shape {
    ///     Circle { radius: f64 },
    ///     Point,
    /// }
    ///
    /// let listed: serde_json::Value = serde_json::from_str(oxmcp_schema::Schema::of::<Shape>().listed().get())?;
    /// assert_eq!(listed["properties"]["shape"]["enum"], serde_json::json!(["Circle", "Point"]));
    /// assert_eq!(listed["properties"]["radius"]["type"], "number");
    /// assert_eq!(listed["required"], serde_json::json!(["shape"]));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn listed(&self) -> Box<RawValue> {
        let mut marked = self.0.marked.clone();
        order::number_as_written(&mut marked, Text::from(self.as_raw()));
        match listed(&marked) {
            Some(listed) => raw(order::write(&listed)),
            None => self.0.text.clone(),
        }
    }

    /// Returns the schema as a value. Its maps are sorted by name.
    #[must_use]
    pub fn to_value(&self) -> Value {
        order::without_marks(&self.0.marked)
    }

    /// Returns whether an object has members that are not properties of the schema.
    #[doc(hidden)]
    #[must_use]
    pub fn has_others(&self, object: Text<'_>) -> bool {
        let properties = self.0.marked.get("properties");
        let is_known = |name: &str| properties.is_some_and(|known| known.get(name).is_some());
        let mut names = object.members().map(|(key, _)| key.as_str());
        names.any(|name| !name.is_some_and(|name| is_known(&name)))
    }

    /// Validates a value.
    ///
    /// Validation of a valid value against a simple schema takes one pass over its text. All other cases are decided by
    /// a full validator, which is compiled when it is first needed. Its work is bounded: if validation takes more steps
    /// than a constant and a fixed number per byte of the value, the value is refused.
    ///
    /// # Errors
    /// The violations, described so that the author of the value can correct them.
    pub fn validate(&self, instance: &RawValue) -> Result<(), Violations> {
        self.validate_text(Text::from(instance))
    }

    /// Validates a value that is given as text.
    #[doc(hidden)]
    pub fn validate_text(&self, instance: Text<'_>) -> Result<(), Violations> {
        if accept::accepts(&self.0.fast, instance) {
            return Ok(());
        }
        self.validate_fully(instance)
    }

    /// Reads a valid value. `None` if that takes more than one pass: then it must be validated, and read by serde_json.
    #[doc(hidden)]
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self, instance: Text<'_>) -> Option<Read<T>> {
        read::read(&self.0.fast, instance)
    }

    /// Serializes a value as serde_json does, and validates it at the same time if there is a schema.
    ///
    /// # Errors
    /// If the value does not serialize to JSON.
    #[doc(hidden)]
    pub fn write<T: Serialize + ?Sized>(
        schema: Option<&Self>,
        value: &T,
    ) -> serde_json::Result<Written> {
        let check = schema.map_or(&ANYTHING, |schema| &schema.0.fast);
        write::write(check, value)
    }

    /// Returns the value with a few changes that make it valid: see [`mend`](crate::mend). Call it only for invalid values.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn mend(&self, value: Text<'_>) -> Option<Mended> {
        mend(self.full().ok()?, value)
    }

    #[cold]
    fn validate_fully(&self, instance: Text<'_>) -> Result<(), Violations> {
        let full = match self.full() {
            Ok(full) => full,
            Err(message) => return Err(Violations::one("", message)),
        };
        let text = instance.get();
        match serde_json::from_str(text) {
            Ok(instance) => messages::explain(full, &instance, text.len()),
            Err(error) => Err(Violations::one(
                "",
                format!("cannot parse the value: {error}"),
            )),
        }
    }

    fn full(&self) -> Result<&Validator, &str> {
        let full = self.0.full.get_or_init(|| {
            let mut schema = self.0.marked.clone();
            portable::tolerate_null(&mut schema);
            let length = self.0.text.get().len();
            compile(schema, length).map_err(|error| error.to_string())
        });
        full.as_ref().map_err(String::as_str)
    }

    /// Checks that the schema can describe arguments, which are an object in every revision.
    ///
    /// # Errors
    /// If the schema does not have `"type": "object"`; the message says how to correct that.
    #[doc(hidden)]
    pub fn ensure_object(&self) -> Result<()> {
        if self.is_object() {
            return Ok(());
        }
        Err(SchemaError::invalid(format!(
            "the input of a tool must be an object, but this schema accepts {}; use a struct with named fields, or set \"type\": \"object\" in a handwritten schema",
            expected(&self.0.marked)
        )))
    }

    /// The schema as a value, with the marks of inference.
    pub(crate) fn marked(&self) -> &Value {
        &self.0.marked
    }

    /// Returns whether the root of the schema has the type `object`.
    #[doc(hidden)]
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0
            .marked
            .get("type")
            .is_some_and(|kind| kind == "object")
    }

    /// A schema that this crate has generated: the full validator is compiled when it is first needed.
    fn trusted(marked: Value) -> Self {
        let text = order::write(&marked);
        Self::new(marked, text)
    }

    /// A schema from outside of this crate.
    fn checked(marked: Value, text: String) -> Result<Self> {
        limits::check(&marked)?;
        let schema = Self::new(marked, text);
        match schema.full() {
            Ok(_) => Ok(schema),
            Err(message) => Err(SchemaError::invalid(message.to_owned())),
        }
    }

    fn new(marked: Value, text: String) -> Self {
        let mut tolerant = marked.clone();
        portable::tolerate_null(&mut tolerant);
        Self(Arc::new(Inner {
            text: raw(text),
            fast: Check::compile(&tolerant),
            marked,
            full: OnceLock::new(),
        }))
    }

    /// Returns whether the fast check accepts the value; for tests.
    #[cfg(any(test, fuzzing))]
    #[doc(hidden)]
    #[must_use]
    pub fn accepts_fast(&self, instance: &RawValue) -> bool {
        accept::accepts(&self.0.fast, Text::from(instance))
    }

    /// Whether the fast check proves that no object in the value has duplicate names; for tests.
    #[cfg(test)]
    pub(crate) fn names_are_single(&self, instance: Text<'_>) -> bool {
        let mut acceptor = accept::Acceptor::new(instance);
        acceptor.value(&self.0.fast) && !acceptor.has_unlisted_names
    }

    /// Returns the verdict of the full validator; for tests.
    #[cfg(any(test, fuzzing))]
    #[doc(hidden)]
    pub fn validate_by_full(&self, instance: &RawValue) -> Result<(), Violations> {
        self.validate_fully(Text::from(instance))
    }
}

fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("the text was written from a value")
}

/// Validates and compiles a schema whose JSON is `length` bytes long.
fn compile(schema: Value, length: usize) -> Result<Validator> {
    let dialect = Dialect::named(&schema)?.unwrap_or(Dialect::DEFAULT);
    if let Err(violations) = messages::explain(&dialect.validator(), &schema, length) {
        let first = violations.iter().next().map(ToString::to_string);
        return Err(SchemaError::invalid(format!(
            "invalid JSON Schema: {}",
            first.unwrap_or_default()
        )));
    }
    dialect.compile(schema)
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.text.get() == other.0.text.get()
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.0.text)
    }
}
