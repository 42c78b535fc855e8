//! Trace context of a request: the keys of `_meta` that propagate a trace to the peer.
//!
//! See [trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).

use std::{borrow::Cow, collections::HashSet};

use crate::meta::object::Meta;

/// The maximum length in bytes of a baggage that must be propagated, by the specification of W3C.
const MAX_BAGGAGE_BYTES: usize = 8192;
/// The maximum number of members of a tracestate.
const MAX_TRACESTATE_MEMBERS: usize = 32;

/// The position of a request in a distributed trace, and the data that is propagated with it: the [`traceparent` and
/// `tracestate`](https://www.w3.org/TR/trace-context/) and the [`baggage`](https://www.w3.org/TR/baggage/) of W3C.
///
/// It holds only valid fields: malformed ones are left out, as W3C requires, and a `tracestate` is kept only with the
/// `traceparent` to which it belongs.
///
/// ```
/// use oxmcp_protocol::TraceContext;
///
/// let fields = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("baggage", "not a baggage")];
/// let context: TraceContext = fields.into_iter().collect();
/// assert_eq!(context.trace_id(), Some("0af7651916cd43dd8448eb211c80319c"));
/// assert_eq!(context.baggage(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: Option<Box<str>>,
    tracestate: Option<Box<str>>,
    baggage: Option<Box<str>>,
}

impl TraceContext {
    /// Reads the fields `traceparent`, `tracestate` and `baggage`, each by its name.
    #[must_use]
    pub fn read<'a>(get: impl Fn(&str) -> Option<Cow<'a, str>>) -> Self {
        let valid = |name: &str, is_valid: fn(&str) -> bool| {
            let value = get(name).filter(|value| is_valid(value));
            value.map(|value| Box::from(&*value))
        };
        let traceparent = valid(Meta::TRACEPARENT, Meta::is_valid_traceparent);
        let has_parent = traceparent.is_some();
        Self {
            traceparent,
            tracestate: has_parent
                .then(|| valid(Meta::TRACESTATE, is_tracestate))
                .flatten(),
            baggage: valid(Meta::BAGGAGE, is_baggage),
        }
    }

    /// Returns the ids of the trace and of the span that made the request, and whether it is sampled.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns the data that tracing systems add to the `traceparent`.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns the properties that the program that began the trace propagates to all participants.
    #[must_use]
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Returns the id of the trace: the second part of the `traceparent`.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent()?.split('-').nth(1)
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.traceparent.is_none() && self.baggage.is_none()
    }

    /// Completes the context with fields of another: with its parent, if this context has none, and with those members of its
    /// baggage whose names are absent here.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let (traceparent, tracestate) = match self.traceparent {
            Some(_) => (self.traceparent, self.tracestate),
            None => (other.traceparent.clone(), other.tracestate.clone()),
        };
        let baggage = match (self.baggage, other.baggage()) {
            (Some(own), Some(more)) => Some(join_baggage(&own, more).into()),
            (own, more) => own.or_else(|| more.map(Box::from)),
        };
        Self {
            traceparent,
            tracestate,
            baggage,
        }
    }

    /// Returns the context without its parent, with only the baggage.
    #[must_use]
    pub fn without_parent(self) -> Self {
        Self {
            baggage: self.baggage,
            ..Self::default()
        }
    }

    /// Returns the name and the value of each field.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            (Meta::TRACEPARENT, self.traceparent()),
            (Meta::TRACESTATE, self.tracestate()),
            (Meta::BAGGAGE, self.baggage()),
        ];
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for TraceContext {
    /// The first of several fields with the same name counts, and fields other than the three are ignored.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Self {
        let fields: Vec<_> = fields.into_iter().collect();
        Self::read(|name| {
            let (_, value) = fields.iter().find(|(it, _)| *it == name)?;
            Some(Cow::Borrowed(*value))
        })
    }
}

impl From<&Meta> for TraceContext {
    fn from(meta: &Meta) -> Self {
        Self::read(|name| meta.get(name)?.as_str().map(Cow::Borrowed))
    }
}

/// Whether a text is a [`tracestate`](https://www.w3.org/TR/trace-context/#tracestate-header): pairs of a key and a value.
fn is_tracestate(text: &str) -> bool {
    let is_key = |key: &str| {
        key.len() <= 256
            && key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && key
                .bytes()
                .all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@'))
    };
    let is_value = |value: &str| {
        (1..=256).contains(&value.len())
            && value.bytes().all(|c| matches!(c, b' '..=b'~') && c != b'=')
    };
    let members = || {
        text.split(',')
            .map(trim)
            .filter(|member| !member.is_empty())
    };
    let is_member = |member: &str| {
        member
            .split_once('=')
            .is_some_and(|(key, value)| is_key(key) && is_value(value))
    };
    (1..=MAX_TRACESTATE_MEMBERS).contains(&members().count()) && members().all(is_member)
}

/// Whether a text is a [`baggage`](https://www.w3.org/TR/baggage/#baggage-http-header-format): pairs of a name and a value, which
/// properties may follow.
fn is_baggage(text: &str) -> bool {
    let is_token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    let is_member = |member: &str| {
        let pair = member.split(';').next().unwrap_or_default();
        pair.split_once('=').is_some_and(|(name, value)| {
            let name = trim(name);
            !name.is_empty()
                && name.bytes().all(is_token)
                && trim(value)
                    .bytes()
                    .all(|c| matches!(c, b'!'..=b'~') && c != b'"' && c != b'\\')
        })
    };
    text.len() <= MAX_BAGGAGE_BYTES
        && text.bytes().all(|c| matches!(c, b'\t' | b' '..=b'~'))
        && text.split(',').all(is_member)
}

/// Adds those members of another baggage whose names are absent in `own`, as long as they fit. A malformed `own` stays as it is.
pub(crate) fn join_baggage<'a>(own: &'a str, more: &str) -> Cow<'a, str> {
    let mut joined = Cow::Borrowed(own);
    if !is_baggage(own) {
        return joined;
    }
    let name = |member: &'_ str| {
        member
            .split_once('=')
            .map(|(name, _)| trim(name).to_owned())
    };
    let names: HashSet<_> = own.split(',').map(name).collect();
    for member in more.split(',') {
        if !names.contains(&name(member)) && joined.len() + member.len() < MAX_BAGGAGE_BYTES {
            let joined = joined.to_mut();
            joined.push(',');
            joined.push_str(trim(member));
        }
    }
    joined
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn fields(fields: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        let context: TraceContext = fields.iter().copied().collect();
        let fields = context.fields();
        fields
            .map(|(name, value)| (name, value.to_owned()))
            .collect()
    }

    #[test]
    fn malformed_trace_context_is_omitted() {
        let long = format!("a={}", "x".repeat(MAX_BAGGAGE_BYTES));
        let members = vec!["a=1"; MAX_TRACESTATE_MEMBERS + 1].join(",");
        for (name, value, is_kept) in [
            ("traceparent", "00-0", false),
            (
                "tracestate",
                "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
                true,
            ),
            ("tracestate", "fw529a3039@dt=FfAA; x , ,b=2", true),
            ("tracestate", "", false),
            ("tracestate", "Upper=1", false),
            ("tracestate", "a", false),
            ("tracestate", "a=b=c", false),
            ("tracestate", "a=\r\nX-Injected: 1", false),
            ("tracestate", &*members, false),
            (
                "baggage",
                "userId=alice, serverNode=DF%2028;p=1 ,isProduction=false",
                true,
            ),
            ("baggage", "empty=", true),
            ("baggage", "", false),
            ("baggage", "a", false),
            ("baggage", "a b=1", false),
            ("baggage", "a=1\r\nX-Injected: 1", false),
            ("baggage", "a=é", false),
            ("baggage", &*long, false),
            ("b3", "1", false),
        ] {
            let mut expected = vec![("traceparent", PARENT.to_owned())];
            if name == "traceparent" {
                expected.clear();
            } else if is_kept {
                expected.extend(
                    fields(&[("traceparent", PARENT), (name, value)])
                        .into_iter()
                        .skip(1),
                );
                assert_eq!(expected.len(), 2, "{value:?}");
            }
            // The first of several fields with the same name counts.
            let found = fields(&[(name, value), ("traceparent", PARENT)]);
            assert_eq!(found, expected, "{name}: {value:?}");
        }
    }

    #[test]
    fn missing_trace_context_is_inherited() {
        let read = |fields: &[(&str, &str)]| fields.iter().copied().collect::<TraceContext>();
        let other = PARENT.replace("b7ad", "0001");
        let (parent, state) = (("traceparent", PARENT), ("tracestate", "a=1"));
        let (other, baggage) = (("traceparent", &*other), ("baggage", "b=2"));
        for (one, another, both) in [
            (
                &[parent][..],
                &[other, state, baggage][..],
                &[parent, baggage][..],
            ),
            (&[baggage], &[parent, state], &[parent, state, baggage]),
            (&[], &[parent, baggage], &[parent, baggage]),
            (&[parent, baggage], &[], &[parent, baggage]),
            (
                &[("baggage", "user=ann;p=1, b = 2")],
                &[("baggage", " b=3,c=4;q,user=eve")],
                &[("baggage", "user=ann;p=1, b = 2,c=4;q")],
            ),
        ] {
            assert_eq!(read(one).or(&read(another)), read(both));
        }
        let alone = read(&[parent, state, baggage]).without_parent();
        assert_eq!(alone, read(&[baggage]));
    }

    #[test]
    fn joined_baggage_is_bounded() {
        let long = format!("a={}", "x".repeat(MAX_BAGGAGE_BYTES - 8));
        let joined = join_baggage(&long, "long=12345,b=1,c=2");
        assert_eq!(joined, format!("{long},b=1"));
        assert!(is_baggage(&joined));
        assert_eq!(join_baggage("not a baggage", "b=1"), "not a baggage");
    }

    #[test]
    fn tracestate_without_traceparent_is_ignored() {
        assert_eq!(fields(&[("tracestate", "a=1")]), []);
        let baggage = fields(&[("tracestate", "a=1"), ("baggage", "b=2")]);
        assert_eq!(baggage, [("baggage", "b=2".to_owned())]);
        let mut meta = Meta::default();
        meta.insert(Meta::TRACEPARENT, PARENT);
        meta.insert(Meta::TRACESTATE, 7);
        let context = TraceContext::from(&meta);
        assert_eq!(
            (context.traceparent(), context.tracestate()),
            (Some(PARENT), None)
        );
    }
}
