//! Prompts: templates of conversations.
//!
//! See [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts).

use serde::{Deserialize, Serialize};

use crate::{
    meta::object::Meta,
    mrtr::responses::InputResponses,
    types::{
        annotations::{Icon, Role},
        content::ContentBlock,
        pagination::page,
    },
    values::{json::is_false, open_enum::setters, ordered_map::OrderedMap},
};

/// A prompt, as a list shows it to a client: data, without a function. The prompt that a server is given, with its handler, is
/// `oxmcp::Prompt`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it can be filled with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Pictures for user interfaces (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Prompt {
    /// A prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(Prompt {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
});

/// What a prompt can be filled with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt cannot be had without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

impl PromptArgument {
    /// An argument that may be left out.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The same, but it may not be left out.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

setters!(PromptArgument {
    /// The same with a name for people.
    with_title => title: String,
    /// The same with a description.
    with_description => description: String,
});

/// One turn of the conversation that a prompt makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// A turn.
    #[must_use]
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }

    /// A turn of the person.
    #[must_use]
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// A turn of the model.
    #[must_use]
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// The params of `prompts/get`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptParams {
    /// The name of the prompt.
    pub name: String,
    /// What to fill it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<OrderedMap<String>>,
    /// The answers to what the server asked when this request was made before (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the server gave along when it asked, as it was (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl GetPromptParams {
    /// Asks for a prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(GetPromptParams {
    /// The same with arguments.
    with_arguments => arguments: OrderedMap<String>,
});

/// The result of `prompts/get`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The conversation.
    pub messages: Vec<PromptMessage>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl GetPromptResult {
    /// A conversation.
    #[must_use]
    pub fn new(messages: impl Into<Vec<PromptMessage>>) -> Self {
        Self {
            messages: messages.into(),
            ..Self::default()
        }
    }
}

setters!(GetPromptResult {
    /// The same with a description.
    with_description => description: String,
});

page! {
    /// The result of `prompts/list`: one page.
    pub struct ListPromptsResult {
        /// The prompts of this page.
        pub prompts: Vec<Prompt>,
    }
}
