//! What a client answers: held against the question, and brought into one form.

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    Error, Result, Revision,
    protocol::{
        CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams, ElicitResult,
        ElicitSchema, InputRequest, JsonObject, ListRootsResult, PrimitiveSchema, elicit_check,
    },
};

/// Holds an answer against its question.
///
/// # Errors
/// Where it is no answer to it: in a modern request the params are wrong, elsewhere the client's result is.
pub(super) fn check(
    key: Option<&str>,
    request: &InputRequest,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>> {
    let checked = match request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form_answer(form, answer, revision),
        InputRequest::Elicit(_) => is::<ElicitResult>(answer),
        InputRequest::CreateMessage(_) => is::<CreateMessageResult>(answer),
        InputRequest::ListRoots(_) => is::<ListRootsResult>(answer),
        _ => Ok(answer.to_owned()),
    };
    checked.map_err(|problem| wrong(key, request.method(), &problem, revision))
}

/// The error for an answer that does not fit. The key is that of the question, where it has one.
pub(super) fn wrong(key: Option<&str>, method: &str, problem: &str, revision: Revision) -> Error {
    let key = key.map_or_else(String::new, |key| format!(" ({key:?})"));
    let message = format!("the answer to {method}{key} does not fit: {problem}");
    if revision.has_input_responses() {
        Error::invalid_params(message)
    } else {
        Error::decode(message)
    }
}

fn is<T: serde::de::DeserializeOwned>(answer: &RawValue) -> Result<Box<RawValue>, String> {
    let read = serde_json::from_str::<T>(answer.get());
    read.map(|_| answer.to_owned())
        .map_err(|error| error.to_string())
}

fn form_answer(
    form: &ElicitFormParams,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>, String> {
    let mut result: ElicitResult =
        serde_json::from_str(answer.get()).map_err(|error| error.to_string())?;
    if result.action != ElicitAction::Accept {
        result.content = None;
    } else {
        let schema = &form.requested_schema;
        let content = result.content.as_deref();
        let content = content.map(|content| convert(schema, content, revision));
        result.content = Some(elicit_check::complete(schema, content.as_deref())?);
    }
    to_raw_value(&result).map_err(|error| error.to_string())
}

/// Undoes what the way through an old revision or an odd client has done: lists that were typed as text, whole numbers
/// that were written with a fraction.
fn convert(schema: &ElicitSchema, content: &RawValue, revision: Revision) -> Box<RawValue> {
    let Ok(mut fields) = serde_json::from_str::<JsonObject>(content.get()) else {
        return content.to_owned();
    };
    for (name, field) in &schema.properties {
        let Some(value) = fields.get_mut(name) else {
            continue;
        };
        match field {
            PrimitiveSchema::MultiSelect(_) if !revision.has_rich_forms() => split(value),
            PrimitiveSchema::Number(_) => whole(value),
            _ => {}
        }
    }
    to_raw_value(&fields).unwrap_or_else(|_| content.to_owned())
}

fn split(value: &mut Value) {
    if let Value::String(text) = value {
        let parts = text.split(',').map(str::trim);
        *value = parts.filter(|part| !part.is_empty()).collect();
    }
}

/// The bound up to which every whole number is one of the numbers of JSON parsers everywhere.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn whole(value: &mut Value) {
    if let Value::Number(number) = value
        && number.is_f64()
        && let Some(float) = number.as_f64()
        && float.fract() == 0.0
        && float.abs() < EXACT
        && let Ok(number) = format!("{float:.0}").parse::<i64>()
    {
        *value = number.into();
    }
}
