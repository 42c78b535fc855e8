//! Responses of a client to the input requests of a server.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::values::ordered_map::OrderedMap;

/// The responses of a client, by the keys of the input requests.
pub type InputResponses = OrderedMap<InputResponse>;

/// One response: the result of the input request with the same key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponse(Box<RawValue>);

impl InputResponse {
    /// Creates a response: an [`ElicitResult`](crate::types::elicitation::params::ElicitResult), a
    /// [`CreateMessageResult`](crate::types::sampling::CreateMessageResult), a
    /// [`ListRootsResult`](crate::types::roots::ListRootsResult), or the result that an extension defines.
    ///
    /// # Errors
    /// If the result cannot be serialized as JSON.
    pub fn new(result: &impl Serialize) -> serde_json::Result<Self> {
        to_raw_value(result).map(Self)
    }

    /// Decodes the response as the type of the result that was requested.
    ///
    /// # Errors
    /// If the client sent another type of result.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.get())
    }

    /// Returns the response as raw JSON.
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
