//! Lenient reading of a value: attempts, each with the repairs that the failures before suggest.

use oxmcp_json::{Cursor, Text};
use serde::de::DeserializeOwned;

use super::{
    Leniency, Tolerated,
    deserializer::Lenient,
    repair::without_lone_surrogates,
    state::{Attempts, State},
};

/// A value that was read leniently.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// The deviations that were tolerated: 16 at most, first of all what was left out.
    pub tolerated: Vec<Tolerated>,
}

/// Reads a value leniently. It is meant for a text that could not be read strictly.
///
/// The attempts together read at most four times the length of the text.
///
/// # Errors
/// If the text is not JSON, has a duplicate name, or lacks a required member. The error describes the first attempt.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<Reading<T>, serde_json::Error> {
    let invalid =
        |message: &dyn std::fmt::Display| <serde_json::Error as serde::de::Error>::custom(message);
    let mut cursor = Cursor::new(text);
    let Ok(value) = cursor.value() else {
        return Err(invalid(&"not valid JSON"));
    };
    let mended = without_lone_surrogates(value.get());
    let state = State::new(mended.len());
    if mended.len() != value.get().len() || *mended != *value.get() {
        state.note(Leniency::LoneSurrogate, String::new());
    }
    let mut attempts = Attempts::new(&state, Text::checked(&mended));
    let mut first = None;
    while let Some(text) = attempts.next() {
        match T::deserialize(Lenient::new(&state, text)) {
            Ok(value) if state.is_final.get() => {
                drop(value);
                return Err(invalid(&"duplicate key"));
            }
            Ok(value) => {
                attempts.succeeded();
                return Ok(Reading {
                    value,
                    tolerated: state.tolerated.take(),
                });
            }
            Err(error) => {
                let message = attempts.failed(error);
                first.get_or_insert(message);
            }
        }
    }
    Err(invalid(&first.unwrap_or_default()))
}
