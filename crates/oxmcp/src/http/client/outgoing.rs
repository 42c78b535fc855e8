//! What HTTP needs to know of a message that is to be sent.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::mirror::headers_for;
use crate::{
    Error, Result, Revision,
    json::Text,
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

impl Outgoing {
    /// Looks into a message.
    ///
    /// # Errors
    /// Where it is none, which only a transport that wraps this one can bring about; and where it is a request that cannot be
    /// sent: its id is told with the error.
    pub(super) fn read(
        message: &[u8],
        mirror: &Mirror,
    ) -> Result<Self, (Option<RequestId>, Error)> {
        let mut params = RequestParams::UNREAD;
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
        let era = params.map(|params| params.meta.classify(&Revision::ALL));
        let modern = match era {
            Some(Ok(Era::Modern(revision))) => Some(revision),
            _ => None,
        };
        let look = Look {
            method: kind.method(),
            params,
            modern,
        };
        let headers = match headers_for(&look, mirror) {
            Ok(headers) => headers,
            Err(error) => return Err((kind.id().cloned(), error)),
        };
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
