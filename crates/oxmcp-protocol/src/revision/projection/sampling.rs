//! Projection of sampling messages, requests and results.

use crate::{
    meta::object::Meta,
    revision::{
        projection::{
            content::{audio_as_text, unknown_as_text},
            project::{Project, part_meta},
            tools::structured_content,
        },
        version::Revision,
    },
    types::{
        content::TextContent,
        sampling::{CreateMessageParams, CreateMessageResult, SamplingMessage, StopReason},
        sampling_content::{SamplingContent, ToolResultContent, ToolUseContent},
    },
};

impl Project for CreateMessageParams {
    fn project(&mut self, to: Revision) {
        if !to.has_sampling_tools() {
            self.tools.clear();
            self.tool_choice = None;
            split(&mut self.messages);
        }
        self.tools.project(to);
        self.messages.project(to);
        if !to.has_tasks() {
            self.task = None;
        }
    }
}

/// Splits messages into one message per piece of content, for revisions that allow only one piece.
fn split(messages: &mut Vec<SamplingMessage>) {
    if messages.iter().all(|message| message.content.len() == 1) {
        return;
    }
    let pieces = std::mem::take(messages).into_iter().flat_map(|message| {
        message
            .content
            .into_iter()
            .map(move |piece| SamplingMessage::new(message.role, piece))
    });
    messages.extend(pieces);
}

impl Project for SamplingMessage {
    fn project(&mut self, to: Revision) {
        self.content.project(to);
        if !to.has_sampling_message_meta() {
            self.meta = Meta::default();
        }
    }
}

impl Project for CreateMessageResult {
    fn project(&mut self, to: Revision) {
        self.content.project(to);
        if !to.has_sampling_tools() {
            join(&mut self.content);
            if self.stop_reason == Some(StopReason::ToolUse) {
                self.stop_reason = Some(StopReason::EndTurn);
            }
        }
    }
}

/// Joins the pieces of a result to a single text, for revisions that allow only one piece; pieces that are not text
/// are described in it. A single piece stays unchanged.
fn join(content: &mut Vec<SamplingContent>) {
    if content.len() == 1 {
        return;
    }
    let texts: Vec<String> = content
        .drain(..)
        .map(|piece| match piece {
            SamplingContent::Text(text) => text.text,
            SamplingContent::Image(image) => {
                describe_dropped("image", &image.mime_type, image.data.len())
            }
            SamplingContent::Audio(audio) => {
                describe_dropped("audio", &audio.mime_type, audio.data.len())
            }
            other => as_json(&other),
        })
        .collect();
    content.push(SamplingContent::text(texts.join("\n")));
}

fn describe_dropped(kind: &str, mime_type: &str, bytes: usize) -> String {
    format!("[{kind}: {mime_type}, {bytes} bytes]")
}

fn as_json(content: &SamplingContent) -> String {
    serde_json::to_string(content).expect("content always serializes to JSON")
}

impl Project for SamplingContent {
    fn project(&mut self, to: Revision) {
        match self {
            Self::Text(content) => content.project(to),
            Self::Image(content) => content.project(to),
            Self::Audio(content) if to.has_audio() => content.project(to),
            Self::Audio(content) => *self = audio_as_text(content, to).into(),
            Self::ToolUse(content) if to.has_sampling_tools() => content.project(to),
            Self::ToolResult(content) if to.has_sampling_tools() => content.project(to),
            Self::ToolUse(content) => *self = use_as_text(content).into(),
            Self::ToolResult(content) => *self = result_as_text(content).into(),
            Self::Unknown(object) => *self = unknown_as_text(object).into(),
        }
    }
}

impl Project for ToolUseContent {
    fn project(&mut self, to: Revision) {
        part_meta(&mut self.meta, to);
    }
}

impl Project for ToolResultContent {
    fn project(&mut self, to: Revision) {
        let _ = structured_content(&mut self.structured_content, &mut self.content, to);
        self.content.project(to);
        part_meta(&mut self.meta, to);
    }
}

fn use_as_text(content: &ToolUseContent) -> TextContent {
    TextContent::new(format!("{}({})", content.name, content.input.get()))
}

fn result_as_text(content: &mut ToolResultContent) -> TextContent {
    content.meta = Meta::default();
    let texts: Vec<String> = content
        .content
        .iter()
        .map(|block| match block.as_text() {
            Some(text) => text.to_owned(),
            None => serde_json::to_string(block).expect("content is always JSON"),
        })
        .collect();
    TextContent::new(texts.join("\n"))
}
