//! Content of the messages of a conversation with a model, with tool calls and their results.
//!
//! See [message content constraints](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#message-content-constraints).
//!
//! See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    meta::object::Meta,
    types::content::{AudioContent, ContentBlock, ImageContent, TextContent},
    values::{
        json::{JsonObject, is_false, present},
        tagged::tagged,
    },
};

/// A block of content in a message to or from a model. `into()` converts a string to [`Text`](Self::Text).
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio (2025-03-26 and later).
    Audio(AudioContent),
    /// A tool call that the model requests (2025-11-25 and later).
    ToolUse(ToolUseContent),
    /// The result of a tool call (2025-11-25 and later).
    ToolResult(ToolResultContent),
    /// Content of a type that this version of the crate does not know, as received.
    #[serde(untagged)]
    Unknown(JsonObject),
}

impl SamplingContent {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns the text, if the block is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

/// Compares raw JSON by its text.
impl PartialEq for SamplingContent {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Image(a), Self::Image(b)) => a == b,
            (Self::Audio(a), Self::Audio(b)) => a == b,
            (Self::ToolUse(a), Self::ToolUse(b)) => a == b,
            (Self::ToolResult(a), Self::ToolResult(b)) => a == b,
            (Self::Unknown(a), Self::Unknown(b)) => a == b,
            _ => false,
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<TextContent> for SamplingContent {
    fn from(content: TextContent) -> Self {
        Self::Text(content)
    }
}

impl From<ImageContent> for SamplingContent {
    fn from(content: ImageContent) -> Self {
        Self::Image(content)
    }
}

impl From<AudioContent> for SamplingContent {
    fn from(content: AudioContent) -> Self {
        Self::Audio(content)
    }
}

impl From<ToolUseContent> for SamplingContent {
    fn from(content: ToolUseContent) -> Self {
        Self::ToolUse(content)
    }
}

impl From<ToolResultContent> for SamplingContent {
    fn from(content: ToolResultContent) -> Self {
        Self::ToolResult(content)
    }
}

tagged!(SamplingContent by "type" with text by SamplingContent::text {
    "text" => Text,
    "image" => Image,
    "audio" => Audio,
    "tool_use" => ToolUse,
    "tool_result" => ToolResult,
});

/// A tool call that a model requests (2025-11-25 and later).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// The id of the call, to which the result refers.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: an object.
    pub input: Box<RawValue>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ToolUseContent {
    /// Creates a tool call.
    ///
    /// # Errors
    /// If the input cannot be serialized as JSON, for example a map whose keys are not strings.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        input: &impl Serialize,
    ) -> serde_json::Result<Self> {
        Ok(Self {
            id: id.into(),
            name: name.into(),
            input: to_raw_value(input)?,
            meta: Meta::default(),
        })
    }
}

impl PartialEq for ToolUseContent {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, &self.name, self.input.get(), &self.meta)
            == (&other.id, &other.name, other.input.get(), &other.meta)
    }
}

/// The result of a tool call, for a model (2025-11-25 and later).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The `id` of the [`ToolUseContent`] to which this result belongs.
    pub tool_use_id: String,
    /// The output of the tool, for the model.
    #[serde(deserialize_with = "crate::lenient::list")]
    pub content: Vec<ContentBlock>,
    /// The structured output of the tool, for programs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ToolResultContent {
    /// Creates a result with this content.
    #[must_use]
    pub fn new(tool_use_id: impl Into<String>, content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            ..Self::default()
        }
    }
}

impl PartialEq for ToolResultContent {
    fn eq(&self, other: &Self) -> bool {
        let text = |content: &Self| content.structured_content.clone().map(Box::<str>::from);
        self.tool_use_id == other.tool_use_id
            && self.content == other.content
            && text(self) == text(other)
            && self.is_error == other.is_error
            && self.meta == other.meta
    }
}

/// (De)serialization of content: a single block is written by itself, several as an array. Both forms are read.
pub(crate) mod one_or_many {
    use std::fmt;

    use serde::{
        Deserialize, Deserializer, Serialize, Serializer,
        de::{
            MapAccess, SeqAccess, Visitor,
            value::{MapAccessDeserializer, SeqAccessDeserializer},
        },
    };

    use crate::{
        lenient::{ONE_OR_MANY, list},
        types::sampling_content::SamplingContent,
    };

    pub(crate) fn serialize<S: Serializer>(
        content: &[SamplingContent],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match content {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<SamplingContent>, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Vec<SamplingContent>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("content, or an array of content")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                deserializer.deserialize_any(self)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                SamplingContent::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                list(SeqAccessDeserializer::new(seq))
            }
        }

        deserializer.deserialize_newtype_struct(ONE_OR_MANY, ContentVisitor)
    }
}

#[cfg(test)]
mod tests {
    use crate::types::sampling::SamplingMessage;

    #[test]
    fn single_and_multiple_content_are_both_read() {
        let one = r#"{"role":"user","content":{"type":"text","text":"a"}}"#;
        let two = r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"n","input":{"x": 1}}]}"#;
        for text in [one, two] {
            let message: SamplingMessage = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), text);
        }
    }
}
