//! Targets of `oxmcp-json`.

use std::collections::BTreeMap;

use oxmcp_json::{Cursor, Text, Walk, write_string};
use serde::de::IgnoredAny;
use serde_json::{Value, value::RawValue};

/// The parser accepts the same JSON as serde_json, with the same meaning, and a text is written as serde_json writes it.
pub fn json(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut written = Vec::new();
    write_string(&mut written, text);
    assert!(serde_json::to_vec(text).is_ok_and(|expected| expected == written));
    let read = Cursor::new(text).read_object(|_, cursor| cursor.value().map(drop));
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_object = is_json && text.trim_start().starts_with('{');
    assert!(read == Ok(true) || !is_object || is_deep(text));
    assert!(read != Ok(true) || is_object);
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text)
        && let Ok(value) = serde_json::from_str(text)
    {
        means(raw.into(), &value);
    }
}

/// Whether a text may exceed the maximum depth of nesting.
pub(crate) fn is_deep(text: &str) -> bool {
    text.bytes()
        .filter(|byte| matches!(byte, b'{' | b'['))
        .count()
        > 100
}

fn means(text: Text<'_>, value: &Value) {
    match value {
        Value::Object(map) => {
            let members = text.members();
            let members = members.filter_map(|(key, value)| Some((key.as_str()?, value)));
            // The last of duplicate keys counts.
            let members: BTreeMap<_, _> = members.collect();
            assert!(members.keys().eq(map.keys()));
            members
                .values()
                .zip(map.values())
                .for_each(|(text, value)| means(*text, value));
            integers(text);
        }
        Value::Array(all) => {
            assert_eq!(text.items().count(), all.len());
            text.items()
                .zip(all)
                .for_each(|(text, value)| means(text, value));
        }
        Value::String(string) => assert!(text.is_str(string)),
        scalar => assert!(text.parse::<Value>().is_ok_and(|it| it == *scalar)),
    }
}

/// A value that the walk reads as an integer is an integer.
fn integers(object: Text<'_>) {
    let mut walk = Walk::new(object);
    let _ = walk.peek();
    walk.enter();
    for (_, value) in object.members() {
        let _ = walk.value();
        let _ = walk.peek();
        let start = walk.at();
        match walk.integer() {
            Some(integer) => {
                assert_eq!(walk.since(start), Some(value));
                assert_eq!(value.get(), integer.to_string());
            }
            None => assert_eq!(walk.value(), Some(value)),
        }
    }
    assert!(walk.value().is_none());
}
