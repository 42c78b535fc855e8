//! Multi round-trip requests: a server asks while it answers (2026-07-28 and later).
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error},
    ser::SerializeStruct,
};
use serde_json::value::{RawValue, to_raw_value};

use super::{CreateMessageParams, ElicitParams, EmptyParams, Meta, OrderedMap};

/// What a server asks, by keys of its choice.
pub type InputRequests = OrderedMap<InputRequest>;

/// What a client answers, by the keys of what was asked.
pub type InputResponses = OrderedMap<InputResponse>;

/// One thing that a server asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputRequest {
    /// The user: `elicitation/create`.
    Elicit(ElicitParams),
    /// A model: `sampling/createMessage`.
    CreateMessage(Box<CreateMessageParams>),
    /// The roots: `roots/list`.
    ListRoots(EmptyParams),
    /// Something that this version of the crate does not know.
    Unknown {
        /// The method.
        method: String,
        /// The params, as they came.
        params: Option<Box<RawValue>>,
    },
}

impl InputRequest {
    /// The method of the request.
    #[must_use]
    pub fn method(&self) -> &str {
        match self {
            Self::Elicit(_) => "elicitation/create",
            Self::CreateMessage(_) => "sampling/createMessage",
            Self::ListRoots(_) => "roots/list",
            Self::Unknown { method, .. } => method,
        }
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
        let mut object = serializer.serialize_struct("InputRequest", 2)?;
        object.serialize_field("method", self.method())?;
        match self {
            Self::Elicit(params) => object.serialize_field("params", params)?,
            Self::CreateMessage(params) => object.serialize_field("params", params)?,
            Self::ListRoots(params) if params.meta.is_absent() => {}
            Self::ListRoots(params) => object.serialize_field("params", params)?,
            Self::Unknown { params: None, .. } => {}
            Self::Unknown { params, .. } => object.serialize_field("params", params)?,
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Members {
            method: String,
            params: Option<Box<RawValue>>,
        }

        let Members { method, params } = Members::deserialize(deserializer)?;
        Ok(match &*method {
            "elicitation/create" => Self::Elicit(read(params.as_deref())?),
            "sampling/createMessage" => Self::CreateMessage(read(params.as_deref())?),
            "roots/list" => Self::ListRoots(read(params.as_deref())?),
            _ => Self::Unknown { method, params },
        })
    }
}

fn read<T: DeserializeOwned, E: Error>(params: Option<&RawValue>) -> Result<T, E> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(E::custom)
}

/// One answer: the result of what was asked under the same key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponse(Box<RawValue>);

impl InputResponse {
    /// An answer: an [`ElicitResult`](super::ElicitResult), a [`CreateMessageResult`](super::CreateMessageResult), a
    /// [`ListRootsResult`](super::ListRootsResult), or what an extension defines.
    ///
    /// # Errors
    /// Where the result cannot be JSON.
    pub fn new(result: &impl Serialize) -> serde_json::Result<Self> {
        to_raw_value(result).map(Self)
    }

    /// The answer as the type that was asked for.
    ///
    /// # Errors
    /// Where the client answered something else.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.get())
    }

    /// The answer as it stands.
    #[must_use]
    pub fn get(&self) -> &RawValue {
        &self.0
    }
}

impl From<Box<RawValue>> for InputResponse {
    fn from(result: Box<RawValue>) -> Self {
        Self(result)
    }
}

/// The result that is none yet: the client is to answer, and to make the request again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the client gives back with the answers, as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// What travels beside.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_their_order_and_what_is_unknown() {
        let text = r#"{"inputRequests":{"b":{"method":"roots/list"},"a":{"method":"x/y","params":{"z": 1}}}}"#;
        let result: InputRequiredResult = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        assert_eq!(
            result.input_requests.unwrap().get("a").unwrap().method(),
            "x/y"
        );
    }
}
