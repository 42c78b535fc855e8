//! Reading what servers answer.

use std::any::Any;

use serde::de::DeserializeOwned;

use crate::{
    Error, Result,
    client::ClientSession,
    json::Text,
    protocol::{CallToolResult, Method},
};

/// Reads the plain result of a tool, the commonest of all results, without a detour. `None` for anything else.
fn read_plain<T: 'static>(result: &str) -> Option<T> {
    let mut read: Option<T> = None;
    let any: &mut dyn Any = &mut read;
    let plain = any.downcast_mut::<Option<CallToolResult>>()?;
    *plain = CallToolResult::read_plain(Text::checked(result));
    read
}

/// Reads a result in a session, which learns from it what it needs to know.
pub(super) fn read<M: Method>(session: &ClientSession, result: &str) -> Result<M::Result> {
    let mut result = decode(M::NAME, result)?;
    session.peer().screen(&mut result);
    Ok(result)
}

/// Reads a result as what the method returns.
pub(super) fn decode<T: DeserializeOwned + 'static>(method: &str, result: &str) -> Result<T> {
    if let Some(read) = read_plain(result) {
        return Ok(read);
    }
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
