//! Reading the envelope of a message, in one pass and without copying what it holds.

use std::{borrow::Cow, fmt, str};

use serde::{
    Deserialize,
    de::{self, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{ErrorCode, ErrorObject, RequestId};

/// One message, with borrowed contents.
#[derive(Debug)]
pub(crate) enum Envelope<'a> {
    Request(RawRequest<'a>),
    Notification(RawNotification<'a>),
    Response(RawResponse<'a>),
}

/// A request whose params nobody has looked at.
#[derive(Debug)]
pub(crate) struct RawRequest<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// A notification whose params nobody has looked at.
#[derive(Debug)]
pub(crate) struct RawNotification<'a> {
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// A response whose result nobody has looked at.
#[derive(Debug)]
pub(crate) struct RawResponse<'a> {
    /// `None` where the peer could not read the id of what it answers.
    pub(crate) id: Option<RequestId>,
    pub(crate) outcome: Result<&'a RawValue, ErrorObject>,
}

/// Why a message cannot be served, and the id to say so to, where one could be read.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) id: Option<RequestId>,
    /// Where it was meant as a response: the id of what it answers, which is one of the receiver's own.
    pub(crate) answers: Option<RequestId>,
    pub(crate) error: ErrorObject,
}

impl Malformed {
    fn parse(message: impl fmt::Display) -> Self {
        let error = ErrorObject::new(ErrorCode::PARSE_ERROR, format!("not JSON: {message}"));
        Self {
            id: None,
            answers: None,
            error,
        }
    }

    fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Self {
        Self {
            id,
            answers: None,
            error: ErrorObject::new(ErrorCode::INVALID_REQUEST, message),
        }
    }
}

impl<'a> Envelope<'a> {
    /// Reads one message. Keys are matched exactly, and a key that the envelope gives a meaning may stand only once:
    /// what two parsers could read differently is refused.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let text = str::from_utf8(bytes).map_err(Malformed::parse)?;
        Self::parse_str(text)
    }

    /// Reads one message of a batch, or one that is known to be UTF-8.
    pub(crate) fn parse_str(text: &'a str) -> Result<Self, Malformed> {
        let members: Members<'a> = serde_json::from_str(text).map_err(|error| {
            if error.is_data() && serde_json::from_str::<IgnoredAny>(text).is_ok() {
                Malformed::invalid(None, error.to_string())
            } else {
                Malformed::parse(error)
            }
        })?;
        members.classify()
    }
}

/// The members of a message, each as it stands.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn classify(self) -> Result<Envelope<'a>, Malformed> {
        let id = self.id.and_then(RequestId::from_raw);
        let answered = self.result.is_some() || self.error.is_some();
        let is_response = answered && self.method.is_none();
        let refuse = |message: &str| {
            let mut malformed = Malformed::invalid(id.clone(), message);
            if is_response {
                malformed.answers = malformed.id.take();
            }
            malformed
        };
        if self.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
            return Err(refuse("\"jsonrpc\" must be \"2.0\""));
        }
        let null_id = self.id.is_some_and(|id| id.get() == "null");
        if self.id.is_some() && id.is_none() && !(null_id && self.error.is_some()) {
            return Err(refuse("\"id\" must be a string or an integer"));
        }
        match (self.method, answered) {
            (Some(_), true) => Err(refuse("a message is a request or a response, not both")),
            (None, false) => Err(refuse("\"method\", \"result\" or \"error\" is missing")),
            (Some(method), false) => {
                let method = string(method).ok_or_else(|| refuse("\"method\" must be a string"))?;
                let params = self.params.filter(|params| params.get() != "null");
                if params.is_some_and(|params| !params.get().starts_with('{')) {
                    return Err(refuse("\"params\" must be an object"));
                }
                Ok(match id {
                    Some(id) => Envelope::Request(RawRequest { id, method, params }),
                    None => Envelope::Notification(RawNotification { method, params }),
                })
            }
            (None, true) => {
                let outcome = match (self.result, self.error) {
                    (Some(result), None) => Ok(result),
                    (None, Some(error)) => Err(serde_json::from_str(error.get())
                        .map_err(|_| refuse("\"error\" must hold a code and a message"))?),
                    _ => return Err(refuse("a response has a result or an error, not both")),
                };
                if id.is_none() && outcome.is_ok() {
                    return Err(refuse(
                        "a response must say what it answers: \"id\" is missing",
                    ));
                }
                Ok(Envelope::Response(RawResponse { id, outcome }))
            }
        }
    }
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(text).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC message, which is an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some(key) = map.next_key::<Key>()? {
                    let (slot, name) = match key {
                        Key::Jsonrpc => (&mut members.jsonrpc, "jsonrpc"),
                        Key::Id => (&mut members.id, "id"),
                        Key::Method => (&mut members.method, "method"),
                        Key::Params => (&mut members.params, "params"),
                        Key::Result => (&mut members.result, "result"),
                        Key::Error => (&mut members.error, "error"),
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if slot.replace(map.next_value()?).is_some() {
                        return Err(de::Error::duplicate_field(name));
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The name of a member. Names are case-sensitive: `"Method"` is not `"method"`.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}
