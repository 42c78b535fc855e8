//! Media types in headers.

use http::{HeaderMap, HeaderValue, header};

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

    /// Whether the type is in this range.
    fn covers(&self, kind: &str, subkind: &str) -> bool {
        let fits = |range: &str, name: &str| range == "*" || range.eq_ignore_ascii_case(name);
        fits(self.kind, kind) && fits(self.subkind, subkind)
    }

    /// Whether it is named only to say that it is not wanted.
    fn is_unwanted(&self) -> bool {
        let quality = self.parameter("q").and_then(|q| q.parse::<f32>().ok());
        quality.is_some_and(|quality| quality <= 0.0)
    }
}

/// Whether the body of a request is JSON, by what it says of itself.
pub(in crate::http::server) fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    // What nearly all clients send.
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

/// Whether the client takes answers of both types, like nearly all.
pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    let usual = |value: &HeaderValue| value == "application/json, text/event-stream";
    headers.get(header::ACCEPT).is_some_and(usual)
        || accepts(headers, "application", "json") && accepts(headers, "text", "event-stream")
}

/// Whether the client takes answers of a type, like `text/event-stream`.
pub(in crate::http::server) fn accepts(headers: &HeaderMap, kind: &str, subkind: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut ranges = values
        .flat_map(|value| value.split(','))
        .filter_map(Media::parse);
    ranges.any(|range| range.covers(kind, subkind) && !range.is_unwanted())
}
