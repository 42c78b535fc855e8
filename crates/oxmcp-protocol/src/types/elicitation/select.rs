//! Choice fields of a form, in the encodings of all revisions.
//!
//! See [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).

use serde::{Deserialize, Serialize};

use crate::values::open_enum::setters;

/// A field for a choice of one of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleSelectSchema {
    /// Its name, for people.
    pub title: Option<String>,
    /// The meaning of the field.
    pub description: Option<String>,
    /// The values to choose from.
    pub options: EnumOptions,
    /// The default value (2025-11-25 and later).
    pub default: Option<String>,
}

impl SingleSelectSchema {
    /// Creates a choice of one of these values.
    #[must_use]
    pub fn new(options: EnumOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

setters!(SingleSelectSchema {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the default value.
    with_default => default: String,
});

/// A field for a choice of several values (2025-11-25 and later).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiSelectSchema {
    /// Its name, for people.
    pub title: Option<String>,
    /// The meaning of the field.
    pub description: Option<String>,
    /// The minimum number of choices.
    pub min_items: Option<u64>,
    /// The maximum number of choices.
    pub max_items: Option<u64>,
    /// The values to choose from.
    pub options: EnumOptions,
    /// The default values.
    pub default: Option<Vec<String>>,
}

impl MultiSelectSchema {
    /// Creates a choice of several of these values.
    #[must_use]
    pub fn new(options: EnumOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

setters!(MultiSelectSchema {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
    /// Sets the minimum number of choices.
    with_min_items => min_items: u64,
    /// Sets the maximum number of choices.
    with_max_items => max_items: u64,
    /// Sets the default values.
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
    /// Values with titles, in the encoding of 2025-06-18 and earlier.
    Named {
        /// The values.
        values: Vec<String>,
        /// Their titles, in the same order.
        names: Vec<String>,
    },
}

impl EnumOptions {
    /// Creates options without titles.
    #[must_use]
    pub fn untitled(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Untitled(values.into_iter().map(Into::into).collect())
    }

    /// Creates options with titles, from pairs of a value and its title.
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

    /// Returns the values.
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
    /// The title that users see.
    pub title: String,
}

impl EnumOption {
    /// Creates a value and its title.
    #[must_use]
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            title: title.into(),
        }
    }
}

/// A choice field as it is encoded, with the members of all encodings. `D` is the type of its default: a string, or a list of them.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Select<D> {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<D>,
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

impl Select<String> {
    pub(crate) fn single(schema: &SingleSelectSchema) -> Self {
        let mut select = Self {
            r#type: "string".into(),
            title: schema.title.clone(),
            description: schema.description.clone(),
            default: schema.default.clone(),
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

    /// The field, if its members belong together.
    pub(crate) fn into_schema(self) -> Option<SingleSelectSchema> {
        let options = match (self.r#enum, self.enum_names, self.one_of) {
            (Some(values), Some(names), None) => EnumOptions::Named { values, names },
            (Some(values), None, None) => EnumOptions::Untitled(values),
            (None, None, Some(options)) => EnumOptions::Titled(options),
            _ => return None,
        };
        Some(SingleSelectSchema {
            title: self.title,
            description: self.description,
            options,
            default: self.default,
        })
    }
}

impl Select<Vec<String>> {
    pub(crate) fn multi(schema: &MultiSelectSchema) -> Self {
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
            default: schema.default.clone(),
            ..Self::default()
        }
    }

    /// The field, if its members belong together.
    pub(crate) fn into_schema(self) -> Option<MultiSelectSchema> {
        Some(MultiSelectSchema {
            title: self.title,
            description: self.description,
            min_items: self.min_items,
            max_items: self.max_items,
            options: self.items?.options()?,
            default: self.default,
        })
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
