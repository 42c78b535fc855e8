//! Writing and reading the [result of a tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result) by hand.
//!
//! It is the commonest of all results, and its text is what most bytes of most sessions are. Serializers look at every
//! byte of a string; [`write_string`] looks at many together.

use super::{CallToolResult, ContentBlock};
use crate::json::{Text, write_string};

impl CallToolResult {
    /// Reads what most results are: text, which may be structured as well, and nothing beside it. `None` where there is
    /// more to it, or something wrong with it: then `Deserialize` tells.
    pub(crate) fn read_plain(result: Text<'_>) -> Option<Self> {
        let mut read = Self::default();
        let mut seen = 0_u8;
        if !result.is_object() {
            return None;
        }
        for (key, value) in result.members() {
            let member = match &*key.as_str()? {
                "content" => {
                    read.content = read_texts(value)?;
                    1
                }
                "structuredContent" => {
                    read.structured_content = Some(value.to_raw());
                    2
                }
                "isError" => {
                    read.is_error = value.parse().ok()?;
                    4
                }
                "_meta" => return None,
                _ => 0,
            };
            if seen & member != 0 {
                return None;
            }
            seen |= member;
        }
        Some(read)
    }

    /// Appends the result as JSON, just as its `Serialize` has it.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
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

fn read_texts(content: Text<'_>) -> Option<Vec<ContentBlock>> {
    if !content.get().starts_with('[') {
        return None;
    }
    let mut blocks = Vec::with_capacity(1);
    for block in content.items() {
        blocks.push(ContentBlock::text(read_text(block)?));
    }
    Some(blocks)
}

/// The text of a block that has nothing but its type and a text.
fn read_text(block: Text<'_>) -> Option<String> {
    let mut members = block.is_object().then(|| block.members())?;
    let (mut is_text, mut text) = (false, None);
    for _ in 0..2 {
        let (key, value) = members.next()?;
        match &*key.as_str()? {
            "type" if value.is_str("text") => is_text = true,
            "text" => text = Some(value.as_str()?.into_owned()),
            _ => return None,
        }
    }
    (is_text && members.next().is_none()).then_some(text?)
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
    use proptest::{collection, prelude::*, sample};
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::protocol::{ImageContent, TextContent};

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

    /// A JSON value of each kind, and pieces of tool results.
    fn a_value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            sample::select(vec![
                "null",
                "true",
                "false",
                "1",
                "[]",
                "{}",
                r#""text""#,
                r#""a\u0041""#,
                r#""\ud800""#
            ])
            .prop_map(str::to_owned),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let members =
                (a_key(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
            let text = inner
                .clone()
                .prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#));
            prop_oneof![
                collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(" ,"))),
                collection::vec(members, 0..3).prop_map(|it| format!("{{{}}}", it.join(", "))),
                collection::vec(text, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            ]
        })
    }

    fn a_key() -> impl Strategy<Value = &'static str> {
        sample::select(vec![
            r#""content""#,
            r#""type""#,
            r#""text""#,
            r#""isError""#,
            r#""structuredContent""#,
            r#""_meta""#,
            r#""annotations""#,
            r#""resultType""#,
            r#""conten\u0074""#,
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn plain_results_are_read_as_they_are_deserialized(
            members in collection::vec((a_key(), a_value()), 0..4),
        ) {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("{key} : {value}")).collect();
            let json = format!("{{{}}}", members.join(","));
            if let Some(read) = CallToolResult::read_plain(Text::checked(&json)) {
                let expected: CallToolResult = serde_json::from_str(&json).unwrap();
                prop_assert_eq!(
                    serde_json::to_string(&read).unwrap(),
                    serde_json::to_string(&expected).unwrap()
                );
            }
        }
    }

    #[test]
    fn the_common_results_are_plain() {
        for json in [
            r#"{"content":[{"type":"text","text":"4"}]}"#,
            r#"{"resultType":"complete","content":[{"text":"a\nb","type":"text"}],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{},"isError":false}"#,
            r#"{"content":[]}"#,
        ] {
            let read = CallToolResult::read_plain(Text::checked(json)).unwrap();
            let expected: CallToolResult = serde_json::from_str(json).unwrap();
            assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        }
        for json in [
            r#"{"content":[{"type":"image","text":"4"}]}"#,
            r#"{"content":[{"type":"text","text":"4","_meta":{}}]}"#,
            r#"{"content":[],"content":[]}"#,
            r#"{"content":[],"_meta":{}}"#,
            r#"{"content":null}"#,
        ] {
            assert!(CallToolResult::read_plain(Text::checked(json)).is_none());
        }
    }
}
