//! Projection of content, resources and their descriptions.

use serde_json::Value;

use crate::{
    revision::{
        projection::project::{Project, part_meta},
        version::Revision,
    },
    types::{
        annotations::{Annotations, Icon},
        content::{AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent},
        prompts::PromptMessage,
        resources::{Resource, ResourceContents, ResourceTemplate},
    },
    values::json::JsonObject,
};

impl Project for ContentBlock {
    fn project(&mut self, to: Revision) {
        match self {
            Self::Text(content) => content.project(to),
            Self::Image(content) => content.project(to),
            Self::Audio(content) if to.has_audio() => content.project(to),
            Self::Audio(content) => *self = audio_as_text(content, to).into(),
            Self::ResourceLink(link) if to.has_resource_links() => link.project(to),
            Self::ResourceLink(link) => *self = link_as_text(link, to).into(),
            Self::Resource(content) => content.project(to),
            Self::Unknown(object) => *self = unknown_as_text(object).into(),
        }
    }
}

/// Replaces audio by a text that describes it, for revisions without audio content.
pub(crate) fn audio_as_text(audio: &mut AudioContent, to: Revision) -> TextContent {
    let text = format!("[audio: {}, {} bytes]", audio.mime_type, audio.data.len());
    with_annotations(TextContent::new(text), audio.annotations.take(), to)
}

fn link_as_text(link: &mut Resource, to: Revision) -> TextContent {
    let name = link.title.as_ref().unwrap_or(&link.name);
    let mut text = if name.is_empty() || *name == link.uri {
        link.uri.clone()
    } else {
        format!("{name}: {}", link.uri)
    };
    if let Some(description) = &link.description {
        text.push('\n');
        text.push_str(description);
    }
    with_annotations(TextContent::new(text), link.annotations.take(), to)
}

pub(crate) fn unknown_as_text(object: &mut JsonObject) -> TextContent {
    TextContent::new(Value::Object(std::mem::take(object)).to_string())
}

fn with_annotations(
    mut text: TextContent,
    annotations: Option<Annotations>,
    to: Revision,
) -> TextContent {
    text.annotations = annotations;
    text.project(to);
    text
}

impl Project for TextContent {
    fn project(&mut self, to: Revision) {
        self.annotations.project(to);
        part_meta(&mut self.meta, to);
    }
}

impl Project for ImageContent {
    fn project(&mut self, to: Revision) {
        self.annotations.project(to);
        part_meta(&mut self.meta, to);
    }
}

impl Project for AudioContent {
    fn project(&mut self, to: Revision) {
        self.annotations.project(to);
        part_meta(&mut self.meta, to);
    }
}

impl Project for EmbeddedResource {
    fn project(&mut self, to: Revision) {
        self.resource.project(to);
        self.annotations.project(to);
        part_meta(&mut self.meta, to);
    }
}

impl Project for ResourceContents {
    fn project(&mut self, to: Revision) {
        part_meta(&mut self.meta, to);
    }
}

impl Project for Annotations {
    fn project(&mut self, to: Revision) {
        if !to.has_last_modified() {
            self.last_modified = None;
        }
    }
}

impl Project for PromptMessage {
    fn project(&mut self, to: Revision) {
        self.content.project(to);
    }
}

impl Project for Resource {
    fn project(&mut self, to: Revision) {
        described(&mut self.title, &mut self.icons, to);
        self.annotations.project(to);
        part_meta(&mut self.meta, to);
    }
}

impl Project for ResourceTemplate {
    fn project(&mut self, to: Revision) {
        described(&mut self.title, &mut self.icons, to);
        self.annotations.project(to);
        part_meta(&mut self.meta, to);
    }
}

/// Projects titles and icons, which later revisions added to descriptions.
pub(crate) fn described(title: &mut Option<String>, icons: &mut Vec<Icon>, to: Revision) {
    if !to.has_titles() {
        *title = None;
    }
    if !to.has_icons() {
        icons.clear();
    }
}
