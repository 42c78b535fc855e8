//! Explanations: descriptions of validation failures that a model can act on.

pub(crate) mod expected;
mod formats;
pub(crate) mod integers;
pub(crate) mod messages;
pub(crate) mod misfit;
pub(crate) mod misspelt;
pub(crate) mod refusal;
pub(crate) mod refused;
pub(crate) mod rules;
pub(crate) mod spelling;
mod watched_object;
