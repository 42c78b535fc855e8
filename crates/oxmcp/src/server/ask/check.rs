//! Checks before a question is asked, and the errors of answers that do not fit.

use oxmcp_protocol::{ClientCapabilities, InputRequest, Revision};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    session::connection::RequestContext,
};

/// Whether there is anything that the client can be asked.
pub(super) fn is_any_supported(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some()
        || capabilities.sampling.is_some()
        || capabilities.roots.is_some()
}

/// Refuses to ask while a batch is served.
///
/// # Errors
/// [`Error::is_unsupported`].
pub(super) fn batch(cx: &RequestContext) -> Result<()> {
    match cx.parts().batch {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(
            "the client sent this request in a batch, and waits for all its answers at once: nothing can be asked meanwhile",
        )),
    }
}

/// Refuses a question that the client has not said it can answer, and one that no client would answer.
///
/// # Errors
/// [`ErrorCode::MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY), with what is missing. Nothing has
/// been sent then. A modern client may declare it and make the request again; a legacy one said what it can once and for all, so
/// that the model is told.
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

/// Checks an answer against its question, and brings it into one form.
///
/// # Errors
/// Where it does not fit: in a modern request the params are wrong, elsewhere the client's result is.
pub(super) fn answer(
    key: Option<&str>,
    request: &InputRequest,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>> {
    let checked = request.check_answer(answer, revision);
    checked.map_err(|problem| wrong_answer(key, request.method(), &problem, revision))
}

/// The error for an answer that does not fit. The key is that of the question, where it has one.
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
