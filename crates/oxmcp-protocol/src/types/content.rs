//! Content of tool results and prompts.
//!
//! See [tool results](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).

use serde::{Deserialize, Serialize};

use crate::{
    meta::object::Meta,
    types::{
        annotations::Annotations,
        resources::{Resource, ResourceContents},
    },
    values::{blob::Blob, json::JsonObject, open_enum::setters, tagged::tagged},
};

/// A block of content. `into()` converts a string to [`Text`](Self::Text).
///
/// ```
/// use oxmcp_protocol::ContentBlock;
///
/// let text = ContentBlock::from("four");
/// let image = ContentBlock::image(b"\x89PNG", "image/png");
/// # assert_eq!(text.as_text(), Some("four"));
/// # assert_eq!(image.as_text(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio (2025-03-26 and later).
    Audio(AudioContent),
    /// A link to a resource that the client can read (2025-06-18 and later).
    ResourceLink(Box<Resource>),
    /// The contents of a resource, embedded.
    Resource(EmbeddedResource),
    /// Content of a type that this version of the crate does not know, as received.
    #[serde(untagged)]
    Unknown(JsonObject),
}

impl ContentBlock {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image block.
    #[must_use]
    pub fn image(data: impl Into<Blob>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Creates an audio block.
    #[must_use]
    pub fn audio(data: impl Into<Blob>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Creates a link to a resource.
    #[must_use]
    pub fn resource_link(resource: Resource) -> Self {
        Self::ResourceLink(Box::new(resource))
    }

    /// Creates a block with the contents of a resource.
    #[must_use]
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
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

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<TextContent> for ContentBlock {
    fn from(content: TextContent) -> Self {
        Self::Text(content)
    }
}

impl From<ImageContent> for ContentBlock {
    fn from(content: ImageContent) -> Self {
        Self::Image(content)
    }
}

impl From<AudioContent> for ContentBlock {
    fn from(content: AudioContent) -> Self {
        Self::Audio(content)
    }
}

impl From<EmbeddedResource> for ContentBlock {
    fn from(content: EmbeddedResource) -> Self {
        Self::Resource(content)
    }
}

tagged!(ContentBlock by "type" with text by ContentBlock::text {
    "text" => Text,
    "image" => Image,
    "audio" => Audio,
    "resource_link" => ResourceLink,
    "resource" => Resource,
});

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// The audience, the priority and the time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl TextContent {
    /// Creates a text without annotations.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

setters!(TextContent {
    /// Sets the annotations.
    with_annotations => annotations: Annotations,
});

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes of the image.
    pub data: Blob,
    /// The MIME type of the image, for example `image/png`.
    pub mime_type: String,
    /// The audience, the priority and the time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl ImageContent {
    /// Creates an image without annotations.
    #[must_use]
    pub fn new(data: impl Into<Blob>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            ..Self::default()
        }
    }
}

setters!(ImageContent {
    /// Sets the annotations.
    with_annotations => annotations: Annotations,
});

/// Audio (2025-03-26 and later).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes of the audio.
    pub data: Blob,
    /// The MIME type of the audio, for example `audio/wav`.
    pub mime_type: String,
    /// The audience, the priority and the time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl AudioContent {
    /// Creates audio without annotations.
    #[must_use]
    pub fn new(data: impl Into<Blob>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            ..Self::default()
        }
    }
}

setters!(AudioContent {
    /// Sets the annotations.
    with_annotations => annotations: Annotations,
});

/// The contents of a resource, embedded in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents of the resource.
    pub resource: ResourceContents,
    /// The audience, the priority and the time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl EmbeddedResource {
    /// Creates contents without annotations.
    #[must_use]
    pub fn new(resource: ResourceContents) -> Self {
        Self {
            resource,
            annotations: None,
            meta: Meta::default(),
        }
    }
}

setters!(EmbeddedResource {
    /// Sets the annotations.
    with_annotations => annotations: Annotations,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> serde_json::Result<ContentBlock> {
        serde_json::from_str(text)
    }

    #[test]
    fn type_member_may_be_at_any_position() {
        let first = parse(r#"{"type":"text","text":"a","_meta":{"k":1}}"#).unwrap();
        let last = parse(r#"{"_meta":{"k":1},"text":"a","type":"text"}"#).unwrap();
        assert_eq!(first, last);
        assert_eq!(first.as_text(), Some("a"));
        let link = parse(r#"{"name":"n","type":"resource_link","uri":"a:b","size":3}"#).unwrap();
        assert!(matches!(link, ContentBlock::ResourceLink(link) if link.size == Some(3)));
    }

    #[test]
    fn unknown_content_is_preserved() {
        let text = r#"{"a":[1,{"b":null}],"type":"hologram"}"#;
        let block = parse(text).unwrap();
        assert!(matches!(block, ContentBlock::Unknown(_)));
        assert_eq!(serde_json::to_string(&block).unwrap(), text);
        assert_eq!(
            block,
            parse(r#"{"type":"hologram","a":[1,{"b":null}]}"#).unwrap()
        );
    }

    #[test]
    fn errors_name_the_missing_member() {
        for (text, problem) in [
            (r#"{"text":"a"}"#, "missing field `type`"),
            (r#"{"type":"text"}"#, "missing field `text`"),
            (r#"{"text":"a","type":"image"}"#, "missing field `data`"),
            (
                r#"{"type":"image","data":"?","mimeType":"a/b"}"#,
                "not base64",
            ),
            (
                r#"{"a":1,"type":"text","type":"text"}"#,
                "duplicate field `type`",
            ),
            ("[]", "an object with a `type`"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        // The line is that of the received text, not of the text that is rewritten with the tag first.
        let late = parse("{\n\n\"text\":1,\"type\":\"text\"}").unwrap_err();
        assert_eq!(late.line(), 3, "{late}");
    }
}
