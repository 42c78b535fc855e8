//! Targets of `oxmcp-protocol`.

use oxmcp_json::{Cursor, Text};
use oxmcp_protocol::{
    CallToolResult, ErrorCode, Meta, Revision,
    framing::{
        lines::{Lines, NextLine},
        sse::{EventDecoder, StreamItem},
    },
    http_headers::{decode, encode},
    internal::{Envelope, Params, RequestParams, ResultType, encode_result, peek_result_type},
    message::Message,
    uri_template::{Matcher, UriTemplate},
};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::is_deep;

/// The maximum number of bytes of an event or a line.
const LIMIT: usize = 64;

/// An event stream is decoded the same, however it is split.
pub fn sse(data: &[u8]) {
    assert_eq!(events(data, usize::MAX), events(data, 1));
    assert_eq!(events(data, 7), events(data, 3));
}

fn events(data: &[u8], size: usize) -> Vec<String> {
    let mut decoder = EventDecoder::new(LIMIT);
    let mut said = Vec::new();
    for mut chunk in data.chunks(size) {
        loop {
            match decoder.next(&mut chunk) {
                Ok(None) => break,
                Ok(Some(item)) => {
                    assert!(!matches!(&item, StreamItem::Event(event) if event.data.len() > LIMIT));
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

/// An accepted message is JSON, and white space in it changes nothing.
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
        // The spaced text does not have the usual layout, so all of it is parsed.
        assert_eq!(said(text, spaced), said(&spaced(text), str::to_owned));
    }
    let _ = (params.check(), params.meta.classify(&Revision::ALL));
}

/// The same text, with white space after structural characters outside of strings.
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

/// The contents of a message, with `write` applied to its texts.
fn said(message: &str, write: impl Fn(&str) -> String) -> String {
    let mut params = RequestParams::UNREAD;
    let read = Envelope::parse_str(message, &mut params);
    let write = |text: Option<Text<'_>>| text.map(|text| write(text.get()));
    match read {
        Ok(Envelope::Request(request)) => {
            let texts = request.params.map(|it| {
                let meta = it.meta.raw().map(Text::checked);
                [
                    Some(it.raw),
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
            let params = notification.params.map(|it| write(Some(it.raw)));
            format!("{} {params:?}", notification.method)
        }
        Ok(Envelope::Response(response)) => {
            let outcome = response.outcome.map(|result| write(Some(result)));
            format!(
                "{:?} {outcome:?} {:?}",
                response.id,
                response.found.result_index.is_some()
            )
        }
        Err(malformed) => format!("{:?} {:?}", malformed.id, malformed.error.code),
    }
}

/// A tool result that is read by its index equals the deserialized result, and is written as it is serialized.
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

/// The properties of [`envelope`] for every message of an array.
pub fn batch(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let _ = Cursor::new(text).items(|cursor| {
        envelope(cursor.value()?.get().as_bytes());
        Ok(())
    });
}

/// A stream has the same lines, however it is split.
pub fn lines(data: &[u8]) {
    assert_eq!(split(data, 4096), split(data, 1));
}

fn split(data: &[u8], size: usize) -> Vec<Option<Vec<u8>>> {
    let mut lines = Lines::new(LIMIT);
    let mut found = Vec::new();
    let mut take = |lines: &mut Lines| {
        while let Some(next) = lines.next() {
            found.push(match next {
                NextLine::Line(line) => Some(lines.line(line).to_vec()),
                NextLine::TooLong => None,
            });
        }
    };
    for chunk in data.chunks(size) {
        lines.read_buffer().extend_from_slice(chunk);
        take(&mut lines);
    }
    lines.finish();
    take(&mut lines);
    found
}

/// The first line is a template, against which the rest is matched.
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

/// Any text survives encoding into a header and decoding, and any bytes are decoded or refused.
pub fn header_value(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let value = encode(&text);
    assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    assert!(decode(value.as_bytes()).is_ok_and(|again| again == text));
    let _ = decode(data);
}

/// A message is encoded as it was parsed, and is converted to each revision or refused.
pub fn message(data: &[u8]) {
    for message in Message::parse_batch(data).into_iter().flatten() {
        let line = message.encode();
        let again = Message::parse(&line);
        assert!(again.is_ok_and(|again| again.encode() == line));
        for to in Revision::ALL {
            let mut message = message.clone();
            let _ = match &mut message {
                Message::Request(request) => request.fit(to),
                Message::Notification(notification) => notification.fit(to),
                Message::Response(response) => response.fit("tools/call", to),
                _ => Ok(()),
            };
            assert!(Message::parse(&message.encode()).is_ok());
        }
    }
}
