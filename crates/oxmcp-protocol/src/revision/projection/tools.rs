//! Projection of tools and their results.

use serde_json::value::{RawValue, to_raw_value};

use crate::{
    revision::{
        projection::{
            content::described,
            project::{Project, part_meta},
            structured::{input_schema, legacy_output_schema},
        },
        version::Revision,
    },
    types::{
        content::ContentBlock,
        tools::{CallToolParams, CallToolResult, Tool},
    },
};

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
        if structured_content(&mut self.structured_content, &mut self.content, to) {
            self.meta.mark_wrapped();
        }
        self.content.project(to);
    }
}

/// Fits structured content to a revision. For revisions without structured content, it is added as text if
/// there is no other content. Returns whether it was wrapped in an object, because the revision allows only
/// objects.
pub(crate) fn structured_content(
    structured: &mut Option<Box<RawValue>>,
    content: &mut Vec<ContentBlock>,
    to: Revision,
) -> bool {
    let Some(value) = structured else {
        return false;
    };
    if !to.has_structured_content() {
        if content.is_empty() {
            content.push(ContentBlock::text(value.get()));
        }
        *structured = None;
    } else if !to.has_any_structured_content() && !value.get().starts_with('{') {
        *structured = Some(wrap(value));
        return true;
    }
    false
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::{resources::Resource, tools::ToolAnnotations};

    fn sent<T: Project + serde::Serialize>(mut value: T, to: Revision) -> String {
        value.project(to);
        serde_json::to_string(&value).unwrap()
    }

    #[test]
    fn content_is_projected_for_each_revision() {
        let link = || ContentBlock::resource_link(Resource::new("a:b", "n").with_description("d"));
        let text = r#"{"type":"text","text":"n: a:b\nd"}"#;
        assert_eq!(sent(link(), Revision::V2025_03_26), text);
        assert!(sent(link(), Revision::V2025_06_18).starts_with(r#"{"type":"resource_link""#));
        let audio = || ContentBlock::audio(b"abc", "audio/wav");
        let text = r#"{"type":"text","text":"[audio: audio/wav, 3 bytes]"}"#;
        assert_eq!(sent(audio(), Revision::V2024_11_05), text);
        assert!(sent(audio(), Revision::V2025_03_26).contains(r#""data":"YWJj""#));
        let unknown: ContentBlock = serde_json::from_str(r#"{"type":"x"}"#).unwrap();
        let text = r#"{"type":"text","text":"{\"type\":\"x\"}"}"#;
        assert_eq!(sent(unknown, Revision::LATEST), text);
    }

    #[test]
    fn structured_content_is_projected_for_each_revision() {
        let number = || CallToolResult::structured(&5).unwrap();
        let content = r#""content":[{"type":"text","text":"5"}]"#;
        for (to, structured) in [
            (Revision::V2025_03_26, ""),
            (
                Revision::V2025_11_25,
                r#","structuredContent":{"result":5},"_meta":{"dev.oxmcp/wrapped":true}"#,
            ),
            (Revision::V2026_07_28, r#","structuredContent":5"#),
        ] {
            assert_eq!(
                sent(number(), to),
                format!("{{{content}{structured}}}"),
                "{to}"
            );
        }
        let mut silent = number();
        silent.content.clear();
        assert_eq!(
            sent(silent, Revision::V2024_11_05),
            format!("{{{content}}}")
        );
    }

    #[test]
    fn wrapped_marker_is_added_to_other_metadata() {
        let mut result = CallToolResult::structured(&[1]).unwrap();
        result.meta.insert("com.example/cost", 3);
        assert!(sent(result, Revision::V2025_06_18).ends_with(
            r#""structuredContent":{"result":[1]},"_meta":{"com.example/cost":3,"dev.oxmcp/wrapped":true}}"#
        ));
        // An object of the tool itself is sent unchanged.
        let own = CallToolResult::structured(&json!({"result": [1]})).unwrap();
        assert!(
            sent(own, Revision::V2025_06_18).ends_with(r#""structuredContent":{"result":[1]}}"#)
        );
    }

    #[test]
    fn tools_are_projected_for_each_revision() {
        let tool = Tool::new("n", json!({"type": "object"}))
            .with_title("N")
            .with_annotations(ToolAnnotations::default())
            .with_output_schema(json!({"type": "number"}));
        let first = r#"{"name":"n","inputSchema":{"type":"object"}}"#;
        assert_eq!(sent(tool.clone(), Revision::V2024_11_05), first);
        assert_eq!(
            sent(tool.clone(), Revision::V2026_07_28),
            serde_json::to_string(&tool).unwrap()
        );
    }
}
