//! Hand-written encoder of
//! [tool results](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).
//!
//! It is the most common of all results, and its text makes up most of the bytes of most sessions. Serializers examine
//! strings byte by byte; [`write_string`] examines many bytes at once.

use oxmcp_json::write_string;

use crate::types::{content::ContentBlock, tools::CallToolResult};

impl CallToolResult {
    /// Appends the result as JSON, exactly as its `Serialize` implementation writes it.
    ///
    /// # Errors
    /// If the result does not serialize to JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.reserve(self.room());
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

    /// The approximate encoded length in bytes, so that the buffer of a long result is not reallocated during writing.
    /// If the text is JSON, about every eighth byte of it is a quote that needs an escape.
    fn room(&self) -> usize {
        let texts = self.content.iter().map(|block| match block {
            ContentBlock::Text(text) => text.text.len() + text.text.len() / 4,
            _ => 0,
        });
        let structured = self.structured_content.as_ref();
        let structured = structured.map_or(0, |json| json.get().len());
        texts.sum::<usize>() + structured + 128
    }
}

fn write_block(out: &mut Vec<u8>, block: &ContentBlock) -> serde_json::Result<()> {
    match block {
        ContentBlock::Text(text) if text.annotations.is_none() && text.meta.is_absent() => {
            out.extend_from_slice(br#"{"type":"text","text":"#);
            write_string(out, &text.text);
            out.push(b'}');
            Ok(())
        }
        other => serde_json::to_writer(out, other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::types::content::{ImageContent, TextContent};

    #[test]
    fn direct_writing_equals_serialization() {
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
}
