//! For the fuzzers, who are outside: functions of bytes that panic where something does not hold. See `fuzz/README.md`.

#![expect(
    clippy::missing_panics_doc,
    reason = "to panic is how they say that something is wrong"
)]

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::{Value, value::RawValue};

use crate::{
    codec::{
        lines::{Found, Lines},
        sse::{Decoder, Item},
        uri_template::{Matcher, UriTemplate},
    },
    json::{Cursor, Text, write_string},
    jsonrpc::{Envelope, ErrorCode, Params},
    protocol::{
        CallToolResult, Meta, RequestParams, ResultType, Revision, encode_result,
        http_headers::{decode, encode},
        peek_result_type,
    },
    schema::Schema,
};

/// How many bytes of an event or a line are read.
const LIMIT: usize = 64;

/// An event stream says the same however it is cut.
pub fn sse(data: &[u8]) {
    assert_eq!(events(data, usize::MAX), events(data, 1));
    assert_eq!(events(data, 7), events(data, 3));
}

fn events(data: &[u8], size: usize) -> Vec<String> {
    let mut decoder = Decoder::new(LIMIT);
    let mut said = Vec::new();
    for mut chunk in data.chunks(size) {
        loop {
            match decoder.next(&mut chunk) {
                Ok(None) => break,
                Ok(Some(item)) => {
                    assert!(!matches!(&item, Item::Event(event) if event.data.len() > LIMIT));
                    said.push(format!("{item:?}"));
                }
                Err(error) => {
                    said.push(error.to_string());
                    return said;
                }
            }
        }
    }
    said
}

/// JSON is what serde_json says it is, and means the same; a text is written as serde_json writes it.
pub fn json(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut written = Vec::new();
    write_string(&mut written, text);
    assert!(serde_json::to_vec(text).is_ok_and(|expected| expected == written));
    let read = Cursor::new(text).whole(|_, cursor| cursor.value().map(drop));
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

/// Whether a text may be nested more deeply than is read.
fn is_deep(text: &str) -> bool {
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
            // Of those that come twice, the last counts.
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

/// What is read as an integer while it is walked over is one.
fn integers(object: Text<'_>) {
    let mut members = object.members();
    for (_, value) in object.members() {
        let _ = members.key();
        match members.integer() {
            Some((text, integer)) => {
                assert_eq!(text, value);
                assert_eq!(value.get(), integer.to_string());
            }
            None => assert_eq!(members.value(), Some(value)),
        }
    }
    assert!(members.key().is_none());
}

/// What passes as a message is JSON, and white space in it changes nothing.
pub fn envelope(data: &[u8]) {
    let mut params = RequestParams::UNREAD;
    let read = Envelope::parse(data, &mut params);
    let text = str::from_utf8(data);
    let is_json = text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    match &read {
        Ok(_) => assert!(is_json),
        Err(malformed) if malformed.error.code == ErrorCode::PARSE_ERROR => {
            assert!(!is_json || text.is_ok_and(is_deep));
        }
        Err(_) => {}
    }
    if let Ok(text) = text {
        // Nothing is as it usually is there, so that all is looked at.
        assert_eq!(said(text, spaced), said(&spaced(text), str::to_owned));
    }
    let _ = (params.check(), params.meta.classify(&Revision::ALL));
}

/// The same with white space behind all that is not within a string.
fn spaced(text: &str) -> String {
    let (mut spaced, mut in_string, mut is_escaped) = (String::new(), false, false);
    for char in text.chars() {
        spaced.push(char);
        in_string ^= char == '"' && !is_escaped;
        is_escaped = in_string && char == '\\' && !is_escaped;
        if !in_string && matches!(char, '{' | '[' | ',' | ':') {
            spaced.push(' ');
        }
    }
    spaced
}

/// What a message says, with the texts in it as `write` has them.
fn said(message: &str, write: impl Fn(&str) -> String) -> String {
    let mut params = RequestParams::UNREAD;
    let read = Envelope::parse_str(message, &mut params);
    let write = |text: Option<Text<'_>>| text.map(|text| write(text.get()));
    match read {
        Ok(Envelope::Request(request)) => {
            let texts = request.params.map(|it| {
                let meta = it.meta.raw().map(Text::checked);
                [
                    Some(it.whole),
                    it.name,
                    it.arguments,
                    it.input_responses,
                    it.request_state,
                    meta,
                ]
            });
            let texts = texts.map(|texts| texts.map(write));
            let is_fine = request.params.map(|it| it.check().is_ok());
            format!("{} {} {texts:?} {is_fine:?}", request.id, request.method)
        }
        Ok(Envelope::Notification(notification)) => {
            let params = notification.params.map(|it| write(Some(it.whole)));
            format!("{} {params:?}", notification.method)
        }
        Ok(Envelope::Response(response)) => {
            let outcome = response.outcome.map(|result| write(Some(result)));
            format!(
                "{:?} {outcome:?} {:?}",
                response.id,
                response.found.outline.is_some()
            )
        }
        Err(malformed) => format!("{:?} {:?}", malformed.id, malformed.error.code),
    }
}

/// The result of a tool that is read by its outline is what it is deserialized to, and is written as it is serialized.
pub fn tool_result(data: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(data) else {
        return;
    };
    let text = raw.get();
    let Some(mut read) = CallToolResult::read_plain(&mut text.into()) else {
        return;
    };
    assert_eq!(peek_result_type(Text::checked(text)), ResultType::Complete);
    let expected = serde_json::from_str::<CallToolResult>(text).ok();
    assert_eq!(serialized(Some(read.clone())), serialized(expected));
    read.meta = Meta::default();
    let expected = serialized(Some(read.clone()));
    let mut sent = Vec::new();
    assert!(encode_result(&mut sent, &mut read, Revision::LATEST, None).is_ok());
    assert_eq!(serialized(serde_json::from_slice(&sent).ok()), expected);
}

fn serialized(result: Option<CallToolResult>) -> Option<String> {
    serde_json::to_string(&result?).ok()
}

/// The first line is a schema, the rest is held against it: what is accepted in one walk is valid, and read as
/// serde_json reads it.
pub fn arguments(data: &[u8]) {
    let Some((schema, instance)) = str::from_utf8(data).ok().and_then(|it| it.split_once('\n'))
    else {
        return;
    };
    let schema = serde_json::from_str::<&RawValue>(schema).ok();
    let Some(Ok(schema)) = schema.map(Schema::from_raw) else {
        return;
    };
    let Ok(instance) = serde_json::from_str::<&RawValue>(instance) else {
        return;
    };
    let expected = serde_json::from_str::<Value>(instance.get()).ok();
    let read = schema.read::<Value>(instance.into());
    assert!(read.is_none() || read == expected);
    let is_accepted = read.is_some() || schema.accepts_fast(instance);
    let verdict = schema.verdict(instance);
    assert!(
        !is_accepted || expected.is_none() || verdict.is_ok(),
        "{verdict:?}"
    );
}

/// The same of every message of an array.
pub fn batch(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let _ = Cursor::new(text).items(|cursor| {
        envelope(cursor.value()?.get().as_bytes());
        Ok(())
    });
}

/// A stream has the same lines however it is cut.
pub fn lines(data: &[u8]) {
    assert_eq!(split(data, 4096), split(data, 1));
}

fn split(data: &[u8], size: usize) -> Vec<Option<Vec<u8>>> {
    let mut lines = Lines::new(LIMIT);
    let mut found = Vec::new();
    let mut take = |lines: &mut Lines| {
        while let Some(next) = lines.next() {
            found.push(match next {
                Found::Line(line) => Some(lines.line(line).to_vec()),
                Found::TooLong => None,
            });
        }
    };
    for chunk in data.chunks(size) {
        lines.room().extend_from_slice(chunk);
        take(&mut lines);
    }
    lines.finish();
    take(&mut lines);
    found
}

/// The first line is a template, the rest is matched against it.
pub fn uri_template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (template, uri) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(template) = UriTemplate::parse(template) else {
        return;
    };
    let _ = template.expand(|_| None);
    if let Ok(matcher) = Matcher::new(&template) {
        let _ = matcher.captures(uri);
    }
}

/// Any text survives the way through a header, and any bytes are read or refused.
pub fn header_value(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let value = encode(&text);
    assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    assert!(decode(value.as_bytes()).is_ok_and(|again| again == text));
    let _ = decode(data);
}
