//! Sampling: requests of a server to the model of its client.
//!
//! See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    meta::object::Meta,
    types::{
        annotations::Role,
        sampling_content::{SamplingContent, one_or_many},
        tasks::TaskMetadata,
        tools::Tool,
    },
    values::{
        json::optional_number,
        open_enum::{open_enum, setters},
    },
};

/// The params of `sampling/createMessage`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The conversation so far.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub messages: Vec<SamplingMessage>,
    /// Preferences for the choice of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt. The client may change it or leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The servers whose context to include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the response.
    pub max_tokens: u64,
    /// Texts at which the model stops.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub stop_sequences: Vec<String>,
    /// Metadata for the provider of the model: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// Tools that the model may call (2025-11-25 and later).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub tools: Vec<Tool>,
    /// Whether the model may, must or must not call tools (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The request to run the sampling as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CreateMessageParams {
    /// Creates the params for a conversation and a response of at most `max_tokens` tokens.
    #[must_use]
    pub fn new(messages: impl Into<Vec<SamplingMessage>>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into(),
            max_tokens,
            ..Self::default()
        }
    }
}

setters!(CreateMessageParams {
    /// Sets the preferences for the choice of a model.
    with_model_preferences => model_preferences: ModelPreferences,
    /// Sets the system prompt.
    with_system_prompt => system_prompt: String,
    /// Sets the sampling temperature.
    with_temperature => temperature: f64,
    /// Sets whether the model may, must or must not call tools.
    with_tool_choice => tool_choice: ToolChoice,
});

/// A message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The sender of the message.
    pub role: Role,
    /// The content of the message. In 2025-06-18 and earlier it is a single block.
    #[serde(with = "one_or_many")]
    pub content: Vec<SamplingContent>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl SamplingMessage {
    /// Creates a message with a single block of content.
    #[must_use]
    pub fn new(role: Role, content: impl Into<SamplingContent>) -> Self {
        Self {
            role,
            content: vec![content.into()],
            meta: Meta::default(),
        }
    }

    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the assistant, which is the model.
    #[must_use]
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

open_enum! {
    /// The servers whose context a model receives.
    pub enum IncludeContext {
        /// No server.
        None = "none",
        /// The server that sends the request.
        ThisServer = "thisServer",
        /// All servers that the client is connected to.
        AllServers = "allServers",
    }
}

/// Whether a model may, must or must not call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode. If it is absent, `auto` is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

setters!(ToolChoice {
    /// Sets the mode.
    with_mode => mode: ToolChoiceMode,
});

open_enum! {
    /// Whether a model may, must or must not call tools.
    pub enum ToolChoiceMode {
        /// The model may call tools.
        Auto = "auto",
        /// The model must call a tool.
        Required = "required",
        /// The model must not call tools.
        None = "none",
    }
}

/// Preferences for the choice of a model. The priorities go from 0 (not important) to 1 (most important).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Hints at suitable models, the best first.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::lenient::list"
    )]
    pub hints: Vec<ModelHint>,
    /// The priority of low cost.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub cost_priority: Option<f64>,
    /// The priority of speed.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub speed_priority: Option<f64>,
    /// The priority of capability.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub intelligence_priority: Option<f64>,
}

setters!(ModelPreferences {
    /// Sets the priority of low cost.
    with_cost_priority => cost_priority: f64,
    /// Sets the priority of speed.
    with_speed_priority => speed_priority: f64,
    /// Sets the priority of capability.
    with_intelligence_priority => intelligence_priority: f64,
});

/// A hint at a suitable model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A part of the name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// Creates a hint with a part of the name of a model.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
        }
    }
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The sender of the message: the assistant.
    pub role: Role,
    /// The content of the message. In 2025-06-18 and earlier it is a single block.
    #[serde(with = "one_or_many")]
    pub content: Vec<SamplingContent>,
    /// The name of the model that generated the message.
    pub model: String,
    /// The reason why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CreateMessageResult {
    /// Creates a message that a model generated, with a single block of content.
    #[must_use]
    pub fn new(model: impl Into<String>, content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::Assistant,
            content: vec![content.into()],
            model: model.into(),
            stop_reason: None,
            meta: Meta::default(),
        }
    }

    /// Returns the texts of the content, joined by line breaks. Blocks that are not text are left out.
    ///
    /// ```
    /// use oxmcp_protocol::CreateMessageResult;
    ///
    /// assert_eq!(CreateMessageResult::new("a-model", "Paris").to_text(), "Paris");
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().filter_map(SamplingContent::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }
}

setters!(CreateMessageResult {
    /// Sets the reason why the model stopped.
    with_stop_reason => stop_reason: StopReason,
});

open_enum! {
    /// The reason why a model stopped.
    pub enum StopReason {
        /// The model finished its turn.
        EndTurn = "endTurn",
        /// The model generated one of the stop sequences.
        StopSequence = "stopSequence",
        /// The maximum number of tokens was reached.
        MaxTokens = "maxTokens",
        /// The model requests a tool call (2025-11-25 and later).
        ToolUse = "toolUse",
    }
}

impl CreateMessageParams {
    /// Checks that the results of all tool calls follow in the next message, and that this message has no other content.
    ///
    /// # Errors
    /// If a result is missing or mixed with other content, with a description of the problem.
    pub fn check_tool_results(&self) -> Result<(), String> {
        check_tool_results(&self.messages)
    }
}

fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), String> {
    for (index, message) in messages.iter().enumerate() {
        let results: HashSet<&str> = message.content.iter().filter_map(answered).collect();
        if !results.is_empty() && message.content.iter().any(|it| answered(it).is_none()) {
            return Err(format!(
                "Tool results mixed with other content, in message {index}; put the results into a separate message"
            ));
        }
        if message.role != Role::Assistant {
            continue;
        }
        let next = messages.get(index + 1);
        let next = next.filter(|next| next.role == Role::User);
        let answers: HashSet<&str> = next
            .into_iter()
            .flat_map(|next| next.content.iter().filter_map(answered))
            .collect();
        let mut asked = message.content.iter().filter_map(asked);
        if let Some(id) = asked.find(|id| !answers.contains(id)) {
            let shown: String = id.chars().take(64).collect();
            return Err(format!(
                "Tool result missing in request: the user message after message {index} must have the result of \
                 the tool call {shown:?}"
            ));
        }
    }
    Ok(())
}

/// The id of a tool call, if the content is one.
fn asked(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolUse(tool) => Some(&tool.id),
        _ => None,
    }
}

/// The id of the tool call to which a result belongs, if the content is a result.
fn answered(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolResult(result) => Some(&result.tool_use_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sampling_content::{ToolResultContent, ToolUseContent};

    fn message(role: Role, content: &[SamplingContent]) -> SamplingMessage {
        let mut message = SamplingMessage::new(role, "");
        message.content = content.to_vec();
        message
    }

    #[test]
    fn every_requested_tool_gets_its_result_next() {
        let asks = |id: &str| ToolUseContent::new(id, "t", &()).unwrap().into();
        let answers = |id: &str| ToolResultContent::new(id, []).into();
        let text = || SamplingContent::from("a");
        let user = |content: &[SamplingContent]| message(Role::User, content);
        let model = |content: &[SamplingContent]| message(Role::Assistant, content);
        let good = [
            vec![],
            vec![user(&[text(), text()]), model(&[text()])],
            vec![
                user(&[text()]),
                model(&[text(), asks("1"), asks("2")]),
                user(&[answers("2"), answers("1")]),
                model(&[text()]),
            ],
        ];
        for messages in good {
            assert_eq!(check_tool_results(&messages), Ok(()), "{messages:?}");
        }
        let bad = [
            (vec![model(&[asks("1")])], "missing"),
            (
                vec![model(&[asks("1"), asks("2")]), user(&[answers("1")])],
                "\"2\"",
            ),
            (
                vec![model(&[asks("1")]), user(&[text()]), user(&[answers("1")])],
                "missing",
            ),
            (vec![model(&[asks("1")]), model(&[answers("1")])], "missing"),
            (
                vec![model(&[asks("1")]), user(&[answers("1"), text()])],
                "mixed",
            ),
        ];
        for (messages, wrong) in bad {
            let error = check_tool_results(&messages).unwrap_err();
            assert!(error.contains(wrong), "{error}: {messages:?}");
        }
    }
}
