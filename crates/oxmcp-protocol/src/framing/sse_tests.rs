//! Tests of event streams against a plain implementation of the standard.

use std::time::Duration;

use proptest::{collection, prelude::*, sample};

use super::sse::*;

/// An item of a stream as an owned value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Event(String, String, String),
    Id(String),
    Retry(u64),
    Overlong,
}

fn event(name: &str, id: &str, data: &str) -> Said {
    Said::Event(name.into(), id.into(), data.into())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The items of `stream` when it arrives in chunks of the sizes `sizes`, which repeat.
fn read(stream: &[u8], limit: usize, sizes: &[usize]) -> Vec<Said> {
    let mut decoder = EventDecoder::new(limit);
    let mut said = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let (mut chunk, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        rest = tail;
        loop {
            said.push(match decoder.next(&mut chunk) {
                Ok(None) => break,
                Ok(Some(StreamItem::Event(event))) => {
                    Said::Event(event.name.into(), event.id.into(), lossy(event.data))
                }
                Ok(Some(StreamItem::Id(id))) => Said::Id(id.into()),
                Ok(Some(StreamItem::Retry(wait))) => {
                    Said::Retry(u64::try_from(wait.as_millis()).unwrap())
                }
                Err(EventTooLong { limit: told }) => {
                    assert_eq!(told, limit);
                    assert!(decoder.next(&mut chunk).is_err(), "it stays unusable");
                    said.push(Said::Overlong);
                    return said;
                }
            });
        }
        assert!(chunk.is_empty());
    }
    said
}

fn all(stream: &str) -> Vec<Said> {
    read(stream.as_bytes(), usize::MAX, &[usize::MAX])
}

/// The algorithm of the standard, step by step, for streams without a limit.
fn model(stream: &[u8]) -> Vec<Said> {
    let text = lossy(stream);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut said = Vec::new();
    let (mut data, mut name, mut id) = (String::new(), String::new(), String::new());
    let mut has_id = false;
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                let name = if name.is_empty() { "message" } else { &name };
                said.push(event(name, &id, &data));
            } else if has_id {
                said.push(Said::Id(id.clone()));
            }
            (data, name, has_id) = (String::new(), String::new(), false);
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.into(),
            "data" => data = data + value + "\n",
            "id" if !value.contains('\0') => (id, has_id) = (value.into(), true),
            "retry" if !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit()) => {
                said.push(Said::Retry(value.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    said
}

/// Random bytes with many line endings and field names.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => sample::select(vec!["\n", "\r", "\r\n", "\n\n"]),
        4 => sample::select(vec!["data", "event", "id", "retry", "Data", "other"]),
        4 => sample::select(vec![":", ": ", ":  ", " "]),
        3 => sample::select(vec!["1", "700", "99999999999999999999", "x", "\0", "\u{feff}", "é", "-1"]),
    ];
    let piece = prop_oneof![
        9 => piece.prop_map(|text| text.as_bytes().to_vec()),
        1 => collection::vec(any::<u8>(), 0..4),
    ];
    collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunked_stream_is_read_per_the_standard(
        stream in stream(),
        sizes in collection::vec(1_usize..20, 1..6),
    ) {
        prop_assert_eq!(read(&stream, usize::MAX, &sizes), model(&stream));
    }

    #[test]
    fn limit_applies_for_any_chunking(
        stream in stream(),
        limit in 0_usize..20,
        sizes in collection::vec(1_usize..20, 1..6),
    ) {
        let whole = read(&stream, limit, &[usize::MAX]);
        prop_assert_eq!(&read(&stream, limit, &sizes), &whole);
        for said in &whole {
            // Bytes that are not UTF-8 become longer when they are displayed.
            let long = |data: &str| !data.contains('\u{fffd}') && data.len() > limit;
            prop_assert!(!matches!(said, Said::Event(_, _, data) if long(data)));
        }
        if whole.last() != Some(&Said::Overlong) {
            prop_assert_eq!(whole, model(&stream));
        }
    }

    #[test]
    fn written_events_read_back(
        events in collection::vec(
            (
                proptest::option::of("[^\r\n\0]{1,8}"),
                proptest::option::of("[^\r\n\0]{0,8}"),
                proptest::option::of(any::<u64>()),
                "[^\r]{0,40}",
            ),
            0..6,
        ),
    ) {
        let (mut out, mut expected, mut last) = (Vec::new(), Vec::new(), String::new());
        for (name, id, retry, data) in &events {
            OutgoingEvent {
                name: name.as_deref(),
                id: id.as_deref(),
                retry: retry.map(Duration::from_millis),
                data: data.as_bytes(),
            }
            .write(&mut out);
            write_comment(&mut out, data);
            expected.extend(retry.map(Said::Retry));
            last = id.clone().unwrap_or(last);
            expected.push(event(name.as_deref().unwrap_or("message"), &last, data));
        }
        prop_assert_eq!(read(&out, usize::MAX, &[7]), expected);
    }

    // Attack: header injection.
    #[test]
    fn field_cannot_be_broken_out_of(id in "(?s).{0,20}", name in "(?s).{0,20}") {
        let mut out = Vec::new();
        OutgoingEvent { id: Some(&id), name: Some(&name), data: b"x", ..OutgoingEvent::default() }.write(&mut out);
        let said = read(&out, usize::MAX, &[usize::MAX]);
        prop_assert!(matches!(&said[..], [Said::Event(_, _, data)] if data == "x"));
    }
}

#[test]
fn field_without_colon_has_empty_value() {
    assert_eq!(all("data\n\n"), [event("message", "", "")]);
    assert_eq!(all("data\ndata\n\n"), [event("message", "", "\n")]);
    assert_eq!(all("id: 7\nid\ndata: x\n\n"), [event("message", "", "x")]);
}

#[test]
fn lone_carriage_return_ends_a_line() {
    assert_eq!(
        all("data: a\rdata: b\r\rdata: c\r\n\r\n"),
        [event("message", "", "a\nb"), event("message", "", "c")]
    );
}

#[test]
fn exactly_one_leading_space_is_stripped() {
    assert_eq!(all("data:  a \n\n"), [event("message", "", " a ")]);
    assert_eq!(all("data:\ta\n\n"), [event("message", "", "\ta")]);
}

#[test]
fn truncated_event_is_dropped_with_its_id() {
    assert!(all("data: a\n").is_empty());
    let mut decoder = EventDecoder::new(100).with_id("6");
    let mut chunk = &b"id: 7\ndata: a\n"[..];
    assert_eq!(decoder.next(&mut chunk), Ok(None));
    assert_eq!(decoder.id(), "6", "or what it said would be passed over");
    let mut chunk = &b"\n"[..];
    assert!(matches!(
        decoder.next(&mut chunk),
        Ok(Some(StreamItem::Event(Event { id: "7", .. })))
    ));
}

#[test]
fn examples_of_the_standard_are_decoded() {
    let cases: &[(&str, &[Said])] = &[
        (
            "data: YHOO\ndata: +2\ndata: 10\n\n",
            &[event("message", "", "YHOO\n+2\n10")],
        ),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            &[
                event("message", "1", "first event"),
                event("message", "", "second event"),
                event("message", "", " third event"),
            ],
        ),
        (
            "data\n\ndata\ndata\n\ndata:",
            &[event("message", "", ""), event("message", "", "\n")],
        ),
        (
            "data:test\n\ndata: test\n\n",
            &[event("message", "", "test"), event("message", "", "test")],
        ),
        (
            "event: add\ndata: 73857293\n\n",
            &[event("add", "", "73857293")],
        ),
    ];
    for (stream, said) in cases {
        assert_eq!(all(stream), *said, "{stream:?}");
    }
}

#[test]
fn id_without_data_is_reported() {
    assert_eq!(
        all("id: 1\nretry: 500\ndata:\n\n"),
        [Said::Retry(500), event("message", "1", "")]
    );
    assert_eq!(
        all("id: 1\n\ndata: x\n\n"),
        [Said::Id("1".into()), event("message", "1", "x")]
    );
    assert_eq!(
        all("event: end\n\ndata: x\n\n"),
        [event("message", "", "x")]
    );
}

#[test]
fn id_containing_null_is_ignored() {
    assert_eq!(
        all("id: 1\n\nid: 2\0\ndata: x\n\n"),
        [Said::Id("1".into()), event("message", "1", "x")]
    );
}

#[test]
fn retry_times_are_digits_and_bounded() {
    assert_eq!(
        all(
            "retry: 10\nretry: 1e3\nretry: -1\nretry:\nretry: +5\nretry:  7\nretry: 99999999999999999999\n"
        ),
        [Said::Retry(10), Said::Retry(u64::MAX)]
    );
}

#[test]
fn byte_order_mark_is_not_text() {
    assert_eq!(all("\u{feff}data: x\n\n"), [event("message", "", "x")]);
    assert!(all("\u{feff}\u{feff}data: x\n\n").is_empty());
    assert!(all("\n\u{feff}data: x\n\n").is_empty());
}

#[test]
fn event_may_be_exactly_as_long_as_limit() {
    let cases: &[(&str, bool)] = &[
        ("data: 12345678\n\n", true),
        ("\u{feff}data: 12345678\n\n", true),
        ("data: 123456789\n\n", false),
        ("data: 1234\ndata: 567\n\n", true),
        ("data: 1234\ndata: 5678\n\n", false),
        (": a comment that ends at last\n", false),
        ("data: a line that never ends", false),
    ];
    for (stream, fits) in cases {
        for size in 1..=stream.len() {
            let said = read(stream.as_bytes(), 8, &[size]);
            assert_eq!(
                said.last() != Some(&Said::Overlong),
                *fits,
                "{stream:?} by {size}"
            );
        }
    }
    let text = EventTooLong { limit: 8 }.to_string();
    assert!(text.contains("8 bytes"), "{text}");
}

#[test]
fn line_beyond_limit_is_discarded() {
    let mut decoder = EventDecoder::new(1000);
    let part = [b'x'; 100];
    let parts = (0..100).take_while(|_| decoder.next(&mut &part[..]).is_ok());
    assert_eq!(parts.count(), 10);
}

#[test]
fn message_is_written_as_one_line() {
    let mut out = Vec::new();
    OutgoingEvent {
        id: Some("s_1"),
        data: b"{}",
        ..OutgoingEvent::default()
    }
    .write(&mut out);
    assert_eq!(lossy(&out), "id: s_1\ndata: {}\n\n");
}
