//! Ids of the requests that a message answers, read without checking the message.

use std::{iter, str};

use oxmcp_json::{SPACE, Text};

use crate::{framing::after_byte_order_mark, jsonrpc::id::RequestId};

/// Returns the ids of the requests that a message or a batch answers, even if it is malformed or truncated. It reads
/// only the beginning if that suffices, and makes one pass at most; arrays nested within a batch are skipped.
pub fn answered_ids(bytes: &[u8]) -> impl Iterator<Item = RequestId> {
    let text = start(after_byte_order_mark(bytes).unwrap_or(bytes)).trim_start_matches(SPACE);
    let is_batch = text.starts_with('[');
    let mut one = (!is_batch).then(|| answered_by(text)).flatten();
    let mut items = is_batch.then(|| Text::checked(text).items());
    iter::from_fn(move || match &mut items {
        Some(items) => items.find_map(|item| answered_by(item.get())),
        None => one.take(),
    })
}

/// The id of the request that one message answers.
pub(crate) fn answered_by(text: &str) -> Option<RequestId> {
    let text = text.trim_start_matches(SPACE);
    if let Some(id) = usual_beginning(text) {
        return Some(RequestId::Number(id));
    }
    // The text is unchecked: malformed JSON gives a wrong id at worst, for a message that is malformed as well.
    let mut members = Text::checked(text).members();
    let mut id = None;
    let mut has_outcome = false;
    while let Some(key) = members.key() {
        let name = key.as_str();
        match name.as_deref() {
            Some("method") => return None,
            Some("result" | "error") => has_outcome = true,
            _ => {}
        }
        if has_outcome && id.is_some() {
            break;
        }
        let Some(value) = members.value() else { break };
        if name.as_deref() == Some("id") {
            let rest = text.as_bytes().as_ptr_range().end;
            let is_whole = value.get().as_bytes().as_ptr_range().end < rest;
            // A number at the very end may be truncated.
            id = RequestId::from_text(value).filter(|_| is_whole);
        }
    }
    id.filter(|_| has_outcome)
}

/// The id of a response that begins in the usual way, found without parsing the members.
fn usual_beginning(text: &str) -> Option<i64> {
    let text = text.strip_prefix(r#"{"jsonrpc":"2.0","id":"#)?;
    let (id, rest) = text.split_once(',')?;
    let has_outcome = [r#""result":"#, r#""error":"#]
        .iter()
        .any(|key| rest.starts_with(key));
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
    id.parse().ok().filter(|_| has_outcome && is_number)
}

/// The valid UTF-8 at the beginning of `bytes`.
pub(crate) fn start(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_else(|_| {
        let first = bytes.utf8_chunks().next();
        first.map_or("", |chunk| chunk.valid())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_distinguished_from_other_messages() {
        let table: [(&[u8], &[i64]); 30] = [
            (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, &[1]),
            (br#"{"jsonrpc":"2.0","id":12,"error":{}}"#, &[12]),
            (br#"{"jsonrpc":"2.0","id":1 , "result":{}}"#, &[1]),
            (br#"{"jsonrpc":"2.0","id":1,"method":"result"}"#, &[]),
            (br#"{"result":{},"jsonrpc":"2.0","id":1}"#, &[1]),
            (br#" {"id":1,"error":{"code":1,"message":""}}"#, &[1]),
            (br#"{"id":1,"method":"ping"}"#, &[]),
            (br#"{"method":"x","id":1,"result":{}}"#, &[]),
            (br#"{"id":null,"error":{"code":1,"message":""}}"#, &[]),
            (br#"{"params":{"id":1,"result":{}}}"#, &[]),
            (br#"[{"method":"x"}, {"id":1,"result":{}}]"#, &[1]),
            (br#"[{"id":2,"result":{}},7,{"id":3,"error":0}]"#, &[2, 3]),
            (br#"[[{"id":1,"result":{}}]]"#, &[]),
            (b"\xef\xbb\xbf{\"id\":1,\"result\":{}}", &[1]),
            (b" \xef\xbb\xbf[{\"id\":1,\"result\":{}}]", &[1]),
            (br#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#, &[1]),
            // Malformed messages.
            (br#"{"id":1,"result":"#, &[1]),
            (br#"{"id":1,"result":{"a":[1,"x"#, &[1]),
            (br#"{"id":1,"result":{}} {}"#, &[1]),
            (br#"{"id":1,"result":{},"result":{}}"#, &[1]),
            (br#"{"result":{},"result":{},"id":1}"#, &[1]),
            (br#"{"id":1,"resul"#, &[]),
            (br#"{"result":{},"id":1"#, &[]),
            (br#"{"result":{},"id":1,"#, &[1]),
            (b"{\"id\":1,\"result\":\"\xff\"}", &[1]),
            (b"\xff{\"id\":1,\"result\":1}", &[]),
            (br#"[{"id":1,"result":{}},{"id":2,"result""#, &[1]),
            (br#"[{"id":1,"result":{}},}"#, &[1]),
            (b"[[[", &[]),
            (b"", &[]),
        ];
        for (message, expected) in table {
            let ids: Vec<_> = answered_ids(message).collect();
            let expected: Vec<_> = expected.iter().copied().map(RequestId::from).collect();
            assert_eq!(ids, expected, "{}", message.escape_ascii());
        }
        let text = answered_ids(br#"{"id":"1","result":{}}"#).next();
        assert_eq!(text, Some(RequestId::from("1")));
    }

    // Attack: resource exhaustion.
    #[test]
    fn brackets_of_any_depth_are_skipped_without_recursion() {
        let open = "[".repeat(100_000);
        let shut = "]".repeat(100_000);
        for deep in [open.clone(), format!("{open}{shut}")] {
            assert_eq!(answered_ids(deep.as_bytes()).count(), 0);
            let result = format!(r#"{{"result":{deep},"id":1}}"#);
            let expected = usize::from(deep.ends_with(']'));
            assert_eq!(answered_ids(result.as_bytes()).count(), expected);
        }
    }
}
