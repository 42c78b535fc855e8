//! The forms that elicitation can show: a small part of JSON Schema.
//!
//! See [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    JsonObject, OrderedMap,
    json::optional_number,
    open_enum::{open_enum, setters},
};

/// The fields of a form, in the order in which they are shown.
///
/// ```
/// use oxmcp::protocol::{BooleanSchema, ElicitSchema, StringSchema};
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
}

impl ElicitSchema {
    /// A form without fields.
    #[must_use]
    pub fn new() -> Self {
        Self {
            dialect: None,
            properties: OrderedMap::new(),
            required: Vec::new(),
        }
    }

    /// The same with one more field, which must be filled in.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        if !self.required.contains(&name) {
            self.required.push(name.clone());
        }
        self.properties.insert(name, schema.into());
        self
    }

    /// The same with one more field, which may be left empty.
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
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several values.
    SingleSelect(SingleSelectSchema),
    /// Some of several values (2025-11-25 and later).
    MultiSelect(MultiSelectSchema),
    /// A field that this version of the crate does not know, as it came.
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
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many characters it has at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// How many characters it has at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// What kind of text it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// What stands there at first (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

setters!(StringSchema {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
    /// The same with a least number of characters.
    with_min_length => min_length: u64,
    /// The same with a greatest number of characters.
    with_max_length => max_length: u64,
    /// The same with a format.
    with_format => format: StringFormat,
    /// The same with a default.
    with_default => default: String,
});

open_enum! {
    /// What kind of text a field takes.
    pub enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A day: `2026-07-28`.
        Date = "date",
        /// A moment: `2026-07-28T12:00:00Z`.
        DateTime = "date-time",
    }
}

/// A field for a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NumberSchema {
    /// Whether it is whole.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub minimum: Option<f64>,
    /// The greatest value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub maximum: Option<f64>,
    /// What stands there at first (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub default: Option<f64>,
}

impl NumberSchema {
    /// A field for a whole number.
    #[must_use]
    pub fn integer() -> Self {
        Self {
            kind: NumberKind::Integer,
            ..Self::default()
        }
    }
}

setters!(NumberSchema {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
    /// The same with a least value.
    with_minimum => minimum: f64,
    /// The same with a greatest value.
    with_maximum => maximum: f64,
    /// The same with a default.
    with_default => default: f64,
});

/// Whether a number is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberKind {
    /// It need not be.
    #[default]
    Number,
    /// It is.
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
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What stands there at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

setters!(BooleanSchema {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
    /// The same with a default.
    with_default => default: bool,
});

/// A field for one of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleSelectSchema {
    /// Its name, for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// The values.
    pub options: EnumOptions,
    /// What is chosen at first (2025-11-25 and later).
    pub default: Option<String>,
}

impl SingleSelectSchema {
    /// A choice of one.
    #[must_use]
    pub fn new(options: EnumOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

setters!(SingleSelectSchema {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
    /// The same with a default.
    with_default => default: String,
});

/// A field for some of several values (2025-11-25 and later).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiSelectSchema {
    /// Its name, for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// How many must be chosen at least.
    pub min_items: Option<u64>,
    /// How many may be chosen at most.
    pub max_items: Option<u64>,
    /// The values.
    pub options: EnumOptions,
    /// What is chosen at first.
    pub default: Option<Vec<String>>,
}

impl MultiSelectSchema {
    /// A choice of some.
    #[must_use]
    pub fn new(options: EnumOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

setters!(MultiSelectSchema {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
    /// The same with a least number of choices.
    with_min_items => min_items: u64,
    /// The same with a greatest number of choices.
    with_max_items => max_items: u64,
    /// The same with a default.
    with_default => default: Vec<String>,
});

/// The values that a user can choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnumOptions {
    /// Values that are shown as they are.
    Untitled(Vec<String>),
    /// Values with titles (2025-11-25 and later).
    Titled(Vec<EnumOption>),
    /// Values with titles, as they were written until 2025-06-18.
    Named {
        /// The values.
        values: Vec<String>,
        /// Their titles, in the same order.
        names: Vec<String>,
    },
}

impl EnumOptions {
    /// Values that are shown as they are.
    #[must_use]
    pub fn untitled(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Untitled(values.into_iter().map(Into::into).collect())
    }

    /// Values with titles: pairs of a value and its title.
    #[must_use]
    pub fn titled(
        options: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let option = |(value, title)| EnumOption::new(value, title);
        Self::Titled(
            options
                .into_iter()
                .map(|(value, title)| option((value.into(), title.into())))
                .collect(),
        )
    }

    /// The values.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        let (plain, titled): (&[String], &[EnumOption]) = match self {
            Self::Untitled(values) | Self::Named { values, .. } => (values, &[]),
            Self::Titled(options) => (&[], options),
        };
        let titled = titled.iter().map(|option| &*option.value);
        plain.iter().map(String::as_str).chain(titled)
    }
}

impl Default for EnumOptions {
    fn default() -> Self {
        Self::Untitled(Vec::new())
    }
}

/// A value with a title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EnumOption {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// What people see.
    pub title: String,
}

impl EnumOption {
    /// A value and its title.
    #[must_use]
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            title: title.into(),
        }
    }
}

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
        let object = JsonObject::deserialize(deserializer)?;
        Ok(read(&Value::Object(object.clone())).unwrap_or(Self::Unknown(object)))
    }
}

/// What kind of field it is. Forms are small and rare: reading them twice costs nothing that matters.
fn read(value: &Value) -> serde_json::Result<PrimitiveSchema> {
    let is_select = ["enum", "oneOf", "items"]
        .iter()
        .any(|key| value.get(key).is_some());
    if is_select {
        return Select::deserialize(value)?
            .into_schema()
            .ok_or_else(|| serde::de::Error::custom("not a choice that is known"));
    }
    match value.get("type").and_then(Value::as_str) {
        Some("string") => StringSchema::deserialize(value).map(PrimitiveSchema::String),
        Some("number" | "integer") => NumberSchema::deserialize(value).map(PrimitiveSchema::Number),
        Some("boolean") => BooleanSchema::deserialize(value).map(PrimitiveSchema::Boolean),
        _ => Err(serde::de::Error::custom("not a field that is known")),
    }
}

/// All forms that a choice takes on the wire.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Select {
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#enum: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enum_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<EnumOption>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Items {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#enum: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any_of: Option<Vec<EnumOption>>,
}

impl Select {
    fn single(schema: &SingleSelectSchema) -> Self {
        let mut select = Self {
            r#type: "string".into(),
            title: schema.title.clone(),
            description: schema.description.clone(),
            default: schema.default.clone().map(Value::from),
            ..Self::default()
        };
        match schema.options.clone() {
            EnumOptions::Untitled(values) => select.r#enum = Some(values),
            EnumOptions::Titled(options) => select.one_of = Some(options),
            EnumOptions::Named { values, names } => {
                select.r#enum = Some(values);
                select.enum_names = Some(names);
            }
        }
        select
    }

    fn multi(schema: &MultiSelectSchema) -> Self {
        let items = match schema.options.clone() {
            EnumOptions::Untitled(values) => Items::of(values),
            EnumOptions::Titled(options) => Items {
                any_of: Some(options),
                ..Items::default()
            },
            EnumOptions::Named { values, names } => {
                let pairs = values.into_iter().zip(names);
                Items {
                    any_of: Some(pairs.map(|(v, n)| EnumOption::new(v, n)).collect()),
                    ..Items::default()
                }
            }
        };
        Self {
            r#type: "array".into(),
            title: schema.title.clone(),
            description: schema.description.clone(),
            min_items: schema.min_items,
            max_items: schema.max_items,
            items: Some(items),
            default: schema.default.clone().map(Value::from),
            ..Self::default()
        }
    }

    fn into_schema(self) -> Option<PrimitiveSchema> {
        let (title, description) = (self.title, self.description);
        if let Some(items) = self.items {
            return Some(PrimitiveSchema::MultiSelect(MultiSelectSchema {
                title,
                description,
                min_items: self.min_items,
                max_items: self.max_items,
                options: items.options()?,
                default: self.default.map(strings).transpose().ok()?,
            }));
        }
        let options = match (self.r#enum, self.enum_names, self.one_of) {
            (Some(values), Some(names), None) => EnumOptions::Named { values, names },
            (Some(values), None, None) => EnumOptions::Untitled(values),
            (None, None, Some(options)) => EnumOptions::Titled(options),
            _ => return None,
        };
        let default = match self.default {
            Some(Value::String(default)) => Some(default),
            Some(_) => return None,
            None => None,
        };
        Some(PrimitiveSchema::SingleSelect(SingleSelectSchema {
            title,
            description,
            options,
            default,
        }))
    }
}

impl Items {
    fn of(values: Vec<String>) -> Self {
        Self {
            r#type: Some("string".into()),
            r#enum: Some(values),
            any_of: None,
        }
    }

    fn options(self) -> Option<EnumOptions> {
        match (self.r#enum, self.any_of) {
            (Some(values), None) => Some(EnumOptions::Untitled(values)),
            (None, Some(options)) => Some(EnumOptions::Titled(options)),
            _ => None,
        }
    }
}

fn strings(value: Value) -> serde_json::Result<Vec<String>> {
    Vec::deserialize(value)
}
