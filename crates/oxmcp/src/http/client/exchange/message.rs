//! What HTTP needs to know of a message that is to be sent.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::http::client::exchange::known::Known;
use crate::http::client::exchange::mirror::headers_for;
use crate::{
    Error, Result, Revision,
    http::names::PROTOCOL_VERSION,
    json::{Checked, Cursor, Text},
    jsonrpc::{Envelope, Params, RequestId, answered},
    protocol::{Era, Method, RequestParams, method::CallTool},
    transport::Mirror,
};

/// A message of this side, and what is known of it without reading it again.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) body: Bytes,
    /// The id of a request.
    pub(crate) id: Option<RequestId>,
    pub(crate) about: Arc<About>,
}

/// What is the same for many a message.
#[derive(Debug)]
pub(crate) struct About {
    /// `None` for a response.
    pub(crate) method: Option<Box<str>>,
    /// The revision of a modern message, which names it.
    pub(crate) modern: Option<Revision>,
    /// All headers of a modern message.
    pub(crate) headers: HeaderMap,
}

/// Why a message is not sent, and the id of the request that it is.
type Unsent = (Option<RequestId>, Error);

/// A message as it is looked at once, before it is sent.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    /// `None` for a response.
    pub(crate) method: Option<&'a str>,
    pub(crate) params: Option<&'a RequestParams<'a>>,
    /// Its revision, where it is a modern message.
    pub(crate) modern: Option<Revision>,
}

/// Params as far as somebody who sends them looks into them.
struct SentParams<'a, 'k> {
    params: RequestParams<'a>,
    known_meta: &'k str,
    /// Whether that is the metadata.
    is_known: bool,
    /// Whether metadata stands before the name.
    meta_is_first: bool,
}

impl<'a> Params<'a> for SentParams<'a, '_> {
    const UNREAD: Self = Self {
        params: RequestParams::UNREAD,
        known_meta: "",
        is_known: false,
        meta_is_first: false,
    };

    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()> {
        self.params.whole = cursor.members(|key, cursor| {
            if key.is_str("_meta") && cursor.skip_known(self.known_meta) {
                self.is_known = true;
                return Ok(());
            }
            if key.is_str("name") {
                self.meta_is_first = self.is_known || self.params.meta.raw().is_some();
            }
            self.params.take_member(key, cursor)
        })?;
        Ok(())
    }

    fn whole(&self) -> Text<'a> {
        self.params.whole
    }
}

impl SentParams<'_, '_> {
    /// The revision of a modern message.
    fn modern(&self) -> Option<Revision> {
        match self.params.meta.classify(&Revision::ALL) {
            Ok(Era::Modern(revision)) => Some(revision),
            _ => None,
        }
    }
}

impl Outgoing {
    /// Looks into a message. `headers` are those that all messages have.
    ///
    /// # Errors
    /// Where it is none, which only a transport that wraps this one can bring about; and where it is a request that cannot be
    /// sent: its id is told with the error.
    pub(crate) fn read(
        message: &[u8],
        headers: &HeaderMap,
        mirror: &Mirror,
        known: &mut Known,
    ) -> Result<Self, Unsent> {
        let as_of = mirror.changes();
        let (id, about) = match known.call(message, as_of) {
            Some((id, about)) => (Some(id), about),
            None => About::read(message, headers, mirror, known, as_of)?,
        };
        let body = Bytes::copy_from_slice(message);
        Ok(Self { body, id, about })
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.about.method.as_deref()
    }

    /// Its revision, where it is a modern message.
    pub(crate) fn modern(&self) -> Option<Revision> {
        self.about.modern
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.method() == Some(method)
    }

    /// Whether a message brings the answer.
    pub(crate) fn is_answered_by(&self, message: &[u8]) -> bool {
        let Some(id) = &self.id else {
            return false;
        };
        // Most servers begin so, and then nobody needs to look into what follows.
        if let RequestId::Number(id) = id
            && let Some(rest) = message.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)
            && let Some(rest) = rest.strip_prefix(itoa::Buffer::new().format(*id).as_bytes())
            && (rest.starts_with(br#","result":"#) || rest.starts_with(br#","error":"#))
        {
            return true;
        }
        answered(message).any(|it| it == *id)
    }

    /// Which request a notification cancels.
    pub(crate) fn cancels(&self) -> Option<RequestId> {
        if !self.is("notifications/cancelled") {
            return None;
        }
        RequestId::from_text(self.param("requestId")?)
    }

    /// A member of the params.
    pub(crate) fn param(&self, name: &str) -> Option<Text<'_>> {
        let mut params = Text::UNREAD;
        let envelope = Envelope::parse(&self.body, &mut params).ok()?;
        let params = match envelope {
            Envelope::Request(request) => *request.params?,
            Envelope::Notification(notification) => *notification.params?,
            Envelope::Response(_) => return None,
        };
        member(params, name)
    }
}

impl About {
    /// Looks into a message of which nothing is known.
    fn read(
        message: &[u8],
        headers: &HeaderMap,
        mirror: &Mirror,
        known: &mut Known,
        as_of: u64,
    ) -> Result<(Option<RequestId>, Arc<Self>), Unsent> {
        let mut params = SentParams {
            known_meta: known.meta(),
            ..SentParams::UNREAD
        };
        let envelope = Envelope::parse(message, &mut params);
        let envelope = envelope.map_err(|malformed| (None, Error::from(malformed.error)))?;
        let (id, method, params) = match envelope {
            Envelope::Request(it) => (Some(it.id), Some(it.method), it.params),
            Envelope::Notification(it) => (None, Some(it.method), it.params),
            Envelope::Response(_) => (None, None, None),
        };
        let (modern, news) = match params {
            Some(params) if params.is_known => (known.modern(), None),
            Some(params) => (params.modern(), params.params.meta.raw()),
            None => (None, None),
        };
        let look = Look {
            method: method.as_deref(),
            params: params.map(|it| &it.params),
            modern,
        };
        let about = match Self::of(&look, headers, mirror) {
            Ok(about) => Arc::new(about),
            Err(error) => return Err((id, error)),
        };
        // What tells the revision must not come later.
        let named = params.filter(|it| modern.is_none() || it.meta_is_first);
        let name = named.and_then(|it| it.params.name);
        if let Some(meta) = news {
            known.learn_meta(meta, modern);
        }
        if let Some(name) = name
            && about.is_of_all_calls(name, mirror)
            && let Some(end) = end_within(message, name)
        {
            known.learn_call(message, end, &about, as_of);
        }
        Ok((id, about))
    }

    fn of(message: &Look<'_>, headers: &HeaderMap, mirror: &Mirror) -> Result<Self> {
        let mut all = HeaderMap::new();
        if let Some(revision) = message.modern {
            all.clone_from(headers);
            // What the protocol says is not the user's to change.
            all.insert(
                PROTOCOL_VERSION,
                HeaderValue::from_static(revision.as_str()),
            );
            for (name, value) in headers_for(message, mirror)? {
                all.insert(name, value);
            }
        }
        Ok(Self {
            method: message.method.map(Box::from),
            modern: message.modern,
            headers: all,
        })
    }

    /// Whether it is true of each call of the tool, whatever its arguments are.
    fn is_of_all_calls(&self, name: Text<'_>, mirror: &Mirror) -> bool {
        self.method.as_deref() == Some(CallTool::NAME)
            && name.as_str().is_some_and(|name| !mirror.knows(&name))
    }
}

/// Where a part of a message ends.
fn end_within(message: &[u8], part: Text<'_>) -> Option<usize> {
    let end = part.get().as_bytes().as_ptr_range().end;
    end.addr().checked_sub(message.as_ptr().addr())
}

/// A member of an object.
pub(crate) fn member<'a>(object: Text<'a>, name: &str) -> Option<Text<'a>> {
    let mut members = object.members();
    while let Some(key) = members.key() {
        let value = members.value()?;
        if key.is_str(name) {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;
    use serde_json::json;

    use super::*;
    use crate::protocol::Tool;

    const MODERN: Option<Revision> = Some(Revision::V2026_07_28);

    fn meta(more: &str) -> String {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{more}}}"#
        )
    }

    fn message(method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
    }

    fn read(message: &str, mirror: &Mirror, known: &mut Known) -> Outgoing {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("x/y"))]);
        Outgoing::read(message.as_bytes(), &headers, mirror, known).unwrap()
    }

    #[test]
    fn what_stands_in_each_request_is_read_once() {
        let of = |meta: &str| message("prompts/get", &format!(r#""_meta":{meta},"name":"add""#));
        let (plain, token) = (meta(""), meta(r#","progressToken":1"#));
        let long = meta(&format!(r#","x":"{}""#, "x".repeat(1 << 20)));
        let mut known = Known::default();
        for (meta, expected, kept) in [
            (&*plain, MODERN, &*plain),
            (&plain, MODERN, &plain),
            (&token, MODERN, &token),
            (&plain, MODERN, &plain),
            ("{}", None, "{}"),
            ("{}", None, "{}"),
            (&long, MODERN, ""),
            (&plain, MODERN, &plain),
        ] {
            let message = read(&of(meta), &Mirror::new(), &mut known);
            assert_eq!(message.modern(), expected, "{meta}");
            let headers = expected.map_or(0, |_| 4);
            assert_eq!(message.about.headers.len(), headers, "{meta}");
            assert_eq!(known.meta(), kept);
        }
        let legacy = r#"{"jsonrpc":"2.0","method":"x"}"#;
        let message = read(legacy, &Mirror::new(), &mut known);
        assert_eq!((message.modern(), message.about.headers.len()), (None, 0));
        let broken = of(&format!("{plain}}}"));
        let none = HeaderMap::new();
        assert!(Outgoing::read(broken.as_bytes(), &none, &Mirror::new(), &mut known).is_err());
    }

    #[test]
    fn calls_of_one_tool_are_looked_into_once() {
        let mirror = Mirror::new();
        mirror.begin(1 << 20, Vec::new());
        let mut known = Known::default();
        let call = |meta: &str, name: &str, arguments: &str| {
            message(
                "tools/call",
                &format!(r#"{meta}"name":"{name}","arguments":{arguments}"#),
            )
        };
        let mut is_known = |message: &str| {
            let learned = mirror.changes();
            let before = known.call(message.as_bytes(), learned);
            let read = read(message, &mirror, &mut known);
            assert_eq!(read.id, Some(RequestId::Number(1)));
            let fresh = self::read(message, &mirror, &mut Known::default());
            assert_eq!(read.about.headers, fresh.about.headers, "{message}");
            assert_eq!(read.modern(), fresh.modern(), "{message}");
            before.is_some()
        };
        let modern = format!(r#""_meta":{},"#, meta(""));
        for meta in [&*modern, ""] {
            assert!(!is_known(&call(meta, "add", r#"{"a":1}"#)));
            assert!(is_known(&call(meta, "add", r#"{"a":2}"#)));
            assert!(!is_known(&call(meta, "ad", "{}")));
            assert!(!is_known(&call(meta, "addd", "{}")));
            assert!(is_known(&call(meta, "add", "{}")));
        }
        // What comes behind the name must not matter.
        let late = message("tools/call", &format!(r#""name":"x","_meta":{}"#, meta("")));
        assert!(!is_known(&late) && !is_known(&late));
        let prompt = message("prompts/get", r#""name":"add""#);
        assert!(!is_known(&prompt) && !is_known(&prompt));
        let long = call("", &"x".repeat(1 << 20), "{}");
        assert!(!is_known(&long) && !is_known(&long));

        let schema = json!({"properties": {"a": {"type": "integer", "x-mcp-header": "A"}}});
        let tool = json!({"name": "add", "inputSchema": schema}).to_string();
        let tool: Tool = serde_json::from_str(&tool).unwrap();
        assert!(mirror.learn(&tool).is_ok());
        for a in [1, 2] {
            let message = call(&modern, "add", &format!(r#"{{"a":{a}}}"#));
            assert!(!is_known(&message), "it wants an argument repeated");
        }
        for name in 0..100 {
            assert!(!is_known(&call("", &name.to_string(), "{}")));
        }
        assert!(is_known(&call("", "99", "{}")) && !is_known(&call("", "0", "{}")));
    }

    #[test]
    fn an_answer_is_known_by_its_id() {
        let mut asked = read(&message("x", ""), &Mirror::new(), &mut Known::default());
        for (id, answer, expected) in [
            (1, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
            (1, r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, true),
            (1, r#"{"result":{},"id":1,"jsonrpc":"2.0"}"#, true),
            (1, r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, true),
            (1, r#"{"jsonrpc":"2.0","id":1,"method":"result"}"#, false),
            (1, r#"{"jsonrpc":"2.0","id":12,"result":{}}"#, false),
            (12, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, false),
            (1, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#, false),
        ] {
            asked.id = Some(RequestId::Number(id));
            assert_eq!(
                asked.is_answered_by(answer.as_bytes()),
                expected,
                "{answer}"
            );
        }
        asked.id = None;
        assert!(!asked.is_answered_by(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    }
}
