//! Answers of a client to the questions of a server.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::values::ordered_map::OrderedMap;

/// What a client answers, by the keys of what was asked.
pub type InputResponses = OrderedMap<InputResponse>;

/// One answer: the result of what was asked under the same key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponse(Box<RawValue>);

impl InputResponse {
    /// An answer: an [`ElicitResult`](crate::types::elicitation::params::ElicitResult), a [`CreateMessageResult`](crate::types::sampling::CreateMessageResult), a
    /// [`ListRootsResult`](crate::types::roots::ListRootsResult), or what an extension defines.
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
