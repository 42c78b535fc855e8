//! The JSON-RPC messages between a host and a view, as text.

use std::borrow::Cow;

use oxmcp::{ErrorCode, ErrorObject, RequestId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// The most bytes of the ID of a request, which the answer repeats.
const MAX_ID: usize = 256;

/// A message of a view.
pub(crate) enum Message<'a> {
    Request(RequestId, Cow<'a, str>, Params<'a>),
    Notification(Cow<'a, str>, Params<'a>),
    Response(RequestId, Result<&'a RawValue, ErrorObject>),
}

/// The params of a message.
#[derive(Clone, Copy)]
pub(crate) struct Params<'a>(Option<&'a RawValue>);

impl Params<'_> {
    /// Reads the params; missing ones are an empty object.
    ///
    /// # Errors
    /// The error for the view.
    pub(crate) fn read<T: DeserializeOwned>(self, method: &str) -> Result<T, ErrorObject> {
        let text = self.0.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| {
            let text = format!("invalid params of `{method}`: {error}");
            ErrorObject::new(ErrorCode::INVALID_PARAMS, text)
        })
    }

    pub(crate) fn len(self) -> usize {
        self.0.map_or(0, |it| it.get().len())
    }
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// The problem, for the log.
    pub(crate) fn read(text: &'a str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Members<'a> {
            jsonrpc: Option<Cow<'a, str>>,
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            #[serde(borrow)]
            method: Option<Cow<'a, str>>,
            #[serde(borrow)]
            params: Option<&'a RawValue>,
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            error: Option<ErrorObject>,
        }

        let members: Members<'a> =
            serde_json::from_str(text).map_err(|error| format!("invalid message: {error}"))?;
        if members.jsonrpc.as_deref() != Some("2.0") {
            return Err("invalid message: `jsonrpc` is not \"2.0\"".to_owned());
        }
        let id = members.id.map(read_id).transpose()?;
        match (id, members.method, members.result, members.error) {
            (Some(id), Some(method), None, None) => {
                Ok(Self::Request(id, method, Params(members.params)))
            }
            (None, Some(method), None, None) => {
                Ok(Self::Notification(method, Params(members.params)))
            }
            (Some(id), None, Some(result), None) => Ok(Self::Response(id, Ok(result))),
            (Some(id), None, None, Some(error)) => Ok(Self::Response(id, Err(error))),
            _ => {
                Err("invalid message: neither a request, a notification nor a response".to_owned())
            }
        }
    }
}

fn read_id(raw: &RawValue) -> Result<RequestId, String> {
    let id = Some(raw.get()).filter(|text| text.len() <= MAX_ID);
    id.and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| {
            format!(
                "invalid message: the ID must be an integer or a string of at most {MAX_ID} bytes"
            )
        })
}

/// Writes a notification, or a request if it has an ID.
pub(crate) fn outgoing(id: Option<i64>, method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Outgoing<'a, P> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<i64>,
        method: &'a str,
        params: &'a P,
    }

    let message = Outgoing {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    serde_json::to_string(&message).expect("JSON text, and types of the protocol, are always JSON")
}

/// Writes a response. The result keeps its text: numbers are not rounded.
pub(crate) fn response(id: &RequestId, result: &Result<Box<RawValue>, ErrorObject>) -> String {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a ErrorObject>,
    }

    let response = Response {
        jsonrpc: "2.0",
        id,
        result: result.as_deref().ok(),
        error: result.as_ref().err(),
    };
    serde_json::to_string(&response).expect("text, numbers and JSON text are always JSON")
}
