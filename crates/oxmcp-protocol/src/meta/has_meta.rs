//! Params and results with `_meta`, with (de)serialization code that is compiled once.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    lenient::{self, Reading},
    meta::object::Meta,
};

/// Params or a result with a `_meta` member.
pub trait HasMeta: Serialize {
    /// The `resultType` of the result.
    const RESULT_TYPE: &'static str = "complete";

    /// The `_meta`. `None` if the type has no such member.
    fn meta_mut(&mut self) -> Option<&mut Meta>;

    /// Appends the value as JSON.
    ///
    /// # Errors
    /// If the value cannot be serialized as JSON.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Reads the value from JSON.
    ///
    /// # Errors
    /// If the text is not JSON of this type.
    fn read(json: &str) -> serde_json::Result<Self>
    where
        Self: DeserializeOwned,
    {
        serde_json::from_str(json)
    }

    /// Reads the value from JSON that could not be read strictly.
    ///
    /// # Errors
    /// If the text cannot be read leniently either.
    fn read_leniently(json: &str) -> serde_json::Result<Reading<Self>>
    where
        Self: DeserializeOwned,
    {
        lenient::read(json)
    }
}
