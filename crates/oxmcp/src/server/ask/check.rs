//! Checks before a question is asked, and the errors of answers that do not fit.

use oxmcp_protocol::{ClientCapabilities, InputRequest, Revision};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    session::connection::RequestContext,
};

/// Whether the client supports any kind of question: elicitation, sampling or roots.
pub(super) fn is_any_supported(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some()
        || capabilities.sampling.is_some()
        || capabilities.roots.is_some()
}

/// Refuses to ask a question while a batch is served.
///
/// # Errors
/// [`Error::is_unsupported`] if the request came in a batch.
pub(super) fn batch(cx: &RequestContext) -> Result<()> {
    match cx.parts().batch {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(
            "the client sent this request in a batch, and waits for all its answers at once: nothing can be asked meanwhile",
        )),
    }
}

/// Refuses a question for which the client has not declared the capability, and a question that no client would answer.
///
/// # Errors
/// [`ErrorCode::MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY), with the missing capability. Nothing
/// has been sent then. A modern client may declare the capability and make the request again; a legacy client has declared its
/// capabilities once and for all, so the error is made one that the model is told of.
pub(super) fn question(
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

/// Checks an answer against its question, and normalizes its form.
///
/// # Errors
/// If the answer does not fit: in a request with input responses the error says that the params are wrong, in other revisions
/// that the client's result is.
pub(super) fn answer(
    key: Option<&str>,
    request: &InputRequest,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>> {
    let checked = request.check_answer(answer, revision);
    checked.map_err(|problem| wrong_answer(key, request.method(), &problem, revision))
}

/// The error for an answer that does not fit. `key` is the key of the question, if it has one.
pub(super) fn wrong_answer(
    key: Option<&str>,
    method: &str,
    problem: &str,
    revision: Revision,
) -> Error {
    let key = key.map_or_else(String::new, |key| format!(" ({key:?})"));
    let message = format!("the answer to {method}{key} does not fit: {problem}");
    if revision.has_input_responses() {
        Error::invalid_params(message)
    } else {
        Error::decode(message)
    }
}
