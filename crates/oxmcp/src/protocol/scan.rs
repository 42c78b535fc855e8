//! Walking over the members of an object without parsing them.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The members of the object that `raw` is, in their order: keys, and values as JSON texts. Anything but an object has
/// none.
///
/// A `RawValue` is JSON for certain, so what is skipped needs no checking, and a megabyte of arguments costs hardly
/// more than reading it.
pub(super) fn members(raw: &RawValue) -> Members<'_> {
    let rest = raw.get().trim_start().strip_prefix('{').unwrap_or("");
    Members { rest }
}

pub(super) struct Members<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest.trim_start_matches([',', ' ', '\t', '\n', '\r']);
        let end = string_end(text)?;
        let (key, text) = text.split_at_checked(end)?;
        let text = text.trim_start().strip_prefix(':')?.trim_start();
        let (value, rest) = text.split_at_checked(value_end(text)?)?;
        self.rest = rest;
        Some((unescape(key)?, value))
    }
}

/// A string of JSON as the text that it means. Borrowed where nothing in it is escaped.
pub(super) fn unescape(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Where the string that `text` begins with ends: behind its closing quote.
fn string_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Where the value that `text` begins with ends.
fn value_end(text: &str) -> Option<usize> {
    match text.as_bytes().first()? {
        b'"' => string_end(text),
        b'{' | b'[' => nested_end(text),
        _ => text.find([',', '}', ']', ' ', '\t', '\n', '\r']),
    }
}

/// Where the object or array that `text` begins with ends: where as many brackets are closed as were opened.
fn nested_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0_usize, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += string_end(text.get(at..)?)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_map, prelude::*};
    use serde_json::{Value, value::to_raw_value};

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn finds_what_a_parser_finds(object in btree_map(any::<String>(), json(), 0..6), pretty: bool) {
            let value = Value::Object(object.into_iter().collect());
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let raw = RawValue::from_string(text.unwrap()).unwrap();
            let found: serde_json::Map<String, Value> = members(&raw)
                .map(|(key, value)| (key.into_owned(), serde_json::from_str(value).unwrap()))
                .collect();
            prop_assert_eq!(Value::Object(found), value);
        }
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for value in [
            Value::Null,
            Value::from("{"),
            Value::from(vec![1]),
            Value::from(1),
        ] {
            assert_eq!(
                members(&to_raw_value(&value).unwrap()).count(),
                0,
                "{value}"
            );
        }
    }
}
