//! Completion of arguments while they are typed.
//!
//! See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).

use serde::{Deserialize, Serialize};

use crate::{
    meta::object::Meta,
    values::{
        json::{JsonObject, is_false},
        open_enum::setters,
        ordered_map::OrderedMap,
        tagged::tagged,
    },
};

/// The params of `completion/complete`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt or the resource template that the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument, with the text that was typed so far.
    pub argument: CompletionArgument,
    /// The arguments that already have values (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Creates the params for an argument of a prompt or a resource template.
    #[must_use]
    pub fn new(
        reference: CompletionReference,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self {
            reference,
            argument: CompletionArgument {
                name: name.into(),
                value: value.into(),
            },
            context: None,
            meta: Meta::default(),
        }
    }

    /// Adds an argument that already has a value.
    #[must_use]
    pub fn resolved(mut self, argument: impl Into<String>, value: impl Into<String>) -> Self {
        let context = self.context.get_or_insert_default();
        let arguments = context.arguments.get_or_insert_default();
        arguments.insert(argument, value.into());
        self
    }
}

setters!(CompleteParams {
    /// Sets the arguments that already have values.
    with_context => context: CompletionContext,
});

/// The prompt or the resource template that an argument belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference),
    /// A reference of a type that this version of the crate does not know, as received.
    #[serde(untagged)]
    Unknown(JsonObject),
}

impl CompletionReference {
    /// Creates a reference to a prompt, by its name.
    #[must_use]
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(PromptReference {
            name: name.into(),
            title: None,
        })
    }

    /// Creates a reference to a resource template, by its URI template.
    #[must_use]
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(ResourceTemplateReference { uri: uri.into() })
    }

    /// Returns the name of the prompt, if the reference is to a prompt.
    #[must_use]
    pub fn prompt_name(&self) -> Option<&str> {
        match self {
            Self::Prompt(prompt) => Some(&prompt.name),
            Self::Resource(_) | Self::Unknown(_) => None,
        }
    }

    /// Returns the URI template, if the reference is to a resource template.
    #[must_use]
    pub fn template(&self) -> Option<&str> {
        match self {
            Self::Resource(template) => Some(&template.uri),
            Self::Prompt(_) | Self::Unknown(_) => None,
        }
    }
}

tagged!(CompletionReference by "type" {
    "ref/prompt" => Prompt,
    "ref/resource" => Resource,
});

/// A prompt, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReference {
    /// The name of the prompt.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A resource template, by its URI template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceTemplateReference {
    /// The URI template, or a URI.
    pub uri: String,
}

/// An argument that is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// The text that was typed so far.
    pub value: String,
}

/// The arguments that already have values while another one is typed (2025-06-18 and later).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// The arguments that already have values, by their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<OrderedMap<String>>,
}

setters!(CompletionContext {
    /// Sets the arguments that already have values.
    with_arguments => arguments: OrderedMap<String>,
});

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggested values.
    pub completion: Completion,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl From<Completion> for CompleteResult {
    fn from(completion: Completion) -> Self {
        Self {
            completion,
            meta: Meta::default(),
        }
    }
}

/// The values that are suggested for an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The best values, at most 100: further values are cut off when the result is sent.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub values: Vec<String>,
    /// The number of all values, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more values than `values` holds.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_more: bool,
}

impl Completion {
    /// The maximum number of values in a result.
    pub const MAX_VALUES: usize = 100;

    /// Creates a completion with these values and no further ones.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}
