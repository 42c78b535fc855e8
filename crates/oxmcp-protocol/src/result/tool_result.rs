//! Encoder of the [result of a tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result), written by hand.
//!
//! It is the commonest of all results, and its text is what most bytes of most sessions are. Serializers look at every
//! byte of a string; [`write_string`] looks at many together.

use std::borrow::Cow;

use oxmcp_json::write_string;
use serde::Serialize;

use crate::{
    meta::object::Meta,
    result::encode::HasMeta,
    revision::{projection::project::Project, version::Revision},
    types::{content::ContentBlock, tools::CallToolResult},
};

/// A [`CallToolResult`] that is nothing but one text.
#[derive(Debug, Serialize)]
pub struct TextResult {
    content: [TextBlock; 1],
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "text")]
struct TextBlock {
    text: Cow<'static, str>,
}

impl TextResult {
    /// The result that is this text.
    #[must_use]
    pub fn new(text: Cow<'static, str>) -> Self {
        Self {
            content: [TextBlock { text }],
        }
    }
}

/// All revisions have it.
impl Project for TextResult {
    fn project(&mut self, _to: Revision) {}
}

impl HasMeta for TextResult {
    fn meta_mut(&mut self) -> Option<&mut Meta> {
        None
    }

    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let [block] = &self.content;
        out.extend_from_slice(br#"{"content":["#);
        write_text(out, &block.text);
        out.extend_from_slice(b"]}");
        Ok(())
    }
}

impl CallToolResult {
    /// Appends the result as JSON, just as its `Serialize` has it.
    ///
    /// # Errors
    /// Where it cannot be JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend_from_slice(br#"{"content":["#);
        for (index, block) in self.content.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_block(out, block)?;
        }
        out.push(b']');
        if let Some(structured) = &self.structured_content {
            out.extend_from_slice(br#","structuredContent":"#);
            out.extend_from_slice(structured.get().as_bytes());
        }
        if self.is_error {
            out.extend_from_slice(br#","isError":true"#);
        }
        if !self.meta.is_absent() {
            out.extend_from_slice(br#","_meta":"#);
            serde_json::to_writer(&mut *out, &self.meta)?;
        }
        out.push(b'}');
        Ok(())
    }
}

fn write_block(out: &mut Vec<u8>, block: &ContentBlock) -> serde_json::Result<()> {
    match block {
        ContentBlock::Text(text) if text.annotations.is_none() && text.meta.is_absent() => {
            write_text(out, &text.text);
            Ok(())
        }
        other => serde_json::to_writer(out, other),
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    write_string(out, text);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::{
        result::encode::encode_result,
        types::content::{ImageContent, TextContent},
    };

    #[test]
    fn it_is_written_as_it_is_serialized() {
        let plain = CallToolResult::text("a \"quote\"\n");
        let mut rich = CallToolResult::error("wrong");
        let mut text = TextContent::new("with meta");
        text.meta.insert("a", 1);
        rich.content.push(text.into());
        rich.content
            .push(ImageContent::new(b"png".to_vec(), "image/png").into());
        rich.structured_content = Some(to_raw_value(&[1, 2]).unwrap());
        rich.meta.insert("b", 2);
        for result in [CallToolResult::default(), plain, rich] {
            let mut out = Vec::new();
            result.write(&mut out).unwrap();
            let written = String::from_utf8(out).unwrap();
            assert_eq!(written, serde_json::to_string(&result).unwrap());
        }
    }

    fn encoded(mut result: impl Project + HasMeta, revision: Revision) -> String {
        let mut out = Vec::new();
        encode_result(&mut out, &mut result, revision, Some("{}")).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_but_text_is_written_as_a_whole_result_is() {
        for text in ["", "a \"quote\"\n"] {
            let whole = CallToolResult::text(text);
            let result = TextResult::new(text.into());
            let serialized = serde_json::to_string(&result).unwrap();
            assert_eq!(serialized, serde_json::to_string(&whole).unwrap());
            for revision in Revision::ALL {
                let result = TextResult::new(text.into());
                assert_eq!(encoded(result, revision), encoded(whole.clone(), revision));
            }
        }
    }
}
