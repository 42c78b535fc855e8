//! Sampling: a server asks the client's model.
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
    pub messages: Vec<SamplingMessage>,
    /// What kind of model is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What the model is told beforehand. The client may change it or leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which servers' context to include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely the model speaks.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub temperature: Option<f64>,
    /// How many tokens the answer may have at most.
    pub max_tokens: u64,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// What the model's provider should get along: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// Tools that the model may ask for (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether the model may, must or must not ask for tools (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks for it to run as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CreateMessageParams {
    /// Asks for an answer of at most `max_tokens` tokens to a conversation.
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
    /// The same with preferences for a model.
    with_model_preferences => model_preferences: ModelPreferences,
    /// The same with a system prompt.
    with_system_prompt => system_prompt: String,
    /// The same with a temperature.
    with_temperature => temperature: f64,
    /// The same with a choice about tools.
    with_tool_choice => tool_choice: ToolChoice,
});

/// One turn of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said. Until 2025-06-18 it is one piece.
    #[serde(with = "one_or_many")]
    pub content: Vec<SamplingContent>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl SamplingMessage {
    /// A turn of one piece.
    #[must_use]
    pub fn new(role: Role, content: impl Into<SamplingContent>) -> Self {
        Self {
            role,
            content: vec![content.into()],
            meta: Meta::default(),
        }
    }

    /// A turn of the person.
    #[must_use]
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::User, content)
    }

    /// A turn of the model.
    #[must_use]
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

open_enum! {
    /// Which servers' context a model is given.
    pub enum IncludeContext {
        /// No server's.
        None = "none",
        /// The one's that asks.
        ThisServer = "thisServer",
        /// Every server's that the client is connected to.
        AllServers = "allServers",
    }
}

/// Whether a model may, must or must not ask for tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// Which of them. Without it, `auto` is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

setters!(ToolChoice {
    /// The same with a mode.
    with_mode => mode: ToolChoiceMode,
});

open_enum! {
    /// Whether a model may, must or must not ask for tools.
    pub enum ToolChoiceMode {
        /// It may.
        Auto = "auto",
        /// It must.
        Required = "required",
        /// It must not.
        None = "none",
    }
}

/// What kind of model is wanted. The numbers go from 0 (does not matter) to 1 (matters most).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Models that would do, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// How much low cost matters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub cost_priority: Option<f64>,
    /// How much speed matters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub speed_priority: Option<f64>,
    /// How much capability matters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_number"
    )]
    pub intelligence_priority: Option<f64>,
}

setters!(ModelPreferences {
    /// The same, saying how much low cost matters.
    with_cost_priority => cost_priority: f64,
    /// The same, saying how much speed matters.
    with_speed_priority => speed_priority: f64,
    /// The same, saying how much capability matters.
    with_intelligence_priority => intelligence_priority: f64,
});

/// A model that would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// A model by a part of its name.
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
    /// Who speaks: the assistant.
    pub role: Role,
    /// What is said. Until 2025-06-18 it is one piece.
    #[serde(with = "one_or_many")]
    pub content: Vec<SamplingContent>,
    /// The model that said it.
    pub model: String,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl CreateMessageResult {
    /// What a model said.
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

    /// The text of all that was said, each piece on lines of its own. What is no text is left out.
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
    /// The same, saying why the model stopped.
    with_stop_reason => stop_reason: StopReason,
});

open_enum! {
    /// Why a model stopped.
    pub enum StopReason {
        /// It had said all.
        EndTurn = "endTurn",
        /// It said one of the stop sequences.
        StopSequence = "stopSequence",
        /// It had no tokens left.
        MaxTokens = "maxTokens",
        /// It asks for a tool (2025-11-25 and later).
        ToolUse = "toolUse",
    }
}

impl CreateMessageParams {
    /// Checks that all tools that the model asked for have answered, in the message right after.
    ///
    /// # Errors
    /// Says what is missing, or out of place.
    pub fn check_tool_results(&self) -> Result<(), String> {
        check_tool_results(&self.messages)
    }
}

fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), String> {
    for (index, message) in messages.iter().enumerate() {
        let results: HashSet<&str> = message.content.iter().filter_map(answered).collect();
        if !results.is_empty() && message.content.iter().any(|it| answered(it).is_none()) {
            return Err(format!(
                "Tool results mixed with other content, in message {index}: results stand alone"
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
                "Tool result missing in request: message {index} asks for a tool with the id {shown:?}, \
                 and the user message after it does not answer it"
            ));
        }
    }
    Ok(())
}

/// The id under which a tool is asked for.
fn asked(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolUse(tool) => Some(&tool.id),
        _ => None,
    }
}

/// The id that a result answers.
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
    fn every_tool_that_is_asked_for_answers_at_once_and_alone() {
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
