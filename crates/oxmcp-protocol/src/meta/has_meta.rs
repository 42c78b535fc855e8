//! Params and results with a `_meta`, which are read and written by code that is compiled once.

use serde::{Serialize, de::DeserializeOwned};

use crate::meta::object::Meta;

/// A result or params with a `_meta` of its own.
pub trait HasMeta: Serialize {
    /// The `resultType` of such a result.
    const RESULT_TYPE: &'static str = "complete";

    /// The `_meta`. `None` where there is no place for one.
    fn meta_mut(&mut self) -> Option<&mut Meta>;

    /// Appends it as JSON.
    ///
    /// # Errors
    /// Where it cannot be JSON.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Reads it from JSON.
    ///
    /// # Errors
    /// Where it is none.
    fn read(json: &str) -> serde_json::Result<Self>
    where
        Self: DeserializeOwned,
    {
        serde_json::from_str(json)
    }
}
