//! Writer of messages as lines: each ends with a newline and has no other, so that it can be written to a line-framed
//! stream unchanged.

use oxmcp_json::write_string;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    jsonrpc::{error::ErrorObject, id::RequestId},
    meta::{
        object::Meta,
        trace_context::{TraceContext, join_baggage},
    },
};

/// Appends a response, whose result `encode` appends as JSON. `is_line` says that the result is known to have no line
/// break.
///
/// # Errors
/// If the result cannot be encoded; then nothing is appended.
pub fn write_response<E>(
    out: &mut Vec<u8>,
    id: &RequestId,
    is_line: bool,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.extend_from_slice(br#","result":"#);
    if let Err(error) = encode(out) {
        out.truncate(start);
        return Err(error);
    }
    if !is_line {
        make_line(out, start);
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends an error response. Without an id it is the response to a message whose id could not be read.
#[expect(
    clippy::missing_panics_doc,
    reason = "it cannot happen, as the message says"
)]
pub fn write_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        id.write(out);
        out.push(b',');
    }
    out.extend_from_slice(br#""error":"#);
    serde_json::to_writer(&mut *out, error).expect("an error object is always JSON");
    finish(out, start);
}

/// Metadata for the `_meta` of a request that its params do not hold themselves.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct ExtraMeta<'a> {
    /// JSON members without braces, and without line breaks.
    pub envelope: Option<&'a str>,
    /// Whether the caller wants progress notifications; the progress token is the request's id.
    pub progress: bool,
    /// The trace of the request, used if `meta` names none, and the baggage, which is joined with that of `meta`.
    pub trace: Option<&'a TraceContext>,
    /// Metadata from the caller.
    pub meta: Option<&'a Map<String, Value>>,
}

/// Appends a request. Its params are JSON and must not have a `_meta`.
///
/// # Errors
/// If the params are not a JSON object; then nothing is appended.
pub fn write_request(
    out: &mut Vec<u8>,
    id: i64,
    method: &str,
    params: &[u8],
    extra: ExtraMeta<'_>,
) -> serde_json::Result<()> {
    check_object(params)?;
    out.reserve(params.len() + extra.envelope.map_or(0, str::len) + 128);
    let id = RequestId::Number(id);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.push(b',');
    write_method(out, method);
    let open = out.len();
    write_meta(out, &id, extra);
    let meta_end = out.len();
    out.extend_from_slice(params);
    join(out, open, meta_end);
    // Only the params may contain line breaks: all other text was written here.
    finish(out, meta_end);
    Ok(())
}

/// Appends `{"_meta":{…}`, without the closing brace, or nothing if there is no metadata.
fn write_meta(out: &mut Vec<u8>, id: &RequestId, extra: ExtraMeta<'_>) {
    let ExtraMeta {
        envelope,
        progress,
        trace,
        meta,
    } = extra;
    let has_envelope = envelope.is_some_and(|members| !members.is_empty());
    let has_trace = trace.is_some_and(|trace| !trace.is_empty());
    if !has_envelope && !progress && !has_trace && meta.is_none_or(Map::is_empty) {
        return;
    }
    out.extend_from_slice(br#"{"_meta":{"#);
    let first = out.len();
    if let Some(envelope) = envelope {
        out.extend_from_slice(envelope.as_bytes());
    }
    if progress {
        separate(out, first);
        out.extend_from_slice(br#""progressToken":"#);
        id.write(out);
    }
    let is_said = |key: &str| meta.is_some_and(|meta| meta.contains_key(key));
    // A tracestate belongs to its traceparent: the caller's metadata supplies both or neither.
    let has_parent = is_said(Meta::TRACEPARENT) || is_said(Meta::TRACESTATE);
    for (key, value) in trace.into_iter().flat_map(TraceContext::fields) {
        let is_baggage = key == Meta::BAGGAGE;
        if if is_baggage { is_said(key) } else { has_parent } {
            continue;
        }
        separate(out, first);
        write_string(out, key);
        out.push(b':');
        write_string(out, value);
    }
    for (key, value) in meta.into_iter().flatten() {
        separate(out, first);
        write_string(out, key);
        out.push(b':');
        let more = trace.and_then(TraceContext::baggage);
        if let (Meta::BAGGAGE, Some(own), Some(more)) = (&**key, value.as_str(), more) {
            write_string(out, &join_baggage(own, more));
            continue;
        }
        serde_json::to_writer(&mut *out, value).expect("a JSON value is always JSON");
    }
    out.push(b'}');
}

fn separate(out: &mut Vec<u8>, first: usize) {
    if out.len() > first {
        out.push(b',');
    }
}

/// Joins the metadata at `open` and the params at `meta_end` to one object.
fn join(out: &mut Vec<u8>, open: usize, meta_end: usize) {
    if meta_end == open {
        return;
    }
    // Params that were given as text may have white space between their braces.
    let inner = out.get(meta_end + 1..).unwrap_or_default();
    if inner.trim_ascii() == b"}" {
        out.truncate(meta_end);
        out.push(b'}');
    } else if let Some(brace) = out.get_mut(meta_end) {
        *brace = b',';
    }
}

/// Appends a notification.
///
/// # Errors
/// If the params are not a JSON object; then nothing is appended.
pub fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> serde_json::Result<()> {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    write_method(out, method);
    let open = out.len();
    let written = serde_json::to_writer(&mut *out, params);
    if let Err(error) = written.and_then(|()| check_object(out.get(open..).unwrap_or_default())) {
        out.truncate(start);
        return Err(error);
    }
    finish(out, start);
    Ok(())
}

/// Appends a request, or a notification if `id` is `None`, whose params are known to be JSON.
pub(crate) fn write_raw(
    out: &mut Vec<u8>,
    id: Option<&RequestId>,
    method: &str,
    params: Option<&RawValue>,
) {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        id.write(out);
        out.push(b',');
    }
    out.extend_from_slice(br#""method":"#);
    write_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.get().as_bytes());
    }
    finish(out, start);
}

fn write_method(out: &mut Vec<u8>, method: &str) {
    out.extend_from_slice(br#""method":"#);
    write_string(out, method);
    out.extend_from_slice(br#","params":"#);
}

fn check_object(params: &[u8]) -> serde_json::Result<()> {
    match params.first() {
        Some(b'{') => Ok(()),
        _ => Err(serde::ser::Error::custom("params must be an object")),
    }
}

/// Closes the message that began at `start`.
fn finish(out: &mut Vec<u8>, start: usize) {
    make_line(out, start);
    out.extend_from_slice(b"}\n");
}

/// Replaces the line breaks in the JSON from `start` on by spaces. JSON from other sources may have line breaks between
/// its tokens (within strings they are always escaped), and a message must not.
fn make_line(out: &mut [u8], start: usize) {
    let mut at = start;
    while let Some(offset) = out
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'\n', b'\r', rest))
    {
        at += offset;
        if let Some(byte) = out.get_mut(at) {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_written_before_any_params() {
        let table = [
            ("{}", r#"{"_meta":{"a":1}}"#),
            ("{ }", r#"{"_meta":{"a":1}}"#),
            ("{\t\r\n}", r#"{"_meta":{"a":1}}"#),
            (r#"{ "b": 2 }"#, r#"{"_meta":{"a":1}, "b": 2 }"#),
            (r#"{"b":{ }}"#, r#"{"_meta":{"a":1},"b":{ }}"#),
        ];
        for (params, expected) in table {
            let extra = ExtraMeta {
                envelope: Some(r#""a":1"#),
                progress: false,
                trace: None,
                meta: None,
            };
            let mut out = Vec::new();
            write_request(&mut out, 7, "m", params.as_bytes(), extra).unwrap();
            let sent = String::from_utf8(out).unwrap();
            let whole = r#"{"jsonrpc":"2.0","id":7,"method":"m","params":"#;
            assert_eq!(sent, format!("{whole}{expected}}}\n"));
            assert!(serde_json::from_str::<Value>(&sent).is_ok(), "{sent}");
        }
    }

    #[test]
    fn request_is_one_line_even_with_line_breaks() {
        let meta = Map::from_iter([("a\nb".to_owned(), Value::from(vec!["c\r\nd"]))]);
        for progress in [false, true] {
            for meta in [None, Some(&meta)] {
                let extra = ExtraMeta {
                    envelope: None,
                    progress,
                    trace: None,
                    meta,
                };
                let mut out = b"before\n".to_vec();
                let params = b"{\"e\":\r\n1,\n\"f\\n\":{\n}\n}";
                write_request(&mut out, 7, "g\nh", params, extra).unwrap();
                let lines: Vec<_> = out.split_inclusive(|byte| *byte == b'\n').collect();
                assert_eq!((lines.len(), lines[0]), (2, &b"before\n"[..]));
                assert!(!lines[1].contains(&b'\r'));
                let sent: Value = serde_json::from_slice(lines[1]).unwrap();
                assert_eq!(sent["method"], "g\nh");
                assert_eq!(sent["params"]["e"], 1);
                assert_eq!(sent["params"]["_meta"]["a\nb"].is_array(), meta.is_some());
            }
        }
    }

    #[test]
    fn explicit_trace_context_of_caller_is_kept() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let fields = [
            ("traceparent", parent),
            ("tracestate", "a=1"),
            ("baggage", "b=2"),
        ];
        let trace: TraceContext = fields.into_iter().collect();
        let written = |meta: Value| {
            let extra = ExtraMeta {
                envelope: None,
                progress: false,
                trace: Some(&trace),
                meta: meta.as_object(),
            };
            let mut out = Vec::new();
            write_request(&mut out, 7, "m", b"{}", extra).unwrap();
            let sent: Value = serde_json::from_slice(&out).unwrap();
            sent["params"]["_meta"].clone()
        };
        let all = json!({"traceparent": parent, "tracestate": "a=1", "baggage": "b=2"});
        assert_eq!(written(Value::Null), all);
        let own = json!({"traceparent": "of the caller"});
        assert_eq!(
            written(own),
            json!({"traceparent": "of the caller", "baggage": "b=2"})
        );
        for (own, joined) in [
            (json!("c=3"), json!("c=3,b=2")),
            (json!("b=3"), json!("b=3")),
            (json!("not a baggage"), json!("not a baggage")),
            (json!(7), json!(7)),
        ] {
            let own = json!({"baggage": own, "x.y/z": 1});
            let expected =
                json!({"traceparent": parent, "tracestate": "a=1", "baggage": joined, "x.y/z": 1});
            assert_eq!(written(own), expected);
        }
    }
}
