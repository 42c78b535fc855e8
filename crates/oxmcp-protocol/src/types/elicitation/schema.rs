//! Schemas of forms: a small subset of JSON Schema.
//!
//! See [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor, value::SeqDeserializer},
};
use serde_json::Value;

use crate::{
    lenient::{Entry, FIELD},
    types::elicitation::select::{MultiSelectSchema, Select, SingleSelectSchema},
    values::{
        json::{JsonObject, optional_number},
        open_enum::{open_enum, setters},
        ordered_map::OrderedMap,
    },
};

/// The fields of a form, in the order in which they are shown.
///
/// ```
/// use oxmcp_protocol::{BooleanSchema, ElicitSchema, StringSchema};
///
/// let form = ElicitSchema::new()
///     .required("name", StringSchema::default().with_title("Your name"))
///     .optional("agree", BooleanSchema::default());
/// # assert_eq!(form.properties.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "object")]
#[non_exhaustive]
pub struct ElicitSchema {
    /// The dialect of JSON Schema (2025-11-25 and later).
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The fields.
    pub properties: OrderedMap<PrimitiveSchema>,
    /// The fields that must be filled in.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub required: Vec<String>,
}

impl ElicitSchema {
    /// Creates a form without fields.
    #[must_use]
    pub fn new() -> Self {
        Self {
            dialect: None,
            properties: OrderedMap::new(),
            required: Vec::new(),
        }
    }

    /// Adds a field that must be filled in.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        if !self.required.contains(&name) {
            self.required.push(name.clone());
        }
        self.properties.insert(name, schema.into());
        self
    }

    /// Adds a field that may be left empty.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.retain(|other| *other != name);
        self.properties.insert(name, schema.into());
        self
    }
}

impl Default for ElicitSchema {
    fn default() -> Self {
        Self::new()
    }
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// A text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A boolean: yes or no.
    Boolean(BooleanSchema),
    /// A choice of one of several values.
    SingleSelect(SingleSelectSchema),
    /// A choice of several values (2025-11-25 and later).
    MultiSelect(MultiSelectSchema),
    /// A field of a type that this version of the crate does not know, as received.
    Unknown(JsonObject),
}

impl From<StringSchema> for PrimitiveSchema {
    fn from(schema: StringSchema) -> Self {
        Self::String(schema)
    }
}

impl From<NumberSchema> for PrimitiveSchema {
    fn from(schema: NumberSchema) -> Self {
        Self::Number(schema)
    }
}

impl From<BooleanSchema> for PrimitiveSchema {
    fn from(schema: BooleanSchema) -> Self {
        Self::Boolean(schema)
    }
}

impl From<SingleSelectSchema> for PrimitiveSchema {
    fn from(schema: SingleSelectSchema) -> Self {
        Self::SingleSelect(schema)
    }
}

impl From<MultiSelectSchema> for PrimitiveSchema {
    fn from(schema: MultiSelectSchema) -> Self {
        Self::MultiSelect(schema)
    }
}

/// A field for text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string", rename_all = "camelCase")]
#[non_exhaustive]
pub struct StringSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The meaning of the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The maximum number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// The regular expression that must match within the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The format of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// The default value (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

setters!(StringSchema {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the minimum number of characters.
    with_min_length => min_length: u64,
    /// Sets the maximum number of characters.
    with_max_length => max_length: u64,
    /// Sets the regular expression.
    with_pattern => pattern: String,
    /// Sets the format.
    with_format => format: StringFormat,
    /// Sets the default value.
    with_default => default: String,
});

open_enum! {
    /// The format of the text in a field.
    pub enum StringFormat {
        /// An email address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date: `2026-07-28`.
        Date = "date",
        /// A date and time: `2026-07-28T12:00:00Z`.
        DateTime = "date-time",
    }
}

/// A field for a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NumberSchema {
    /// Whether the number must be whole.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The meaning of the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub minimum: Option<f64>,
    /// The maximum value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub maximum: Option<f64>,
    /// The default value (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub default: Option<f64>,
}

impl NumberSchema {
    /// Creates a field for an integer.
    #[must_use]
    pub fn integer() -> Self {
        Self {
            kind: NumberKind::Integer,
            ..Self::default()
        }
    }
}

setters!(NumberSchema {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the minimum value.
    with_minimum => minimum: f64,
    /// Sets the maximum value.
    with_maximum => maximum: f64,
    /// Sets the default value.
    with_default => default: f64,
});

/// Whether a number must be whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// An integer.
    Integer,
}

/// A field for yes or no.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "boolean", rename_all = "camelCase")]
#[non_exhaustive]
pub struct BooleanSchema {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The meaning of the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

setters!(BooleanSchema {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the default value.
    with_default => default: bool,
});

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(schema) => schema.serialize(serializer),
            Self::Number(schema) => schema.serialize(serializer),
            Self::Boolean(schema) => schema.serialize(serializer),
            Self::SingleSelect(schema) => Select::single(schema).serialize(serializer),
            Self::MultiSelect(schema) => Select::multi(schema).serialize(serializer),
            Self::Unknown(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Entry::deserialize(deserializer)? {
            Entry(Some(Field(schema))) => Ok(schema),
            Entry(None) => Err(D::Error::custom("expected a field of a form")),
        }
    }
}

struct Field(PrimitiveSchema);

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_newtype_struct(FIELD, FieldVisitor);
        read.map(Self)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = PrimitiveSchema;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field of a form")
    }

    /// Forms are small and rare, so the cost of reading their fields twice is negligible.
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<PrimitiveSchema, D::Error> {
        let field = Value::Object(JsonObject::deserialize(deserializer)?);
        let twice =
            SeqDeserializer::<_, serde_json::Error>::new([field.clone(), field].into_iter());
        self.visit_seq(twice).map_err(D::Error::custom)
    }

    /// Reads an object, and then the same object by its kind. It is unknown if it comes only once.
    fn visit_seq<A: SeqAccess<'de>>(self, mut twice: A) -> Result<PrimitiveSchema, A::Error> {
        let object: JsonObject = twice.next_element()?.unwrap_or_default();
        let has = |key: &str| object.get(key).is_some_and(|it| !it.is_null());
        let read = if has("items") {
            let select: Option<Select<Vec<String>>> = twice.next_element()?;
            select
                .and_then(Select::<Vec<String>>::into_schema)
                .map(PrimitiveSchema::MultiSelect)
        } else if has("enum") || has("oneOf") {
            let select: Option<Select<String>> = twice.next_element()?;
            select
                .and_then(Select::<String>::into_schema)
                .map(PrimitiveSchema::SingleSelect)
        } else {
            match object.get("type").and_then(Value::as_str) {
                Some("string") => twice.next_element()?.map(PrimitiveSchema::String),
                Some("number" | "integer") => twice.next_element()?.map(PrimitiveSchema::Number),
                Some("boolean") => twice.next_element()?.map(PrimitiveSchema::Boolean),
                _ => None,
            }
        };
        Ok(read.unwrap_or(PrimitiveSchema::Unknown(object)))
    }
}
