//! A JSON-RPC message that is posted, with the parts of it that HTTP repeats or depends on.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use oxmcp_json::Text;
use oxmcp_protocol::{
    RequestId,
    http_headers::names::{MCP_METHOD, MCP_NAME},
    internal::{Envelope, Era, Params, RequestMeta, RequestParams, answered_ids},
    revision::Revision,
};

use crate::{
    error::Error,
    http::names::{METHOD, NAME},
    transport::mirror::HeaderMirror,
};

/// A message that this side sends.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingMessage {
    pub(crate) body: Bytes,
    /// The id, if the message is a request.
    pub(crate) id: Option<RequestId>,
    /// `None` for a response.
    method: Option<Box<str>>,
    /// The revision that a modern message names.
    pub(crate) modern: Option<Revision>,
    /// The headers of a modern request that repeat parts of it, for intermediaries that do not read bodies.
    /// See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).
    pub(crate) mirrored: Vec<(HeaderName, HeaderValue)>,
    /// The headers of a request that repeat its trace context: to an intermediary, the HTTP request is a part of the trace.
    pub(crate) trace: Vec<(HeaderName, HeaderValue)>,
}

impl OutgoingMessage {
    /// Parses a message.
    ///
    /// # Errors
    /// If the message is malformed, which only a transport that wraps this one can cause; and, with its id, if it is a request that
    /// cannot be sent.
    pub(crate) fn read(
        message: &[u8],
        mirror: &HeaderMirror,
    ) -> Result<Self, (Option<RequestId>, Error)> {
        let mut params = RequestParams::UNREAD;
        let envelope = Envelope::parse(message, &mut params);
        let envelope = envelope.map_err(|malformed| (None, Error::from(malformed.error)))?;
        let (id, method, params) = match envelope {
            Envelope::Request(it) => (Some(it.id), Some(it.method), it.params),
            Envelope::Notification(it) => (None, Some(it.method), it.params),
            Envelope::Response(_) => (None, None, None),
        };
        let modern = params.and_then(modern_revision);
        let mut mirrored = Vec::new();
        if let (Some(method), Some(params), Some(_)) = (&method, params, modern) {
            let added = mirror.each_header(method, Some(params), |name, value| {
                mirrored.extend(header(name, value));
            });
            if let Err(error) = added {
                return Err((id, error));
            }
        }
        let trace = params.filter(|params| params.meta.has_traceparent());
        let trace = trace.map_or_else(Vec::new, |params| trace_headers(&params.meta));
        let method = method.map(|it| it.as_ref().into());
        Ok(Self {
            body: Bytes::copy_from_slice(message),
            id,
            method,
            modern,
            mirrored,
            trace,
        })
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.method() == Some(method)
    }

    /// Whether a message is, or contains, the answer.
    pub(crate) fn is_answered_by(&self, message: &[u8]) -> bool {
        let id = self.id.as_ref();
        let is_own = |it: &RequestId, id| it == id || it.respelled().as_ref() == Some(id);
        id.is_some_and(|id| answered_ids(message).any(|it| is_own(&it, id)))
    }

    /// The request that a notification cancels.
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
        let mut members = params.members();
        let (_, value) = members.find(|(key, _)| key.is_str(name))?;
        Some(value)
    }
}

fn modern_revision(params: &RequestParams<'_>) -> Option<Revision> {
    match params.meta.classify(&Revision::ALL) {
        Ok(Era::Modern(revision)) => Some(revision),
        _ => None,
    }
}

fn trace_headers(meta: &RequestMeta<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let context = meta.trace_context();
    let headers = context.fields().map(|(name, value)| {
        let value = HeaderValue::try_from(value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    headers.flatten().collect()
}

/// A header that repeats a part of a message. All of them can be sent: the names from extensions were checked before.
fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = match name {
        MCP_METHOD => METHOD,
        MCP_NAME => NAME,
        other => HeaderName::try_from(other).ok()?,
    };
    Some((name, HeaderValue::try_from(value).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use oxmcp_protocol::Tool;

    const MODERN: Option<Revision> = Some(Revision::V2026_07_28);

    fn meta(more: &str) -> String {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{more}}}"#
        )
    }

    fn message(method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
    }

    fn read(message: &str, mirror: &HeaderMirror) -> OutgoingMessage {
        OutgoingMessage::read(message.as_bytes(), mirror).unwrap()
    }

    #[test]
    fn modern_messages_name_their_revision_and_have_headers() {
        let of = |meta: &str| message("prompts/get", &format!(r#""_meta":{meta},"name":"add""#));
        let (plain, token) = (meta(""), meta(r#","progressToken":1"#));
        let long = meta(&format!(r#","x":"{}""#, "x".repeat(1 << 20)));
        for (meta, expected) in [
            (&*plain, MODERN),
            (&token, MODERN),
            ("{}", None),
            (&long, MODERN),
        ] {
            let message = read(&of(meta), &HeaderMirror::new());
            assert_eq!(message.modern, expected, "{meta}");
            let headers = expected.map_or(0, |_| 2);
            assert_eq!(message.mirrored.len(), headers, "{meta}");
        }
        let legacy = r#"{"jsonrpc":"2.0","method":"x"}"#;
        let message = read(legacy, &HeaderMirror::new());
        assert_eq!((message.modern, message.mirrored.len()), (None, 0));
        let broken = of(&format!("{plain}}}"));
        assert!(OutgoingMessage::read(broken.as_bytes(), &HeaderMirror::new()).is_err());
    }

    #[test]
    fn calls_mirror_tool_headers_wherever_metadata_is() {
        let mirror = HeaderMirror::new();
        mirror.begin(1 << 20, Vec::new());
        let call = |meta: &str, name: &str, arguments: &str| {
            let params = format!(r#"{meta}"name":"{name}","arguments":{arguments}"#);
            read(&message("tools/call", &params), &mirror)
        };
        let modern = format!(r#""_meta":{},"#, meta(""));
        for name in ["add", "ad", "addd"] {
            let message = call(&modern, name, r#"{"a":1}"#);
            assert_eq!(message.id, Some(RequestId::Number(1)));
            assert_eq!(message.mirrored.len(), 2);
            assert_eq!(message.mirrored[1].1, name);
            assert!(call("", name, "{}").mirrored.is_empty());
        }
        let late = message("tools/call", &format!(r#""name":"x","_meta":{}"#, meta("")));
        let late = read(&late, &mirror);
        assert_eq!((late.modern, late.mirrored.len()), (MODERN, 2));

        let schema = json!({"properties": {"a": {"type": "integer", "x-mcp-header": "A"}}});
        let tool = json!({"name": "add", "inputSchema": schema}).to_string();
        let tool: Tool = serde_json::from_str(&tool).unwrap();
        assert!(mirror.learn(&tool).is_ok());
        for a in ["1", "2"] {
            let message = call(&modern, "add", &format!(r#"{{"a":{a}}}"#));
            assert_eq!(message.mirrored.len(), 3);
            assert_eq!(message.mirrored[2].1, a);
        }
    }

    #[test]
    fn response_is_matched_by_its_id() {
        let mut asked = read(&message("x", ""), &HeaderMirror::new());
        for (id, answer, expected) in [
            (1, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
            (1, r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, true),
            (1, r#"{"result":{},"id":1,"jsonrpc":"2.0"}"#, true),
            (1, r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, true),
            (1, r#"{"jsonrpc":"2.0","id":1,"method":"result"}"#, false),
            (1, r#"{"jsonrpc":"2.0","id":12,"result":{}}"#, false),
            (12, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, false),
            (1, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#, true),
            (1, r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#, true),
            (1, r#"{"jsonrpc":"2.0","id":"12","result":{}}"#, false),
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
