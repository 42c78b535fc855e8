//! What HTTP needs to know of a message that is to be sent.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::mirror::headers_for;
use crate::{
    Error, Result, Revision,
    json::{Checked, Cursor, Text},
    jsonrpc::{Envelope, Params, RequestId},
    protocol::{Era, RequestParams},
    transport::Mirror,
};

/// A message of this side, and what is known of it without reading it again.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) body: Bytes,
    pub(super) kind: Kind,
    /// Its revision, where it is a modern message, which names it.
    pub(super) modern: Option<Revision>,
    /// What it mirrors into its headers.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// What kind of message it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request { id: RequestId, method: Box<str> },
    Notification { method: Box<str> },
    Response,
}

/// A message as it is looked at once, before it is sent.
#[derive(Debug)]
pub(super) struct Look<'a> {
    /// `None` for a response.
    pub(super) method: Option<&'a str>,
    pub(super) params: Option<&'a RequestParams<'a>>,
    /// Its revision, where it is a modern message.
    pub(super) modern: Option<Revision>,
}

/// How long metadata may be to be remembered.
const MAX_KNOWN: usize = 4 << 10;

/// The metadata of the last request that had any. A session says the same in most requests, which then need not be read
/// there.
#[derive(Debug, Default)]
pub(super) struct KnownMeta {
    text: String,
    modern: Option<Revision>,
}

/// Params as far as somebody who sends them looks into them.
struct SentParams<'a, 'k> {
    params: RequestParams<'a>,
    known_meta: &'k str,
    /// Whether that is the metadata.
    is_known: bool,
}

impl<'a> Params<'a> for SentParams<'a, '_> {
    const UNREAD: Self = Self {
        params: RequestParams::UNREAD,
        known_meta: "",
        is_known: false,
    };

    fn take(&mut self, cursor: &mut Cursor<'a>) -> Checked<()> {
        self.params.whole = cursor.members(|key, cursor| {
            if key.is_str("_meta") && cursor.skip_known(self.known_meta) {
                self.is_known = true;
                return Ok(());
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
    /// Looks into a message.
    ///
    /// # Errors
    /// Where it is none, which only a transport that wraps this one can bring about; and where it is a request that cannot be
    /// sent: its id is told with the error.
    pub(super) fn read(
        message: &[u8],
        mirror: &Mirror,
        known: &mut KnownMeta,
    ) -> Result<Self, (Option<RequestId>, Error)> {
        let mut params = SentParams {
            known_meta: &known.text,
            ..SentParams::UNREAD
        };
        let envelope = Envelope::parse(message, &mut params);
        let envelope = envelope.map_err(|malformed| (None, Error::from(malformed.error)))?;
        let (kind, params) = match envelope {
            Envelope::Request(request) => {
                let (id, method) = (request.id, request.method.into());
                (Kind::Request { id, method }, request.params)
            }
            Envelope::Notification(it) => {
                let method = it.method.into();
                (Kind::Notification { method }, it.params)
            }
            Envelope::Response(_) => (Kind::Response, None),
        };
        let (modern, news) = match params {
            Some(params) if params.is_known => (known.modern, None),
            Some(params) => (params.modern(), params.params.meta.raw()),
            None => (None, None),
        };
        let look = Look {
            method: kind.method(),
            params: params.map(|it| &it.params),
            modern,
        };
        let headers = match headers_for(&look, mirror) {
            Ok(headers) => headers,
            Err(error) => return Err((kind.id().cloned(), error)),
        };
        if let Some(meta) = news {
            known.learn(meta, modern);
        }
        Ok(Self {
            body: Bytes::copy_from_slice(message),
            kind,
            modern,
            headers,
        })
    }

    /// The id of a request.
    pub(super) fn id(&self) -> Option<&RequestId> {
        self.kind.id()
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.kind.method()
    }

    pub(super) fn is(&self, method: &str) -> bool {
        self.method() == Some(method)
    }

    /// Which request a notification cancels.
    pub(super) fn cancels(&self) -> Option<RequestId> {
        if !self.is("notifications/cancelled") {
            return None;
        }
        RequestId::from_text(self.param("requestId")?)
    }

    /// A member of the params.
    pub(super) fn param(&self, name: &str) -> Option<Text<'_>> {
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

impl KnownMeta {
    fn learn(&mut self, meta: &str, modern: Option<Revision>) {
        self.text.clear();
        if meta.len() <= MAX_KNOWN {
            self.text.push_str(meta);
        }
        self.modern = modern;
    }
}

impl Kind {
    fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request { id, .. } => Some(id),
            _ => None,
        }
    }

    fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method } => Some(method),
            Self::Response => None,
        }
    }
}

/// A member of an object.
pub(super) fn member<'a>(object: Text<'a>, name: &str) -> Option<Text<'a>> {
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
    use super::*;

    #[test]
    fn what_stands_in_each_request_is_read_once() {
        let meta = |token: &str| {
            format!(
                r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{token}}}"#
            )
        };
        let of = |meta: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{meta},"name":"add"}}}}"#
            )
        };
        let (plain, token) = (meta(""), meta(r#","progressToken":1"#));
        let long = meta(&format!(r#","x":"{}""#, "x".repeat(MAX_KNOWN)));
        let mut known = KnownMeta::default();
        let modern = Some(Revision::V2026_07_28);
        for (meta, expected, kept) in [
            (&*plain, modern, &*plain),
            (&plain, modern, &plain),
            (&token, modern, &token),
            (&plain, modern, &plain),
            ("{}", None, "{}"),
            ("{}", None, "{}"),
            (&long, modern, ""),
            (&plain, modern, &plain),
        ] {
            let message = Outgoing::read(of(meta).as_bytes(), &Mirror::new(), &mut known).unwrap();
            assert_eq!(message.modern, expected, "{meta}");
            let named = expected.map_or(0, |_| 2);
            assert_eq!(message.headers.len(), named, "{meta}");
            assert_eq!(known.text, kept);
        }
        let legacy = r#"{"jsonrpc":"2.0","method":"x"}"#;
        let message = Outgoing::read(legacy.as_bytes(), &Mirror::new(), &mut known).unwrap();
        assert_eq!((message.modern, message.headers.len()), (None, 0));
        let broken = of(&format!("{plain}}}"));
        assert!(Outgoing::read(broken.as_bytes(), &Mirror::new(), &mut known).is_err());
    }
}
