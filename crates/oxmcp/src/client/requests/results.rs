//! Reading what servers answer.

use std::any::Any;

use serde::de::DeserializeOwned;

use crate::{
    client::session::ClientSession,
    error::{Error, Result},
    protocol::{CallToolResult, Method},
    session::CallResult,
};

/// Reads the plain result of a tool, the commonest of all results, without a detour. `None` for anything else.
fn read_plain<T: 'static>(result: &mut CallResult) -> Option<T> {
    let mut read: Option<T> = None;
    let any: &mut dyn Any = &mut read;
    let plain = any.downcast_mut::<Option<CallToolResult>>()?;
    *plain = match result.outline {
        Some(outline) => CallToolResult::read_outlined(&mut result.json, outline),
        None => CallToolResult::read_plain(&mut result.json),
    };
    read
}

/// Reads a result in a session, which learns from it what it needs to know.
pub(crate) fn read<M: Method>(
    session: &ClientSession,
    mut result: CallResult,
) -> Result<M::Result> {
    match read_plain(&mut result) {
        Some(read) => Ok(read),
        None => read_text::<M>(session, &result.json),
    }
}

/// The same for a result of which nothing but the text is known.
pub(crate) fn read_text<M: Method>(session: &ClientSession, result: &str) -> Result<M::Result> {
    let mut result = decode(M::NAME, result)?;
    session.peer().screen(&mut result);
    Ok(result)
}

/// Reads a result as what the method returns.
pub(crate) fn decode<T: DeserializeOwned>(method: &str, result: &str) -> Result<T> {
    // An array would pass as an object's members in their order.
    if !result.starts_with('{') {
        return Err(Error::decode(format!(
            "the server's answer to {method} is not an object"
        )));
    }
    serde_json::from_str(result).map_err(|error| {
        Error::decode(format!(
            "the server's answer to {method} is not what the method returns: {error}"
        ))
        .with_source(error)
    })
}
