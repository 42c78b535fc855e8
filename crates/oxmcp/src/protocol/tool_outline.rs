//! Reading the [result of a tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result) while the
//! message that it came in is checked.

use std::{mem, ops::Range};

use super::{CallToolResult, ContentBlock, Meta};
use crate::json::{Checked, Cursor, Syntax, Text};

/// A text that takes the room of its result must not waste more of it, in bytes.
const LARGEST_WASTE: usize = 128;

/// Where the parts of a tool's result are in its text, where it is as most are: text, which may be structured as well.
///
/// It is found while the message is checked, so that who waits for the result need not walk over it once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    content: Content,
    structured: Option<Part>,
    meta: Option<Part>,
    is_error: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Content {
    #[default]
    Nothing,
    /// One text, as a JSON string.
    Text(Part),
    /// Several texts: the whole array.
    Texts(Part),
}

/// A part of a text. It is small, because it is handed on a few times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    start: u32,
    end: u32,
    /// Whether it is known to be a string in which nothing is escaped.
    plain: bool,
}

impl Part {
    fn new(range: Range<usize>, plain: bool) -> Checked<Self> {
        Ok(Self {
            start: u32::try_from(range.start).map_err(|_| Syntax)?,
            end: u32::try_from(range.end).map_err(|_| Syntax)?,
            plain,
        })
    }

    /// The value that a cursor has just gone over, in a text that began at `origin`.
    fn behind(cursor: &Cursor<'_>, value: Text<'_>, origin: usize) -> Checked<Self> {
        let end = cursor.at() - origin;
        Self::new(end - value.get().len()..end, value.as_plain().is_some())
    }

    fn of(self, text: &str) -> Option<Text<'_>> {
        let text = text.get(self.start as usize..self.end as usize)?;
        Some(Text::string(text, self.plain))
    }

    /// Takes a string out of the text. Where it is nearly all of it, the text itself becomes the string, and nothing
    /// is allocated.
    fn take_out(self, text: &mut Box<str>) -> Option<String> {
        let string = self.of(text)?.as_str()?;
        if !self.plain || text.len() - string.len() > LARGEST_WASTE {
            return Some(string.into_owned());
        }
        let mut whole = String::from(mem::take(text));
        whole.truncate(self.end as usize - 1);
        whole.drain(..=self.start as usize);
        Some(whole)
    }
}

impl Content {
    fn take_out(self, result: &mut Box<str>) -> Option<Vec<ContentBlock>> {
        match self {
            Self::Nothing => Some(Vec::new()),
            Self::Text(text) => Some(vec![ContentBlock::text(text.take_out(result)?)]),
            Self::Texts(blocks) => {
                let text_of = |block: Text<'_>| {
                    let (_, text) = block.members().find(|(key, _)| key.is_str("text"))?;
                    Some(ContentBlock::text(text.as_str()?))
                };
                blocks.of(result)?.items().map(text_of).collect()
            }
        }
    }
}

impl Outline {
    /// Goes over the result that stands here. An error says that there is more to it, or something wrong with it.
    pub(crate) fn find<'a>(cursor: &mut Cursor<'a>) -> Checked<(Text<'a>, Self)> {
        let origin = cursor.at();
        let mut found = Self::default();
        let mut seen = 0_u8;
        let whole = cursor.members(|key, cursor| {
            let member = found.take(key.as_plain().ok_or(Syntax)?, cursor, origin)?;
            let again = seen & member != 0;
            seen |= member;
            if again { Err(Syntax) } else { Ok(()) }
        })?;
        whole.is_object().then_some((whole, found)).ok_or(Syntax)
    }

    /// Takes a member. Returns a bit that stands for it, or none where it means nothing.
    fn take(&mut self, key: &str, cursor: &mut Cursor<'_>, origin: usize) -> Checked<u8> {
        if key == "content" {
            self.content = find_content(cursor, origin)?;
            return Ok(1);
        }
        let value = cursor.value()?;
        match (key, value.get()) {
            ("structuredContent", _) => {
                self.structured = Some(Part::behind(cursor, value, origin)?);
                Ok(2)
            }
            ("isError", is_error @ ("true" | "false")) => {
                self.is_error = is_error == "true";
                Ok(4)
            }
            ("_meta", _) if value.is_object() => {
                self.meta = Some(Part::behind(cursor, value, origin)?);
                Ok(8)
            }
            ("resultType", r#""complete""#) => Ok(16),
            ("isError" | "_meta" | "resultType", _) => Err(Syntax),
            _ => Ok(0),
        }
    }
}

fn find_content(cursor: &mut Cursor<'_>, origin: usize) -> Checked<Content> {
    if let Some(text) = find_usual(cursor, origin) {
        return Ok(Content::Text(text));
    }
    let start = cursor.at() - origin;
    let (mut texts, mut text) = (0_usize, Part::default());
    cursor.items(|cursor| {
        texts += 1;
        text = find_text(cursor, origin)?;
        Ok(())
    })?;
    Ok(match texts {
        0 => Content::Nothing,
        1 => Content::Text(text),
        _ => Content::Texts(Part::new(start..cursor.at() - origin, false)?),
    })
}

/// The text of the one block that stands here, where it is written just as nearly all servers write it.
fn find_usual(cursor: &mut Cursor<'_>, origin: usize) -> Option<Part> {
    let mut ahead = cursor.clone();
    if !ahead.goes_on(r#"[{"type":"text","text":"#) {
        return None;
    }
    let text = ahead.string().ok()?;
    let text = Part::behind(&ahead, text, origin).ok()?;
    if !ahead.goes_on("}]") {
        return None;
    }
    *cursor = ahead;
    Some(text)
}

/// The text of a block that has nothing but its type and a text.
fn find_text(cursor: &mut Cursor<'_>, origin: usize) -> Checked<Part> {
    let (mut is_text, mut text) = (false, None);
    let block = cursor.members(|key, cursor| {
        let value = cursor.value()?;
        match key.as_str().as_deref() {
            Some("type") if !is_text && value.is_str("text") => is_text = true,
            Some("text") if text.is_none() && value.is_string() => {
                text = Some(Part::behind(cursor, value, origin)?);
            }
            _ => return Err(Syntax),
        }
        Ok(())
    })?;
    match text {
        Some(text) if is_text && block.is_object() => Ok(text),
        _ => Err(Syntax),
    }
}

impl CallToolResult {
    /// Reads what most results are: text, which may be structured as well, and nothing beside it. `None` where there is
    /// more to it, or something wrong with it: then `Deserialize` tells.
    pub(crate) fn read_plain(result: &mut Box<str>) -> Option<Self> {
        let (_, outline) = Outline::find(&mut Cursor::new(result)).ok()?;
        Self::read_outlined(result, outline)
    }

    /// The same where it is known what is where. The text may be used up; not so where it gives `None`.
    pub(crate) fn read_outlined(result: &mut Box<str>, outline: Outline) -> Option<Self> {
        let structured_content = match outline.structured {
            Some(structured) => Some(structured.of(result)?.to_raw()),
            None => None,
        };
        let meta = match outline.meta {
            Some(meta) => Meta::of_raw(meta.of(result)?.to_raw())?,
            None => Meta::default(),
        };
        Some(Self {
            content: outline.content.take_out(result)?,
            structured_content,
            is_error: outline.is_error,
            meta,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};

    use super::*;

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
            if let Some(read) = CallToolResult::read_plain(&mut json.as_str().into()) {
                let expected: CallToolResult = serde_json::from_str(&json).unwrap();
                prop_assert_eq!(
                    serde_json::to_string(&read).unwrap(),
                    serde_json::to_string(&expected).unwrap()
                );
            }
        }
    }

    #[test]
    fn a_long_text_beside_much_else_takes_no_more_room_than_it_needs() {
        let read = |structured: &str| {
            let text = "0123456789".repeat(100);
            let json = format!(
                r#"{{"structuredContent":"{structured}","content":[{{"type":"text","text":"{text}"}}]}}"#
            );
            let mut read = CallToolResult::read_plain(&mut json.into()).unwrap();
            assert_eq!(read.as_text(), Some(&*text));
            let Some(ContentBlock::Text(text)) = read.content.pop() else {
                panic!("it is text");
            };
            text.text.capacity()
        };
        assert!(read("short") <= 1000 + LARGEST_WASTE);
        assert!(read(&"long".repeat(100)) <= 1000 + LARGEST_WASTE);
    }

    #[test]
    fn the_common_results_are_plain() {
        for json in [
            r#"{"content":[{"type":"text","text":"4"}]}"#,
            r#"{"resultType":"complete","content":[{"text":"a\nb","type":"text"}],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{},"isError":false}"#,
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"text":"b\u0063","type":"text"}]}"#,
            r#"{"_meta":{"a":[1]},"content":[{"type":"text","text":"\u00e9"} ]}"#,
        ] {
            let read = CallToolResult::read_plain(&mut json.into()).unwrap();
            let expected: CallToolResult = serde_json::from_str(json).unwrap();
            assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        }
        for json in [
            r#"{"content":[{"type":"image","text":"4"}]}"#,
            r#"{"content":[{"type":"text","text":"4","_meta":{}}]}"#,
            r#"{"content":[],"content":[]}"#,
            r#"{"content":[],"_meta":[]}"#,
            r#"{"content":[],"_meta":{},"_meta":{}}"#,
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            r#"{"content":[],"resultType":"task"}"#,
            r#"{"content":null}"#,
        ] {
            assert!(CallToolResult::read_plain(&mut json.into()).is_none());
        }
    }
}
