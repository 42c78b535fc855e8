//! Messages for gateways: parsed, inspected, changed, fitted to another revision, and written.
//!
//! Params and results stay raw JSON until they are read as a type, and unchanged parts are written exactly as they were
//! received.
//!
//! ```
//! use oxmcp_protocol::{CallToolParams, Revision, message::Message, method::CallTool};
//!
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}"#;
//! let Message::Request(mut request) = Message::parse(line)? else { unreachable!() };
//! let mut params: CallToolParams = request.params_of::<CallTool>()?;
//! assert_eq!(params.name, "add");
//! params.name = "calculator_add".into();
//! request.set_params(&params)?;
//! request.fit(Revision::V2025_03_26)?;
//! assert!(String::from_utf8(Message::from(request).encode())?.contains("calculator_add"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{convert::Infallible, error::Error, fmt};

use oxmcp_json::{Cursor, Text};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    error::EncodeError,
    jsonrpc::{
        envelope::{Envelope, Malformed},
        error::{ErrorCode, ErrorObject},
        id::RequestId,
        write::{write_error, write_raw, write_response},
    },
    mrtr::requests::InputRequiredResult,
    result::{
        encode::{ResultType, encode_result, into_text, peek_result_type},
        payload::{Payload, encode_payload},
    },
    revision::{
        method::{
            INPUT_REQUESTS, Method, NOTIFICATIONS_TO_CLIENT, NOTIFICATIONS_TO_SERVER,
            PayloadVisitor, REQUESTS_TO_CLIENT, REQUESTS_TO_SERVER, Row, find, visit_params,
            visit_result,
        },
        projection::project::project_error,
        version::Revision,
    },
};

/// A JSON-RPC message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message {
    /// A request, which expects a response.
    Request(Request),
    /// A notification, which expects no response.
    Notification(Notification),
    /// The response to a request.
    Response(Response),
}

/// A request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The id for the response.
    pub id: RequestId,
    /// The name of the method.
    pub method: String,
    /// The params, which are an object. `None` if there are none.
    pub params: Option<Box<RawValue>>,
}

/// A notification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The name of the method.
    pub method: String,
    /// The params, which are an object. `None` if there are none.
    pub params: Option<Box<RawValue>>,
}

/// The response to a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response {
    /// The id of the request. `None` only with an error, if the request's id could not be read.
    pub id: Option<RequestId>,
    /// The result, or the error in its place.
    pub outcome: Result<Box<RawValue>, ErrorObject>,
}

impl Message {
    /// Reads one message. Keys are matched exactly, and messages that two parsers could read differently are refused.
    ///
    /// # Errors
    /// If the bytes are not JSON, not a JSON-RPC message, or an array: see [`parse_batch`](Self::parse_batch).
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut params = Text::EMPTY;
        let message = Envelope::parse(bytes, &mut params)?;
        Ok(Self::from_envelope(message))
    }

    /// Reads a batch (2025-03-26 only), or one message. The messages of a batch are read or refused independently.
    #[must_use]
    pub fn parse_batch(bytes: &[u8]) -> Vec<Result<Self, MessageError>> {
        let text = str::from_utf8(bytes).unwrap_or_default();
        let mut cursor = Cursor::new(text);
        let mut items = Vec::new();
        let array = cursor.items(|cursor| {
            items.push(cursor.value()?.get());
            Ok(())
        });
        let is_batch = array.is_ok() && text.get(cursor.at()..).unwrap_or("x").trim().is_empty();
        if !is_batch {
            return vec![Self::parse(bytes)];
        }
        let items = items.into_iter();
        items.map(|item| Self::parse(item.as_bytes())).collect()
    }

    fn from_envelope(message: Envelope<'_>) -> Self {
        let raw = |params: Option<&Text<'_>>| params.map(|params| params.to_raw());
        match message {
            Envelope::Request(request) => Self::Request(Request {
                id: request.id,
                method: request.method.into_owned(),
                params: raw(request.params),
            }),
            Envelope::Notification(notification) => Self::Notification(Notification {
                method: notification.method.into_owned(),
                params: raw(notification.params),
            }),
            Envelope::Response(response) => Self::Response(Response {
                id: response.id,
                outcome: response.outcome.map(Text::to_raw),
            }),
        }
    }

    /// Appends the message as a line, which ends with a line break and has no other.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Request(request) => {
                let params = request.params.as_deref();
                write_raw(out, Some(&request.id), &request.method, params);
            }
            Self::Notification(notification) => {
                let params = notification.params.as_deref();
                write_raw(out, None, &notification.method, params);
            }
            Self::Response(response) => response.write(out),
        }
    }

    /// Returns the message as one line of JSON, with its line break.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

impl From<Request> for Message {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

impl From<Notification> for Message {
    fn from(notification: Notification) -> Self {
        Self::Notification(notification)
    }
}

impl From<Response> for Message {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

impl Request {
    /// Creates a request without params.
    #[must_use]
    pub fn new(id: impl Into<RequestId>, method: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            method: method.into(),
            params: None,
        }
    }

    /// Reads the params of the method `M`.
    ///
    /// # Errors
    /// If the params do not have the form that the method defines.
    pub fn params_of<M: Method>(&self) -> serde_json::Result<M::Params> {
        read(self.params.as_deref())
    }

    /// Replaces the params.
    ///
    /// # Errors
    /// If the params do not serialize to JSON.
    pub fn set_params(&mut self, params: &impl Serialize) -> Result<(), EncodeError> {
        self.params = Some(to_raw_value(params)?);
        Ok(())
    }

    /// Fits the request to a revision: members that the revision does not have are dropped, or expressed in another way
    /// if there is one. The params of methods that the protocol does not define stay as they are.
    ///
    /// # Errors
    /// If the revision does not have the method, or the params do not have the form that the method defines.
    pub fn fit(&mut self, to: Revision) -> Result<(), FitError> {
        const TABLES: [&[Row]; 3] = [REQUESTS_TO_SERVER, REQUESTS_TO_CLIENT, INPUT_REQUESTS];
        fit_params(&self.method, &mut self.params, &TABLES, to)
    }
}

impl Notification {
    /// Creates a notification without params.
    #[must_use]
    pub fn new(method: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            params: None,
        }
    }

    /// Reads the params of the notification `N`.
    ///
    /// # Errors
    /// If the params do not have the form that the notification defines.
    pub fn params_of<N: crate::revision::method::Notification>(
        &self,
    ) -> serde_json::Result<N::Params> {
        read(self.params.as_deref())
    }

    /// Replaces the params.
    ///
    /// # Errors
    /// If the params do not serialize to JSON.
    pub fn set_params(&mut self, params: &impl Serialize) -> Result<(), EncodeError> {
        self.params = Some(to_raw_value(params)?);
        Ok(())
    }

    /// Fits the notification to a revision, as [`Request::fit`] does.
    ///
    /// # Errors
    /// If the revision does not have the notification, or the params do not have the form that it defines.
    pub fn fit(&mut self, to: Revision) -> Result<(), FitError> {
        const TABLES: [&[Row]; 2] = [NOTIFICATIONS_TO_SERVER, NOTIFICATIONS_TO_CLIENT];
        fit_params(&self.method, &mut self.params, &TABLES, to)
    }
}

impl Response {
    /// Creates a response to the request with this id.
    #[must_use]
    pub fn new(id: impl Into<RequestId>, outcome: Result<Box<RawValue>, ErrorObject>) -> Self {
        Self {
            id: Some(id.into()),
            outcome,
        }
    }

    /// Reads the result of the method `M`. `None` if the response is an error.
    #[must_use]
    pub fn result_of<M: Method>(&self) -> Option<serde_json::Result<M::Result>> {
        let result = self.outcome.as_ref().ok()?;
        Some(serde_json::from_str(result.get()))
    }

    /// Fits the response to a revision. `method` is the method of the answered request. The results of methods that the
    /// protocol does not define, and results of an unknown type, stay as they are.
    ///
    /// # Errors
    /// If the result does not have the form that the method defines, or if it asks the client for input and the revision
    /// has no such results.
    pub fn fit(&mut self, method: &str, to: Revision) -> Result<(), FitError> {
        let result = match &mut self.outcome {
            Ok(result) => result,
            Err(error) => {
                project_error(error, to);
                return Ok(());
            }
        };
        let fitted = match peek_result_type(Text::from(&**result)) {
            ResultType::Complete => visit_result(method, FitResult { raw: result, to }),
            ResultType::InputRequired if !to.has_result_types() => {
                return Err(FitError::input_required(method, to));
            }
            ResultType::InputRequired => Some(fit_input_required(result, to)),
            ResultType::Other => None,
        };
        if let Some(fitted) = fitted {
            *result = fitted.map_err(|error| FitError::unreadable(method, error))?;
        }
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        match (&self.outcome, &self.id) {
            (Ok(result), Some(id)) => {
                let written: Result<(), Infallible> = write_response(out, id, false, |out| {
                    out.extend_from_slice(result.get().as_bytes());
                    Ok(())
                });
                let Ok(()) = written;
            }
            (Ok(_), None) => {
                let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "a result without an id");
                write_error(out, None, &error);
            }
            (Err(error), id) => write_error(out, id.as_ref(), error),
        }
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> serde_json::Result<T> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
}

fn fit_params(
    method: &str,
    params: &mut Option<Box<RawValue>>,
    tables: &[&'static [Row]],
    to: Revision,
) -> Result<(), FitError> {
    let mut rows = tables
        .iter()
        .filter_map(|table| find(table, method))
        .peekable();
    if rows.peek().is_some() && !rows.any(|row| row.is_in(to)) {
        return Err(FitError::no_method(method, to));
    }
    let Some(raw) = params else { return Ok(()) };
    if let Some(fitted) = visit_params(method, FitParams { raw, to }) {
        *raw = fitted.map_err(|error| FitError::unreadable(method, error))?;
    }
    Ok(())
}

struct FitParams<'a> {
    raw: &'a RawValue,
    to: Revision,
}

impl PayloadVisitor for FitParams<'_> {
    type Output = serde_json::Result<Box<RawValue>>;

    fn visit<P: Payload + DeserializeOwned>(self) -> Self::Output {
        let mut params = P::from_json(self.raw.get())?;
        params.fit(self.to);
        let mut out = Vec::new();
        params.append_json(&mut out)?;
        raw(out)
    }
}

struct FitResult<'a> {
    raw: &'a RawValue,
    to: Revision,
}

impl PayloadVisitor for FitResult<'_> {
    type Output = serde_json::Result<Box<RawValue>>;

    fn visit<R: Payload + DeserializeOwned>(self) -> Self::Output {
        let mut result = R::from_json(self.raw.get())?;
        let mut out = Vec::new();
        let written = encode_payload(&mut out, &mut result, self.to, None);
        written.map_err(EncodeError::into_inner)?;
        raw(out)
    }
}

fn raw(json: Vec<u8>) -> serde_json::Result<Box<RawValue>> {
    let text = into_text(json).map_err(EncodeError::into_inner)?;
    RawValue::from_string(text.into())
}

fn fit_input_required(json: &RawValue, to: Revision) -> serde_json::Result<Box<RawValue>> {
    let mut result = InputRequiredResult::from_json(json.get())?;
    let mut out = Vec::new();
    encode_result(&mut out, &mut result, to, None).map_err(EncodeError::into_inner)?;
    raw(out)
}

/// The reason why bytes are not a message, with the error to respond with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MessageError {
    /// The id for the error response, if one could be read.
    pub id: Option<RequestId>,
    /// The error: [`ErrorCode::PARSE_ERROR`] or [`ErrorCode::INVALID_REQUEST`].
    pub error: ErrorObject,
}

impl MessageError {
    /// Returns whether the bytes are not JSON.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        self.error.code == ErrorCode::PARSE_ERROR
    }

    /// Returns the error response to the message.
    #[must_use]
    pub fn into_response(self) -> Response {
        Response {
            id: self.id,
            outcome: Err(self.error),
        }
    }
}

impl From<Malformed> for MessageError {
    fn from(malformed: Malformed) -> Self {
        Self {
            id: malformed.id,
            error: malformed.error,
        }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl Error for MessageError {}

/// The reason why a message cannot be fitted to a revision.
#[derive(Debug)]
pub struct FitError {
    message: String,
    source: Option<serde_json::Error>,
}

impl FitError {
    fn no_method(method: &str, to: Revision) -> Self {
        Self {
            message: format!("revision {to} does not have {method}"),
            source: None,
        }
    }

    fn input_required(method: &str, to: Revision) -> Self {
        Self {
            message: format!(
                "the result of {method} asks for input, which revision {to} does not support"
            ),
            source: None,
        }
    }

    fn unreadable(method: &str, error: serde_json::Error) -> Self {
        Self {
            message: format!("cannot read the message as {method}: {error}"),
            source: Some(error),
        }
    }

    /// Returns whether the message does not have the form that its method defines. Otherwise the revision does not have the
    /// method or its result.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.source.is_some()
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for FitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_ref();
        source.map(|source| source as &(dyn Error + 'static))
    }
}
