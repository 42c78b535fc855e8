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
    /// What the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument, and what was typed of it.
    pub argument: CompletionArgument,
    /// What is already settled (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Completes an argument of a prompt or a resource template.
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

    /// The same, with one more argument that has its value.
    #[must_use]
    pub fn settled(mut self, argument: impl Into<String>, value: impl Into<String>) -> Self {
        let context = self.context.get_or_insert_default();
        let arguments = context.arguments.get_or_insert_default();
        arguments.insert(argument, value.into());
        self
    }
}

setters!(CompleteParams {
    /// The same with what is already settled.
    with_context => context: CompletionContext,
});

/// What an argument belongs to.
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
    /// Something that this version of the crate does not know, as it came.
    #[serde(untagged)]
    Unknown(JsonObject),
}

impl CompletionReference {
    /// A prompt, by its name.
    #[must_use]
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(PromptReference {
            name: name.into(),
            title: None,
        })
    }

    /// A resource template, by its pattern.
    #[must_use]
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(ResourceTemplateReference { uri: uri.into() })
    }

    /// The name of the prompt, where it is one.
    #[must_use]
    pub fn prompt_name(&self) -> Option<&str> {
        match self {
            Self::Prompt(prompt) => Some(&prompt.name),
            Self::Resource(_) | Self::Unknown(_) => None,
        }
    }

    /// The pattern of the resource template, where it is one.
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
    /// Its name for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A resource template, by its pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceTemplateReference {
    /// The pattern, or a URI.
    pub uri: String,
}

/// An argument that is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// What was typed of it.
    pub value: String,
}

/// What is already settled while an argument is typed (2025-06-18 and later).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// The arguments that have their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<OrderedMap<String>>,
}

setters!(CompletionContext {
    /// The same with the arguments that have their values.
    with_arguments => arguments: OrderedMap<String>,
});

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// What the argument could be.
    pub completion: Completion,
    /// What travels beside.
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

/// What an argument could be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The best values, at most 100: when it is sent, what is beyond them is cut off.
    pub values: Vec<String>,
    /// How many there are in all, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than `values`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_more: bool,
}

impl Completion {
    /// How many values one result may hold.
    pub const MAX_VALUES: usize = 100;

    /// These values and no others.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}
