//! `_meta` object: additional members of a message, and the keys that the protocol defines.
//!
//! See [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).

use std::{fmt, sync::OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, value::RawValue};

use crate::{
    jsonrpc::id::RequestId, meta::progress_token::ProgressToken, values::json::JsonObject,
};

/// The `_meta` of a message or of one of its parts.
///
/// An empty `Meta` allocates nothing, and received metadata is parsed on first use.
///
/// ```
/// use oxmcp_protocol::Meta;
///
/// let mut meta = Meta::default();
/// assert!(meta.is_empty());
/// meta.insert("com.example/trace", "a7");
/// assert_eq!(meta.get("com.example/trace").and_then(|value| value.as_str()), Some("a7"));
/// ```
#[derive(Clone, Default)]
pub struct Meta(Option<Box<Entries>>);

/// The entries of a [`Meta`]. They are boxed because most parts of a message have none.
#[derive(Clone, Default)]
struct Entries {
    /// The received text, until the entries are changed.
    raw: Option<Box<RawValue>>,
    /// The entries of `raw`, parsed on first use; or the only copy, if there is no `raw`.
    map: OnceLock<JsonObject>,
}

impl Meta {
    /// The revision of a modern request.
    pub const PROTOCOL_VERSION: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// The client that sends a modern request: an [`Implementation`](crate::types::lifecycle::Implementation).
    pub const CLIENT_INFO: &'static str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the client that sends a modern request:
    /// [`ClientCapabilities`](crate::types::capabilities::ClientCapabilities).
    pub const CLIENT_CAPABILITIES: &'static str = "io.modelcontextprotocol/clientCapabilities";
    /// The least severe [`LoggingLevel`](crate::types::logging::LoggingLevel) of the log messages that the client wants for a
    /// modern request.
    pub const LOG_LEVEL: &'static str = "io.modelcontextprotocol/logLevel";
    /// The server that sends a modern result: an [`Implementation`](crate::types::lifecycle::Implementation).
    pub const SERVER_INFO: &'static str = "io.modelcontextprotocol/serverInfo";
    /// The id of the `subscriptions/listen` request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &'static str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to (2025-11-25 only).
    pub const RELATED_TASK: &'static str = "io.modelcontextprotocol/related-task";
    /// The token that asks for progress notifications.
    pub const PROGRESS_TOKEN: &'static str = "progressToken";
    /// The W3C trace context of the caller.
    pub const TRACEPARENT: &'static str = "traceparent";
    /// Marks the result of a tool whose structured content is sent as the member `result` of an object, which revisions before
    /// 2026-07-28 need if the content is not an object. A key of this SDK.
    pub const WRAPPED: &'static str = "dev.oxmcp/wrapped";
    /// Identifies the changes that a notification reports, if several nodes of a server may notify the same client of one
    /// change. A key of this SDK.
    pub const CHANGES: &'static str = "dev.oxmcp/changes";
    /// The W3C trace state of the caller, which tracing systems add to [`TRACEPARENT`](Self::TRACEPARENT).
    pub const TRACESTATE: &'static str = "tracestate";
    /// The W3C baggage of the caller.
    pub const BAGGAGE: &'static str = "baggage";

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_object().is_none_or(JsonObject::is_empty)
    }

    /// Returns whether the member is left out when it is written. Received text is not parsed for this: `{}` and `null` count
    /// as empty when they are read.
    #[doc(hidden)]
    pub fn is_absent(&self) -> bool {
        let Some(entries) = &self.0 else {
            return true;
        };
        entries.raw.is_none() && entries.map.get().is_none_or(JsonObject::is_empty)
    }

    /// Wraps received text, which may be null. `None` if it is neither null nor an object.
    pub(crate) fn of_raw(raw: Box<RawValue>) -> Option<Self> {
        match raw.get() {
            "{}" | "null" => Some(Self::default()),
            text if text.starts_with('{') => Some(Self(Some(Box::new(Entries {
                raw: Some(raw),
                map: OnceLock::new(),
            })))),
            _ => None,
        }
    }

    /// Sets [`WRAPPED`](Self::WRAPPED). Most results have no other entries, so this case avoids a map.
    pub(crate) fn mark_wrapped(&mut self) {
        const ALONE: &str = r#"{"dev.oxmcp/wrapped":true}"#;
        let alone = RawValue::from_string(ALONE.to_owned()).ok();
        match alone.filter(|_| self.is_absent()).and_then(Self::of_raw) {
            Some(alone) => *self = alone,
            None => drop(self.insert(Self::WRAPPED, true)),
        }
    }

    /// Returns all entries, if there are any. Received metadata that is nested too deeply to be read (more than 100 levels)
    /// reads as empty.
    #[must_use]
    pub fn as_object(&self) -> Option<&JsonObject> {
        let Entries { raw, map } = self.0.as_deref()?;
        match raw {
            Some(raw) => {
                Some(map.get_or_init(|| serde_json::from_str(raw.get()).unwrap_or_default()))
            }
            None => map.get(),
        }
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Sets the value of a key, and returns the previous value.
    ///
    /// Give your own keys a prefix: `com.example/name`. See [`is_valid_key`](Self::is_valid_key).
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.as_object_mut().insert(key.into(), value.into())
    }

    /// Adds all entries of another `Meta`; if both have a key, the value of `self` stays.
    #[doc(hidden)]
    pub fn merge(&mut self, other: Self) {
        if self.is_absent() {
            *self = other;
        } else if let Some(entries) = other.as_object() {
            let object = self.as_object_mut();
            for (key, value) in entries {
                object.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        if self.is_absent() {
            return None;
        }
        self.as_object_mut().remove(key)
    }

    /// Returns all entries, mutable.
    #[expect(
        clippy::missing_panics_doc,
        reason = "it cannot: the map is set before it is taken"
    )]
    pub fn as_object_mut(&mut self) -> &mut JsonObject {
        let _ = self.as_object();
        let entries = self.0.get_or_insert_default();
        entries.raw = None;
        entries.map.get_or_init(JsonObject::new);
        entries.map.get_mut().expect("it was set the line before")
    }

    /// Returns the token that asks for progress notifications.
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        ProgressToken::of(self.get(Self::PROGRESS_TOKEN)?)
    }

    /// Creates the `_meta` of a message that belongs to a subscription.
    #[doc(hidden)]
    #[must_use]
    pub fn of_subscription(id: &RequestId) -> Self {
        let id = match id {
            RequestId::Number(number) => Value::from(*number),
            RequestId::String(text) => Value::from(&**text),
        };
        let mut meta = Self::default();
        meta.insert(Self::SUBSCRIPTION_ID, id);
        meta
    }

    /// Returns the id of the `subscriptions/listen` request that a notification belongs to.
    #[must_use]
    pub fn subscription_id(&self) -> Option<RequestId> {
        RequestId::of(self.get(Self::SUBSCRIPTION_ID)?)
    }

    /// Returns the W3C `traceparent` of the caller, if it is [valid](Self::is_valid_traceparent).
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        let traceparent = self.get(Self::TRACEPARENT)?.as_str()?;
        Self::is_valid_traceparent(traceparent).then_some(traceparent)
    }

    /// Returns the W3C `tracestate` of the caller. It is ignored without a valid `traceparent`, because it means nothing then.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.traceparent()?;
        self.get(Self::TRACESTATE)?.as_str()
    }

    /// Returns the W3C `baggage` of the caller.
    #[must_use]
    pub fn baggage(&self) -> Option<&str> {
        self.get(Self::BAGGAGE)?.as_str()
    }

    /// Returns whether a text is a [`traceparent`](https://www.w3.org/TR/trace-context/#traceparent-header) of W3C's trace
    /// context: a version, the ids of a trace and of a span, and flags, in lower-case hexadecimal digits. An invalid one must
    /// be ignored.
    ///
    /// ```
    /// use oxmcp_protocol::Meta;
    ///
    /// assert!(Meta::is_valid_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"));
    /// assert!(!Meta::is_valid_traceparent("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
    /// ```
    #[must_use]
    pub fn is_valid_traceparent(text: &str) -> bool {
        let mut parts = text.split('-');
        let mut hex = |length: usize| {
            parts.next().filter(|part| {
                part.len() == length
                    && part
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            })
        };
        let is_id = |id: &str| id.bytes().any(|byte| byte != b'0');
        let (Some(version), Some(trace), Some(span), Some(_)) = (hex(2), hex(32), hex(16), hex(2))
        else {
            return false;
        };
        // Later versions may add further parts after a hyphen.
        let is_whole = version != "00" || parts.next().is_none();
        version != "ff" && is_id(trace) && is_id(span) && is_whole
    }

    /// Checks the keys in the `_meta` of a message or a definition: each must be [valid](Self::is_valid_key), and none may be
    /// [reserved](Self::is_reserved_key) for the protocol unless the protocol defines it. `is_known` returns whether an
    /// extension defines a key. A `traceparent` must be [valid](Self::is_valid_traceparent).
    ///
    /// # Errors
    /// If a key is not allowed or the `traceparent` is invalid, with the key or value and the reason.
    pub fn check_keys(&self, is_known: impl Fn(&str) -> bool) -> Result<(), String> {
        const OWN: [&str; 11] = [
            Meta::PROTOCOL_VERSION,
            Meta::CLIENT_INFO,
            Meta::CLIENT_CAPABILITIES,
            Meta::LOG_LEVEL,
            Meta::SERVER_INFO,
            Meta::SUBSCRIPTION_ID,
            Meta::RELATED_TASK,
            Meta::PROGRESS_TOKEN,
            Meta::TRACEPARENT,
            Meta::TRACESTATE,
            Meta::BAGGAGE,
        ];
        for key in self.as_object().into_iter().flat_map(JsonObject::keys) {
            if OWN.contains(&&**key) || is_known(key) {
                continue;
            }
            if !Self::is_valid_key(key) {
                return Err(format!(
                    "invalid `_meta` key {key:?}; use a name with your domain as prefix, such as \"com.example/zone\""
                ));
            }
            if Self::is_reserved_key(key) {
                return Err(format!(
                    "reserved `_meta` key {key:?}; use a name with your own domain as prefix, such as \"com.example/zone\""
                ));
            }
        }
        match self.get(Self::TRACEPARENT) {
            Some(it) if !it.as_str().is_some_and(Self::is_valid_traceparent) => {
                Err(format!("invalid W3C `traceparent` {it}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether `key` follows the rules for the names of keys: an optional prefix of dotted labels with a slash, and a
    /// name of letters, digits, `-`, `_` and `.`.
    ///
    /// ```
    /// use oxmcp_protocol::Meta;
    ///
    /// assert!(Meta::is_valid_key("com.example/name"));
    /// assert!(!Meta::is_valid_key("2com/name"));
    /// ```
    #[must_use]
    pub fn is_valid_key(key: &str) -> bool {
        let (prefix, name) = key
            .split_once('/')
            .map_or((None, key), |(prefix, name)| (Some(prefix), name));
        prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) && is_name(name)
    }

    /// Returns whether `key` belongs to the protocol: the second label of its prefix is `modelcontextprotocol` or `mcp`, or it
    /// is one of the protocol's keys without a prefix.
    #[must_use]
    pub fn is_reserved_key(key: &str) -> bool {
        match key.split_once('/') {
            Some((prefix, _)) => {
                matches!(
                    prefix.split('.').nth(1),
                    Some("modelcontextprotocol" | "mcp")
                )
            }
            None => matches!(
                key,
                Self::PROGRESS_TOKEN | Self::TRACEPARENT | Self::TRACESTATE | Self::BAGGAGE
            ),
        }
    }
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_name(name: &str) -> bool {
    name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

impl From<JsonObject> for Meta {
    fn from(map: JsonObject) -> Self {
        Self(Some(Box::new(Entries {
            raw: None,
            map: OnceLock::from(map),
        })))
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Meta {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        entries
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect::<JsonObject>()
            .into()
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.is_empty() && other.is_empty() || self.as_object() == other.as_object()
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_object() {
            Some(map) => map.fmt(f),
            None => f.write_str("{}"),
        }
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = self.0.as_ref().and_then(|entries| entries.raw.as_ref());
        match raw {
            Some(raw) => raw.serialize(serializer),
            None => match self.as_object() {
                Some(map) => map.serialize(serializer),
                None => JsonObject::new().serialize(serializer),
            },
        }
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::of_raw(raw).ok_or_else(|| de::Error::custom("`_meta` must be an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_meta_is_written_verbatim_until_changed() {
        let mut meta: Meta = serde_json::from_str(r#"{"b":1, "a":{"x":[]}}"#).unwrap();
        assert_eq!(
            serde_json::to_string(&meta).unwrap(),
            r#"{"b":1, "a":{"x":[]}}"#
        );
        assert_eq!(meta.get("b"), Some(&Value::from(1)));
        assert_eq!(
            meta.remove("a").map(|a| a.to_string()).as_deref(),
            Some(r#"{"x":[]}"#)
        );
        assert_eq!(serde_json::to_string(&meta).unwrap(), r#"{"b":1}"#);
        meta.remove("b");
        assert!(meta.is_absent());
    }

    #[test]
    fn meta_must_be_an_object() {
        assert!(serde_json::from_str::<Meta>("[]").is_err());
        assert!(serde_json::from_str::<Meta>("{}").unwrap().is_absent());
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
        assert!(serde_json::from_str::<Meta>(&deep).unwrap().is_empty());
    }

    #[test]
    fn meta_key_names_are_validated() {
        for good in [
            "a",
            "progressToken",
            "com.example/a_b.c",
            "io.modelcontextprotocol/",
            "",
            "a-b/x",
        ] {
            assert!(Meta::is_valid_key(good), "{good}");
        }
        for bad in ["/x", "a b", "com..x/y", "-a", "a-/x", "a/b/c", "1a/x", "ä"] {
            assert!(!Meta::is_valid_key(bad), "{bad}");
        }
        for reserved in [
            "io.modelcontextprotocol/x",
            "dev.mcp/x",
            "com.mcp.tools/x",
            "baggage",
        ] {
            assert!(Meta::is_reserved_key(reserved), "{reserved}");
        }
        assert!(!Meta::is_reserved_key("com.example.mcp/x"));
    }
}
