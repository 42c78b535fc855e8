//! The response to a request in the middleware.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};

/// The result of a request.
pub struct Response(Box<RawValue>);

impl Response {
    /// Creates a response with this result.
    ///
    /// The result is sent to the peer unchanged: it must have the form that the peer's revision defines for the method.
    ///
    /// # Errors
    /// If `result` cannot be serialized.
    pub fn new(result: &impl Serialize) -> Result<Self> {
        raw(result).map(Self)
    }

    pub(crate) fn empty() -> Self {
        Self(raw(&serde_json::Map::new()).expect("an empty object is JSON"))
    }

    /// Creates a response from JSON that has been checked.
    pub(crate) fn from_text(json: Box<str>) -> Self {
        Self(RawValue::from_string(json.into()).expect("it has been checked"))
    }

    pub(crate) fn into_text(self) -> Box<str> {
        self.0.into()
    }

    /// Returns the result as JSON.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Deserializes the result, for example as [`CallToolResult`](oxmcp_protocol::CallToolResult).
    ///
    /// # Errors
    /// If the result does not match the type.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.0.get()).map_err(|error| Error::decode(error.to_string()))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("bytes", &self.0.get().len())
            .finish()
    }
}

/// Serializes a value as JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(value).map_err(|error| {
        Error::misuse(format!("could not serialize the value: {error}")).with_source(error)
    })
}
