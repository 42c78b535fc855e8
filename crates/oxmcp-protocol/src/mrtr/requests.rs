//! Input requests of a server to its client, and the result that carries them instead of a final result (2026-07-28 and later).
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{borrow::Cow, fmt};

use oxmcp_json::Text;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

use crate::{
    lenient::TAGGED,
    meta::{has_meta::HasMeta, object::Meta},
    mrtr::responses::InputResponses,
    types::{base::EmptyParams, elicitation::params::ElicitParams, sampling::CreateMessageParams},
    values::{open_enum::setters, ordered_map::OrderedMap},
};

/// The input requests of a server, by keys of its choice.
pub type InputRequests = OrderedMap<InputRequest>;

/// One input request of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputRequest {
    /// Input from the user: `elicitation/create`.
    Elicit(ElicitParams),
    /// A message of a model: `sampling/createMessage`.
    CreateMessage(Box<CreateMessageParams>),
    /// The roots of the client: `roots/list`.
    ListRoots(EmptyParams),
    /// An input request of a kind that this version of the crate does not know.
    Unknown {
        /// The method.
        method: String,
        /// The params, as received.
        params: Option<Box<RawValue>>,
    },
}

impl InputRequest {
    /// Returns the method of the request.
    #[must_use]
    pub fn method(&self) -> &str {
        match self {
            Self::Elicit(_) => "elicitation/create",
            Self::CreateMessage(_) => "sampling/createMessage",
            Self::ListRoots(_) => "roots/list",
            Self::Unknown { method, .. } => method,
        }
    }

    /// Returns the input request as JSON. Its serialization code is compiled once, in this crate.
    #[doc(hidden)]
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

impl From<ElicitParams> for InputRequest {
    fn from(params: ElicitParams) -> Self {
        Self::Elicit(params)
    }
}

impl From<CreateMessageParams> for InputRequest {
    fn from(params: CreateMessageParams) -> Self {
        Self::CreateMessage(Box::new(params))
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The values of a map compile to less code than the fields of a struct, which might be raw JSON.
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("method", self.method())?;
        match self {
            Self::Elicit(params) => object.serialize_entry("params", params)?,
            Self::CreateMessage(params) => object.serialize_entry("params", params)?,
            Self::ListRoots(params) if params.meta.is_absent() => {}
            Self::ListRoots(params) => object.serialize_entry("params", params)?,
            Self::Unknown { params: None, .. } => {}
            Self::Unknown { params, .. } => object.serialize_entry("params", params)?,
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Like a struct, but a lenient deserializer begins with the method.
        deserializer.deserialize_struct(TAGGED, &["method"], InputRequestVisitor)
    }
}

struct InputRequestVisitor;

impl<'de> Visitor<'de> for InputRequestVisitor {
    type Value = InputRequest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an input request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InputRequest, A::Error> {
        let (mut method, mut params) = (None::<String>, None::<Box<RawValue>>);
        let mut request = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "method" if method.is_some() => return Err(A::Error::duplicate_field("method")),
                "method" => method = Some(map.next_value()?),
                "params" if params.is_some() || request.is_some() => {
                    return Err(A::Error::duplicate_field("params"));
                }
                "params" => match method.as_deref() {
                    Some("elicitation/create") => {
                        request = Some(InputRequest::Elicit(map.next_value()?));
                    }
                    Some("sampling/createMessage") => {
                        request = Some(InputRequest::CreateMessage(map.next_value()?));
                    }
                    _ => params = map.next_value()?,
                },
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let method = method.ok_or_else(|| A::Error::missing_field("method"))?;
        let text = params.as_deref().map_or("{}", RawValue::get);
        let request = match (request, &*method) {
            (Some(request), _) => Ok(request),
            (None, "elicitation/create") => ElicitParams::read(text).map(InputRequest::Elicit),
            (None, "sampling/createMessage") => {
                CreateMessageParams::read(text).map(InputRequest::from)
            }
            (None, "roots/list") => EmptyParams::read(text).map(InputRequest::ListRoots),
            (None, _) => Ok(InputRequest::Unknown { method, params }),
        };
        request.map_err(A::Error::custom)
    }
}

/// The result of a request that needs input first: the client answers the input requests, and sends the request again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The input requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The state that the client returns unchanged with its responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

/// The [`InputRequiredResult`] as received: only the necessary parts are parsed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawInputRequired {
    #[serde(default)]
    input_requests: Option<OrderedMap<RawInputRequest>>,
    /// The state, to be returned byte for byte.
    #[serde(default)]
    pub request_state: Option<Box<RawValue>>,
}

/// One input request, as received.
#[derive(Debug, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct RawInputRequest {
    /// The method of the input request.
    pub method: String,
    /// Its params.
    #[serde(default)]
    pub params: Option<Box<RawValue>>,
}

impl RawInputRequired {
    /// Reads the result of a request. `lenient` reads it if it cannot be read strictly.
    ///
    /// # Errors
    /// If the result has neither input requests nor a state, or cannot be read.
    pub fn read(result: &str, lenient: impl FnOnce() -> Option<Self>) -> Result<Self, String> {
        let asked: Self = serde_json::from_str(result)
            .or_else(|error| lenient().ok_or_else(|| error.to_string()))?;
        if asked.input_requests.is_none() && asked.request_state.is_none() {
            return Err("it has neither `inputRequests` nor `requestState`".into());
        }
        let is_text = |state: &RawValue| state.get().starts_with('"');
        if asked
            .request_state
            .as_deref()
            .is_some_and(|state| !is_text(state))
        {
            return Err("`requestState` must be a string".into());
        }
        Ok(asked)
    }

    /// Returns the input requests, by their keys. `None` if there are none.
    #[must_use]
    pub fn inputs(self) -> Option<OrderedMap<RawInputRequest>> {
        self.input_requests.filter(|inputs| !inputs.is_empty())
    }
}

/// Returns the params for a retry of a request, with new answers and state instead of those of the earlier attempt.
///
/// # Errors
/// If the answers cannot be serialized as JSON.
pub fn with_input_responses(
    params: Text<'_>,
    answers: Option<&InputResponses>,
    state: Option<&RawValue>,
) -> serde_json::Result<Vec<u8>> {
    const ANSWERS: &str = "inputResponses";
    const STATE: &str = "requestState";
    let mut out = vec![b'{'];
    let member = |out: &mut Vec<u8>, key: &str| {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(key.as_bytes());
        out.push(b':');
    };
    for (key, value) in params.members() {
        if !key.is_str(ANSWERS) && !key.is_str(STATE) {
            member(&mut out, key.get());
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    if let Some(answers) = answers {
        member(&mut out, "\"inputResponses\"");
        serde_json::to_writer(&mut out, answers)?;
    }
    if let Some(state) = state {
        member(&mut out, "\"requestState\"");
        out.extend_from_slice(state.get().as_bytes());
    }
    out.push(b'}');
    Ok(out)
}

impl InputRequiredResult {
    /// Creates a result without input requests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input request under its key.
    #[must_use]
    pub fn with_input_request(
        mut self,
        key: impl Into<String>,
        request: impl Into<InputRequest>,
    ) -> Self {
        let requests = self.input_requests.get_or_insert_default();
        requests.insert(key, request.into());
        self
    }
}

setters!(InputRequiredResult {
    /// Sets the state, which the client should return unchanged. Do not trust it: a client can read and change it.
    with_request_state => request_state: String,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mrtr::responses::InputResponse;

    #[test]
    fn answers_join_params_and_replace_earlier_ones() {
        let params = r#"{"name":"t", "requestState":"old","arguments":{"inputResponses":1},"inputResponses":{}}"#;
        let again = |answers: Option<&InputResponses>, state: Option<&str>| {
            let state = state.map(|state| RawValue::from_string(state.into()).unwrap());
            let again =
                with_input_responses(Text::checked(params), answers, state.as_deref()).unwrap();
            String::from_utf8(again).unwrap()
        };
        let plain = r#"{"name":"t","arguments":{"inputResponses":1}"#;
        assert_eq!(again(None, None), format!("{plain}}}"));
        let answers = [("a", InputResponse::new(&1).unwrap())]
            .into_iter()
            .collect();
        assert_eq!(
            again(Some(&answers), Some(r#""\ud800\u0041""#)),
            format!(r#"{plain},"inputResponses":{{"a":1}},"requestState":"\ud800\u0041"}}"#)
        );
        let empty = with_input_responses(Text::EMPTY, None, Some(RawValue::NULL)).unwrap();
        assert_eq!(empty, br#"{"requestState":null}"#);
    }

    #[test]
    fn result_without_input_requests_is_invalid() {
        for (result, wrong) in [
            ("{}", "neither"),
            (r#"{"inputRequests":null}"#, "neither"),
            (r#"{"requestState":7}"#, "must be a string"),
            (r#"{"inputRequests":[]}"#, "invalid type"),
            (r#"{"inputRequests":{"a":{}}}"#, "missing field"),
        ] {
            let error = RawInputRequired::read(result, || None).unwrap_err();
            assert!(error.contains(wrong), "{result}: {error}");
        }
        let only_state = r#"{"inputRequests":{},"requestState":"s"}"#;
        let only_state = RawInputRequired::read(only_state, || None).unwrap();
        assert!(only_state.inputs().is_none());
    }

    #[test]
    fn requests_keep_order_and_unknown_members() {
        let text = r#"{"inputRequests":{"b":{"method":"roots/list"},"a":{"method":"x/y","params":{"z": 1}}}}"#;
        let result: InputRequiredResult = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        assert_eq!(
            result.input_requests.unwrap().get("a").unwrap().method(),
            "x/y"
        );
    }
}
