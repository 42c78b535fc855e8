//! The head of a request: its headers and media types, and the checks that do not need the body.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{self, AsHeaderName},
    request::Parts,
};
use oxmcp_protocol::http_headers::ReceivedHeader;

use super::check::{Checked, Failure};
use crate::http::names::SESSION_ID;

const ALLOW: &str = "GET, POST, DELETE";
const ACCEPT_BOTH: &str =
    "client must accept JSON and event streams: send `Accept: application/json, text/event-stream`";

/// [`Check::HttpMethod`](super::check::Check::HttpMethod). GET and DELETE belong to sessions, which are looked up later.
pub(crate) fn http_method(parts: &Parts) -> Checked {
    if matches!(parts.method, Method::GET | Method::POST | Method::DELETE) {
        return Ok(());
    }
    let message = format!("HTTP method {} is not allowed; use {ALLOW}", parts.method);
    Err(Failure::from(message).with_allow(ALLOW))
}

/// [`Check::ContentType`](super::check::Check::ContentType).
pub(crate) fn content_type(parts: &Parts) -> Checked {
    if parts.method != Method::POST || is_json(&parts.headers) {
        return Ok(());
    }
    Err("unsupported content type: send `Content-Type: application/json`".into())
}

/// [`Check::Accept`](super::check::Check::Accept). A client must accept both types; one of them is enough to be answered.
pub(crate) fn accept(parts: &Parts, accepted: Accepted) -> Checked {
    match parts.method {
        Method::POST if !accepted.json && !accepted.events => Err(ACCEPT_BOTH.into()),
        Method::GET if !accepted.events || !accepted.is_stated => {
            Err("client must accept event streams: send `Accept: text/event-stream`".into())
        }
        _ => Ok(()),
    }
}

/// [`Check::Accept`](super::check::Check::Accept) to the letter: a client that sends messages names both types, or ranges of them.
pub(crate) fn accept_both(parts: &Parts, accepted: Accepted) -> Checked {
    let accepts_both = accepted.json && accepted.events && accepted.is_stated;
    if parts.method != Method::POST || accepts_both {
        return Ok(());
    }
    Err(ACCEPT_BOTH.into())
}

/// [`Check::BodyLength`](super::check::Check::BodyLength), for bodies whose length is in the head.
pub(crate) fn body_length(limit: usize, parts: &Parts) -> Checked {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok());
    if length
        .and_then(|length| length.parse::<u128>().ok())
        .is_some_and(|length| length > limit as u128)
    {
        return Err(Failure::too_long(limit));
    }
    Ok(())
}

/// The value of a header that occurs once. A repeated header counts as absent, because a proxy in front of the endpoint may have
/// used the other value.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    only(headers, name).ok().flatten()
}

/// The value of a header that may occur at most once.
pub(crate) fn only<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("duplicate header `{name}`").into());
    }
    let value = value.to_str();
    let value = value.map_err(|_| Failure::from(format!("invalid header `{name}`: not ASCII")))?;
    Ok(Some(value))
}

/// The values of a header.
pub(crate) fn given<'h>(headers: &'h HeaderMap, name: impl AsHeaderName) -> ReceivedHeader<'h> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => ReceivedHeader::Nothing,
        (Some(value), None) => ReceivedHeader::Value(value.as_bytes()),
        (Some(_), Some(_)) => ReceivedHeader::Several,
    }
}

pub(crate) fn is_repeated(headers: &HeaderMap, name: &str) -> bool {
    given(headers, name) == ReceivedHeader::Several
}

/// The value of a header that is never base64-encoded.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Cow<'h, str>> {
    let value = headers.get(name)?.as_bytes().trim_ascii();
    Some(String::from_utf8_lossy(value))
}

/// A media type, or a range of them, with its parameters.
struct Media<'a> {
    kind: &'a str,
    subkind: &'a str,
    parameters: &'a str,
}

impl<'a> Media<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
        let (kind, subkind) = name.trim().split_once('/')?;
        Some(Self {
            kind,
            subkind,
            parameters,
        })
    }

    /// The value of a parameter, without its quotes.
    fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut parameters = self
            .parameters
            .split(';')
            .filter_map(|it| it.split_once('='));
        let found = parameters.find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().trim_matches('"'))
    }

    /// Whether this range includes the type.
    fn covers(&self, kind: &str, subkind: &str) -> bool {
        let fits = |range: &str, name: &str| range == "*" || range.eq_ignore_ascii_case(name);
        fits(self.kind, kind) && fits(self.subkind, subkind)
    }

    /// Whether the client excludes the type (`q=0`).
    fn is_unwanted(&self) -> bool {
        let quality = self.parameter("q").and_then(|q| q.parse::<f32>().ok());
        quality.is_some_and(|quality| quality <= 0.0)
    }
}

/// Whether the body of a request is JSON, by its `Content-Type`.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    // The value that nearly all clients send.
    if value == "application/json" {
        return true;
    }
    let media = value.to_str().ok().and_then(Media::parse);
    media.is_some_and(|media| {
        let charset = media.parameter("charset").unwrap_or("utf-8");
        media.kind.eq_ignore_ascii_case("application")
            && media.subkind.eq_ignore_ascii_case("json")
            && (charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8"))
    })
}

/// The types of responses that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) json: bool,
    pub(crate) events: bool,
    /// Whether the client states them. Without an `Accept`, or with an empty one, it accepts everything.
    is_stated: bool,
}

impl Accepted {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        // Nearly all clients send this value.
        let usual = "application/json, text/event-stream";
        let is_usual = headers.get(header::ACCEPT).is_some_and(|it| it == usual);
        let mut values = headers.get_all(header::ACCEPT).iter();
        let is_stated = is_usual || !values.all(HeaderValue::is_empty);
        let accepts_all = is_usual || !is_stated;
        Self {
            json: accepts_all || accepts(headers, "application", "json"),
            events: accepts_all || accepts(headers, "text", "event-stream"),
            is_stated,
        }
    }
}

/// Whether the client accepts responses of a type, like `text/event-stream`.
fn accepts(headers: &HeaderMap, kind: &str, subkind: &str) -> bool {
    accepted(headers).any(|range| range.covers(kind, subkind))
}

/// Whether the client explicitly accepts `text/event-stream`. Browsers, probes and command-line tools send `*/*`, and would wait
/// for the end of a stream.
pub(crate) fn asks_for_events(headers: &HeaderMap) -> bool {
    accepted(headers).any(|range| {
        range.kind.eq_ignore_ascii_case("text")
            && range.subkind.eq_ignore_ascii_case("event-stream")
    })
}

/// The media types and ranges that the client accepts.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = Media<'_>> {
    let values = headers.get_all(header::ACCEPT).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let ranges = values
        .flat_map(|value| value.split(','))
        .filter_map(Media::parse);
    ranges.filter(|range| !range.is_unwanted())
}

/// Whether a request looks for metadata below `/.well-known/`, as clients do on every host. It gets 404: some clients read any
/// other status as a sign that the host has metadata, and stop there.
pub(crate) fn seeks_metadata(parts: &Parts) -> bool {
    matches!(parts.method, Method::GET | Method::HEAD)
        && !parts.headers.contains_key(SESSION_ID)
        && parts.uri.path().split('/').any(|it| it == ".well-known")
}
