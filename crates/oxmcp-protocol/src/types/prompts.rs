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

/// A prompt as an entry of a listing, without a handler. The prompt that is registered with a server, with its handler, is
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
    /// The purpose of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments of the prompt.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub arguments: Vec<PromptArgument>,
    /// Icons for user interfaces (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub icons: Vec<Icon>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl Prompt {
    /// Creates a prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(Prompt {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
});

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The meaning of the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the argument must be given.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

impl PromptArgument {
    /// Creates an argument that may be left out.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Makes the argument required.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

setters!(PromptArgument {
    /// Sets the title, the name for people.
    with_title => title: String,
    /// Sets the description.
    with_description => description: String,
});

/// A message of the conversation that a prompt produces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptMessage {
    /// The sender of the message.
    pub role: Role,
    /// The content of the message.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// Creates a message with a role and its content.
    #[must_use]
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }

    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the assistant, which is the model.
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
    /// The arguments of the prompt, by their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<OrderedMap<String>>,
    /// The responses to the server's input requests, if this request is a retry (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state that the server sent with its input requests, unchanged, if this request is a retry (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl GetPromptParams {
    /// Creates the params for a prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(GetPromptParams {
    /// Sets the arguments.
    with_arguments => arguments: OrderedMap<String>,
});

/// The result of `prompts/get`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// The purpose of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages of the conversation.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub messages: Vec<PromptMessage>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl GetPromptResult {
    /// Creates a result with these messages.
    #[must_use]
    pub fn new(messages: impl Into<Vec<PromptMessage>>) -> Self {
        Self {
            messages: messages.into(),
            ..Self::default()
        }
    }
}

setters!(GetPromptResult {
    /// Sets the description.
    with_description => description: String,
});

page! {
    /// The result of `prompts/list`: one page.
    pub struct ListPromptsResult {
        /// The prompts of this page.
        pub prompts: Vec<Prompt>,
    }
}
