//! The results of calls, read as the types of their methods.

use std::any::Any;

use oxmcp_protocol::{CallToolResult, ContentBlock, Meta, Method, Payload};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::Value;

use crate::{
    client::{requests::left_out::PageLosses, session::ClientSession},
    error::{Error, Result},
    session::{connection::Connection, outbound::calls::CallResult},
};

/// Reads the plain result of a tool, the commonest of all results, in one pass. `None` for anything else.
fn read_plain<T: 'static>(result: &mut CallResult) -> Option<T> {
    let mut read: Option<T> = None;
    let any: &mut dyn Any = &mut read;
    let plain = any.downcast_mut::<Option<CallToolResult>>()?;
    *plain = match result.result_index {
        Some(result_index) => CallToolResult::read_indexed(&mut result.json, result_index),
        None => CallToolResult::read_plain(&mut result.json),
    };
    read
}

/// Reads a result, and lets the session learn from it.
pub(crate) fn read<M: Method>(session: &ClientSession, result: CallResult) -> Result<M::Result> {
    read_noting::<M>(session, result, None)
}

/// [`read()`], with what is left out of the result added to `losses`.
pub(crate) fn read_noting<M: Method>(
    session: &ClientSession,
    mut result: CallResult,
    losses: Option<&PageLosses>,
) -> Result<M::Result> {
    match read_plain(&mut result) {
        Some(read) => Ok(read),
        None => read_text::<M>(session, &result.json, losses),
    }
}

/// [`read()`], for a text. What is left out of it is added to `losses`.
pub(crate) fn read_text<M: Method>(
    session: &ClientSession,
    text: &str,
    losses: Option<&PageLosses>,
) -> Result<M::Result> {
    let read = session
        .connection()
        .read_noting(M::NAME, text, |tolerated| {
            if let Some(losses) = losses {
                losses.note(text, tolerated);
            }
        });
    let mut result = read.map_err(|error| invalid(M::NAME, error))?;
    session.state().screen(&mut result);
    Ok(result)
}

/// Reads a result as the result type of the method.
pub(crate) fn decode<T: Payload + DeserializeOwned>(
    connection: &Connection,
    method: &str,
    result: &str,
) -> Result<T> {
    let read = connection.read(method, result);
    read.map_err(|error| invalid(method, error))
}

fn invalid(method: &str, error: serde_json::Error) -> Error {
    Error::decode(format!(
        "invalid result of {method} from the server: {error}"
    ))
    .with_source(error)
}

/// Reads the structured content of a tool's result, or the text in its place.
pub(crate) fn structured<T: DeserializeOwned>(result: &CallToolResult) -> Result<T> {
    let texts = || result.content.iter().filter_map(ContentBlock::as_text);
    if result.is_error {
        let said = texts().collect::<Vec<_>>().join("\n");
        return Err(Error::tool(if said.is_empty() {
            "the tool failed without a message".into()
        } else {
            said
        }));
    }
    let decoded = match (&result.structured_content, texts().next()) {
        (Some(structured), _) => read_structured(structured.get(), &result.meta),
        (None, Some(text)) => read_unstructured(text),
        (None, None) => return Err(Error::decode("the tool returned no structured content")),
    };
    decoded.map_err(|error| {
        Error::decode(format!(
            "the tool's result does not match the requested type: {error}"
        ))
        .with_source(error)
    })
}

/// Reads text instead of structured content. It need not be JSON: some tools write a bare word for a string.
fn read_unstructured<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    read_structured(text, &Meta::default()).or_else(|error| {
        T::deserialize(text.into_deserializer()).map_err(|_: serde_json::Error| error)
    })
}

/// Reads structured content. Legacy revisions allow objects only, and there a value of another type is wrapped in the member
/// `result`. If the server marks the value as wrapped, it is unwrapped; otherwise only if the whole cannot be read.
fn read_structured<T: DeserializeOwned>(json: &str, meta: &Meta) -> serde_json::Result<T> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<T> {
        result: T,
    }
    let unwrapped = || serde_json::from_str(json).map(|Wrapped { result }| result);
    if meta.get(Meta::WRAPPED) == Some(&Value::Bool(true)) {
        return unwrapped();
    }
    serde_json::from_str(json).or_else(|error| unwrapped().map_err(|_| error))
}
