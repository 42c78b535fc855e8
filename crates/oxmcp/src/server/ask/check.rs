//! Checks before a question is asked, and the errors for invalid answers.

use oxmcp_protocol::{ClientCapabilities, InputRequest, Revision};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    session::connection::{Connection, RequestContext},
};

/// Whether the client supports any kind of question: elicitation, sampling or roots.
pub(crate) fn is_any_supported(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some()
        || capabilities.sampling.is_some()
        || capabilities.roots.is_some()
}

/// Refuses to ask a question while a batch is served.
///
/// # Errors
/// [`Error::is_unsupported`] if the request came in a batch.
pub(crate) fn batch(cx: &RequestContext) -> Result<()> {
    match cx.parts().batch {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(
            "cannot ask the client: the request came in a batch, whose responses are sent together; send it by itself",
        )),
    }
}

/// Refuses a question whose capability the client has not declared, and a malformed question.
///
/// # Errors
/// [`ErrorCode::MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY), with the missing capability; nothing
/// has been sent. A modern client may declare the capability and repeat the request. A legacy client cannot change its
/// capabilities, so the model gets to see the error.
pub(crate) fn question(
    request: &InputRequest,
    capabilities: &ClientCapabilities,
    revision: Revision,
) -> Result<()> {
    if let Some(missing) = request.missing_capability(capabilities, revision) {
        let error = Error::from(missing);
        return Err(if revision.is_modern() {
            error
        } else {
            error.for_models()
        });
    }
    request.check().map_err(Error::misuse)
}

/// Checks an answer against its question, and normalizes its form. One that does not fit is read leniently, if its connection
/// tolerates that.
///
/// # Errors
/// If the answer is invalid: with input responses the error is about the params, in other revisions about the client's result.
pub(crate) fn answer(
    connection: &Connection,
    key: Option<&str>,
    request: &InputRequest,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>> {
    let checked = connection.check_answer(request, answer, revision);
    checked.map_err(|problem| wrong_answer(key, request.method(), &problem, revision))
}

/// The error for an invalid answer. `key` is the key of the question, if it has one.
pub(crate) fn wrong_answer(
    key: Option<&str>,
    method: &str,
    problem: &str,
    revision: Revision,
) -> Error {
    let key = key.map_or_else(String::new, |key| format!(" ({key:?})"));
    let message = format!("invalid answer to {method}{key}: {problem}");
    if revision.has_input_responses() {
        Error::invalid_params(message)
    } else {
        Error::decode(message)
    }
}
