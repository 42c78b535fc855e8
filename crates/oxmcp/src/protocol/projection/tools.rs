//! Tools and what they return.

use serde_json::value::{RawValue, to_raw_value};

use super::{
    Project,
    content::described,
    part_meta,
    structured::{input_schema, legacy_output_schema},
};
use crate::protocol::{CallToolParams, CallToolResult, ContentBlock, Revision, Tool};

impl Project for Tool {
    fn project(&mut self, to: Revision) {
        described(&mut self.title, &mut self.icons, to);
        part_meta(&mut self.meta, to);
        if let Some(schema) = input_schema(&self.input_schema) {
            self.input_schema = schema;
        }
        if !to.has_structured_content() {
            self.output_schema = None;
        } else if !to.has_any_structured_content()
            && let Some(schema) = &self.output_schema
            && let Some(schema) = legacy_output_schema(schema)
        {
            self.output_schema = Some(schema);
        }
        if !to.has_tool_annotations() {
            self.annotations = None;
        }
        if !to.has_tasks() {
            self.execution = None;
        }
    }
}

impl Project for CallToolResult {
    fn project(&mut self, to: Revision) {
        structured_content(&mut self.structured_content, &mut self.content, to);
        self.content.project(to);
    }
}

/// What a revision without structured content cannot be told in structure, it is told in words, if nothing else
/// says it.
pub(super) fn structured_content(
    structured: &mut Option<Box<RawValue>>,
    content: &mut Vec<ContentBlock>,
    to: Revision,
) {
    let Some(value) = structured else { return };
    if !to.has_structured_content() {
        if content.is_empty() {
            content.push(ContentBlock::text(value.get()));
        }
        *structured = None;
    } else if !to.has_any_structured_content() && !value.get().starts_with('{') {
        *structured = Some(wrap(value));
    }
}

fn wrap(value: &RawValue) -> Box<RawValue> {
    #[derive(serde::Serialize)]
    struct Wrapped<'a> {
        result: &'a RawValue,
    }

    to_raw_value(&Wrapped { result: value }).expect("raw JSON is always JSON")
}

impl Project for CallToolParams {
    fn project(&mut self, to: Revision) {
        if !to.has_input_responses() {
            self.input_responses = None;
            self.request_state = None;
        }
        if !to.has_tasks() {
            self.task = None;
        }
    }
}
