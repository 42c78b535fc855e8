//! For the fuzzers, who are outside: functions of bytes that panic where something does not hold. See `fuzz/README.md`.

#![expect(
    clippy::missing_panics_doc,
    reason = "to panic is how they say that something is wrong"
)]

use serde::de::IgnoredAny;

use crate::{
    codec::{
        lines::{Found, Lines},
        sse::{Decoder, Item},
        uri_template::{Matcher, UriTemplate},
    },
    json::Cursor,
    jsonrpc::{Envelope, Params},
    protocol::{
        RequestParams,
        http_headers::{decode, encode},
    },
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

/// What passes as a message is JSON.
pub fn envelope(data: &[u8]) {
    let mut params = RequestParams::UNREAD;
    if Envelope::parse(data, &mut params).is_ok() {
        let read = serde_json::from_slice::<IgnoredAny>(data);
        assert!(read.is_ok(), "{read:?}");
        let _ = (params.check(), params.meta.classify(&crate::Revision::ALL));
    }
}

/// So is every message of an array.
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
