//! The message of a request, its era, and its checks.
//!
//! If the body names a revision, it decides the era, and the header is checked against it. Otherwise a modern header makes the
//! message modern. A request is then rejected, because its body must also name the revision; a notification is accepted.

use http::{HeaderMap, HeaderName};
use oxmcp_protocol::{
    Method, Revision,
    internal::{Envelope, Era, Params, RequestMeta, RequestParams, unsupported_version},
    method::{self, Initialize, REQUESTS_TO_SERVER},
};

use super::{
    check::{Check, Checked, Failure},
    head::{is_repeated, text},
    refusal::Refusal,
};
use crate::{
    error::Error,
    extension::registry::Extensions,
    http::names::{METHOD, NAME, PROTOCOL_VERSION, SESSION_ID},
    session::tolerance::Tolerance,
};

/// The parts of a server that messages are checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served<'a> {
    pub(crate) revisions: &'a [Revision],
    pub(crate) extensions: &'a Extensions,
    /// `None` before the server for the message is known.
    pub(crate) tolerance: Option<&'a Tolerance>,
}

impl Served<'_> {
    /// The value before the server for the message is known.
    const NOTHING: Self = Self {
        revisions: &[],
        extensions: &Extensions::NONE,
        tolerance: None,
    };

    /// Whether a legacy revision is served, which has sessions.
    fn has_legacy(&self) -> bool {
        self.revisions.iter().any(|it| !it.is_modern())
    }

    /// The modern revision with this name, if it is served.
    fn modern(&self, name: &str) -> Option<Revision> {
        let revision = name.parse().ok();
        revision.filter(|it: &Revision| it.is_modern() && self.revisions.contains(it))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Notification,
    Response,
}

/// The value of `MCP-Protocol-Version`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Header {
    Absent,
    Known(Revision),
    Unknown(String),
}

/// A message, with the headers that came with it.
pub(crate) struct Message<'m> {
    pub(crate) served: Served<'m>,
    pub(crate) headers: &'m HeaderMap,
    pub(crate) method: &'m str,
    pub(crate) params: &'m RequestParams<'m>,
    kind: Kind,
    header: Header,
    /// Whether the rules of modern revisions apply to the message.
    is_modern: bool,
}

impl Header {
    fn of(headers: &HeaderMap) -> Self {
        text(headers, &PROTOCOL_VERSION).map_or(Self::Absent, |name| {
            let known = name.parse();
            known.map_or_else(|_| Self::Unknown(name.into_owned()), Self::Known)
        })
    }
}

/// The revision that the header names, for requests whose body names none.
///
/// # Errors
/// The refusal, if the header names an unknown revision.
pub(crate) fn named(served: &[Revision], headers: &HeaderMap) -> Result<Option<Revision>, Refusal> {
    match Header::of(headers) {
        Header::Absent => Ok(None),
        Header::Known(revision) => Ok(Some(revision)),
        Header::Unknown(name) => Err(unserved(served, &name)),
    }
}

pub(crate) fn unserved(served: &[Revision], version: &str) -> Refusal {
    Refusal::new(Check::Revision, unsupported_version(served, version).into())
}

impl<'m> Message<'m> {
    pub(crate) fn new(
        headers: &'m HeaderMap,
        envelope: &'m Envelope<'_, RequestParams<'_>>,
    ) -> Self {
        let (kind, method, params) = match envelope {
            Envelope::Request(it) => (Kind::Request, &*it.method, it.params),
            Envelope::Notification(it) => (Kind::Notification, &*it.method, it.params),
            Envelope::Response(_) => (Kind::Response, "", None),
        };
        let mut message = Self {
            served: Served::NOTHING,
            headers,
            method,
            params: params.unwrap_or(&RequestParams::UNREAD),
            kind,
            header: Header::of(headers),
            is_modern: false,
        };
        message.is_modern = message.claims() || message.is_modern_by_header();
        message
    }

    /// Whether modern rules apply to the message. This does not depend on the server or on any check.
    pub(crate) fn is_modern(&self) -> bool {
        self.is_modern && self.kind != Kind::Response
    }

    fn meta(&self) -> &RequestMeta<'m> {
        &self.params.meta
    }

    /// Whether the body marks the message as modern.
    fn claims(&self) -> bool {
        match self.kind {
            Kind::Request => self.meta().claims_modern(),
            Kind::Notification => self.meta().version().is_some(),
            Kind::Response => false,
        }
    }

    /// Whether the header makes the message modern, so that the body of a request must also name the revision. `initialize` is sent
    /// before the revision is known, so a header never makes it modern.
    fn is_modern_by_header(&self) -> bool {
        matches!(self.header, Header::Known(revision) if revision.is_modern())
            && !self.opens_session()
    }

    fn opens_session(&self) -> bool {
        self.kind == Kind::Request && self.method == Initialize::NAME && !self.claims()
    }

    pub(crate) fn is_modern_request(&self) -> bool {
        self.kind == Kind::Request && self.is_modern
    }

    /// The modern revision whose rules apply to the message.
    fn revision(&self) -> Option<Revision> {
        if !self.is_modern {
            return None;
        }
        match (self.meta().version(), &self.header) {
            (Some(version), _) => self.served.modern(&version),
            (None, Header::Known(revision)) => Some(*revision),
            (None, _) => None,
        }
    }

    /// The era of the message, if it has passed all checks.
    pub(crate) fn era(&self) -> Era {
        self.revision().map_or(Era::Legacy, Era::Modern)
    }

    fn unsupported(&self, version: &str) -> Failure {
        unsupported_version(self.served.revisions, version).into()
    }
}

/// [`Check::Shape`], except for errors that parsing finds. Modern servers do not send requests, so there is nothing for a response
/// to answer.
pub(crate) fn shape(message: &Message<'_>) -> Checked {
    if message.kind == Kind::Response && message.is_modern {
        return Err(
            "unexpected response: clients of this revision send only requests and notifications"
                .into(),
        );
    }
    Ok(())
}

/// [`Check::Shape`] for a message within an array.
pub(crate) fn batched(message: &Message<'_>) -> Checked {
    if message.is_modern {
        return Err(
            "unsupported batch: only revision 2025-03-26 has batches; send one message at a time"
                .into(),
        );
    }
    Ok(())
}

/// [`Check::RepeatedHeader`].
pub(crate) fn repeated_header(message: &Message<'_>) -> Checked {
    static ROUTING: [HeaderName; 4] = [PROTOCOL_VERSION, SESSION_ID, METHOD, NAME];
    if message.headers.len() == message.headers.keys_len() {
        // No header is repeated.
        return Ok(());
    }
    let own = message.served.extensions.headers_for(message.method);
    let own = own.map(|(_, name)| name);
    let mut names = ROUTING.iter().map(HeaderName::as_str).chain(own);
    match names.find(|name| is_repeated(message.headers, name)) {
        Some(name) => Err(format!("Header mismatch: duplicate header `{name}`").into()),
        None => Ok(()),
    }
}

/// [`Check::AmbiguousParams`].
pub(crate) fn ambiguous_params(message: &Message<'_>) -> Checked {
    message.params.check().map_err(Failure::from)
}

/// [`Check::RevisionHeader`]. Notifications need no headers, but those that are present must be correct.
pub(crate) fn revision_header(message: &Message<'_>) -> Checked {
    let is_request = message.kind == Kind::Request;
    let missing = || {
        let what = message.meta().version();
        let what = what.map_or_else(
            || "the server supports only revisions that require it".to_owned(),
            |version| format!("the body has {version:?}"),
        );
        Err(format!("Header mismatch: missing header `MCP-Protocol-Version`; {what}").into())
    };
    match (message.meta().version(), &message.header) {
        (Some(_), Header::Absent) if is_request => missing(),
        (Some(version), Header::Known(header)) if *version != *header.as_str() => {
            Err(disagreement(header.as_str(), &version))
        }
        (Some(version), Header::Unknown(header)) if *version != *header => {
            Err(disagreement(header, &version))
        }
        (None, Header::Absent)
            if is_request
                && !message.claims()
                && !message.opens_session()
                && !message.served.has_legacy() =>
        {
            missing()
        }
        _ => Ok(()),
    }
}

fn disagreement(header: &str, body: &str) -> Failure {
    format!("Header mismatch: `MCP-Protocol-Version` is {header:?}, but the body has {body:?}")
        .into()
}

/// [`Check::Revision`].
pub(crate) fn revision(message: &Message<'_>) -> Checked {
    if let Some(version) = message.meta().version() {
        return match message.served.modern(&version) {
            Some(_) => Ok(()),
            None => Err(message.unsupported(&version)),
        };
    }
    if message.opens_session() {
        if message.served.has_legacy() {
            return Ok(());
        }
        let asked = asked(message.params);
        return Err(message.unsupported(asked.as_deref().unwrap_or_default()));
    }
    match &message.header {
        Header::Unknown(name) => Err(message.unsupported(name)),
        Header::Known(revision) if !message.served.revisions.contains(revision) => {
            Err(message.unsupported(revision.as_str()))
        }
        _ => Ok(()),
    }
}

/// The revision that `initialize` requests.
fn asked(params: &RequestParams<'_>) -> Option<String> {
    let version = params.first_member("protocolVersion")?;
    version.as_str().map(std::borrow::Cow::into_owned)
}

/// [`Check::Meta`].
pub(crate) fn meta(message: &Message<'_>) -> Checked {
    if !message.is_modern_request() {
        return Ok(());
    }
    if !message.claims() {
        return Err(message.meta().what_is_missing().into());
    }
    let classified = message.meta().classify(message.served.revisions);
    classified.map(drop).map_err(Failure::from)
}

/// [`Check::Method`]. In sessions, dispatch checks the method.
pub(crate) fn method(message: &Message<'_>) -> Checked {
    let Some(revision) = message.revision().filter(|_| message.kind == Kind::Request) else {
        return Ok(());
    };
    let name = message.method;
    if method::is_in(REQUESTS_TO_SERVER, name, revision)
        || message.served.extensions.serves(name, revision)
    {
        return Ok(());
    }
    Err(Error::method_not_found(name).into())
}
