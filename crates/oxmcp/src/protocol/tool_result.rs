//! Writing and reading the [result of a tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result) by hand.
//!
//! It is the commonest of all results, and its text is what most bytes of most sessions are. Serializers look at every
//! byte of a string; [`write_string`] looks at many together.

use super::{CallToolResult, ContentBlock};
use crate::json::{Checked, Cursor, Syntax, Text, write_string};

impl CallToolResult {
    /// Reads what most results are: text, which may be structured as well, and nothing beside it. `None` where there is
    /// more to it, or something wrong with it: then `Deserialize` tells.
    pub(crate) fn read_plain(result: Text<'_>) -> Option<Self> {
        let mut read = Self::default();
        let mut seen = 0_u8;
        // The text is known to be JSON. The cursor is taken for its going straight through, where walks look ahead; and
        // what is an error to it is, here, whatever is not plain.
        let whole = Cursor::new(result.get()).whole(|key, cursor| {
            let member = match key.as_str().as_deref() {
                Some("content") => {
                    read.content.reserve_exact(1);
                    cursor.items(|cursor| {
                        read.content.push(ContentBlock::text(read_text(cursor)?));
                        Ok(())
                    })?;
                    1
                }
                Some("structuredContent") => {
                    read.structured_content = Some(cursor.value()?.to_raw());
                    2
                }
                Some("isError") => {
                    read.is_error = cursor.value()?.parse().map_err(|_| Syntax)?;
                    4
                }
                Some("_meta") | None => return Err(Syntax),
                Some(_) => {
                    cursor.value()?;
                    0
                }
            };
            let again = seen & member != 0;
            seen |= member;
            if again { Err(Syntax) } else { Ok(()) }
        });
        whole.is_ok_and(|is_object| is_object).then_some(read)
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

/// The text of a block that has nothing but its type and a text.
fn read_text(cursor: &mut Cursor<'_>) -> Checked<String> {
    let (mut is_text, mut text) = (false, None);
    let block = cursor.members(|key, cursor| {
        let value = cursor.value()?;
        match key.as_str().as_deref() {
            Some("type") if !is_text && value.is_str("text") => is_text = true,
            Some("text") if text.is_none() => text = Some(value.as_str().ok_or(Syntax)?),
            _ => return Err(Syntax),
        }
        Ok(())
    })?;
    match text {
        Some(text) if is_text && block.is_object() => Ok(text.into_owned()),
        _ => Err(Syntax),
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
