//! Checks of a question, against the capabilities of the client, and of an answer, against its question.

use oxmcp_protocol::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitSchema, ElicitationCapability, ErrorCode, InputRequest,
    JsonObject, ListRootsResult, MissingClientCapabilityData, Payload, PrimitiveSchema, Revision,
    RootsCapability, SamplingCapability,
    internal::{check_tool_results, elicit_check, uri::check_page},
};
use serde::de::DeserializeOwned;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

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

/// Refuses a question that the client has not said it can answer.
///
/// # Errors
/// [`ErrorCode::MISSING_CLIENT_CAPABILITY`], with what is missing. Nothing has been sent then.
pub(super) fn question(
    request: &InputRequest,
    capabilities: &ClientCapabilities,
    revision: Revision,
) -> Result<()> {
    let missing = match request {
        InputRequest::Elicit(ElicitParams::Form(_)) => missing_form(capabilities, revision),
        InputRequest::Elicit(ElicitParams::Url(_)) => missing_url(capabilities, revision),
        InputRequest::CreateMessage(params) => missing_sampling(params, capabilities, revision),
        InputRequest::ListRoots(_) => capabilities.roots.is_none().then(|| {
            let needed = ClientCapabilities::default().with_roots(RootsCapability::default());
            ("list its roots", "roots", needed)
        }),
        _ => {
            let method = request.method();
            return Err(Error::misuse(format!(
                "clients can be asked by elicitation (a form or a URL), sampling and roots, and this is none of them: {method}"
            )));
        }
    };
    let Some((what, name, needed)) = missing else {
        return content(request);
    };
    let message = if name == "elicitation" && !revision.has_elicitation() {
        format!("the client cannot {what}: revision {revision} has no elicitation")
    } else if name == "elicitation.url" && !revision.has_elicitation_modes() {
        format!("the client cannot {what}: revision {revision} has no such elicitation")
    } else {
        format!("the client cannot {what}: it did not declare the capability {name:?}")
    };
    let error = Error::protocol(ErrorCode::MISSING_CLIENT_CAPABILITY, message);
    Err(error.with_data(MissingClientCapabilityData::new(needed)))
}

/// Refuses what no client would answer: a URL that is none, a conversation with a model from which a tool's result is missing.
fn content(request: &InputRequest) -> Result<()> {
    match request {
        InputRequest::Elicit(ElicitParams::Url(params)) => {
            check_page(&params.url).map_err(|wrong| {
                Error::misuse(format!(
                    "the user cannot be sent to {:?}: {wrong}",
                    params.url
                ))
            })
        }
        InputRequest::CreateMessage(params) => {
            check_tool_results(&params.messages).map_err(Error::misuse)
        }
        _ => Ok(()),
    }
}

/// What the client cannot do, the capability's name, and what it would have had to declare.
type Missing = (&'static str, &'static str, ClientCapabilities);

fn missing_form(capabilities: &ClientCapabilities, revision: Revision) -> Option<Missing> {
    let elicitation = capabilities.elicitation.as_ref();
    if revision.has_elicitation() && elicitation.is_some_and(ElicitationCapability::has_form) {
        return None;
    }
    let form = ElicitationCapability::default().with_form(JsonObject::new());
    let needed = ClientCapabilities::default().with_elicitation(form);
    Some(("show the user a form", "elicitation", needed))
}

fn missing_url(capabilities: &ClientCapabilities, revision: Revision) -> Option<Missing> {
    let elicitation = capabilities.elicitation.as_ref();
    if revision.has_elicitation_modes() && elicitation.is_some_and(ElicitationCapability::has_url) {
        return None;
    }
    let url = ElicitationCapability::default().with_url(JsonObject::new());
    let needed = ClientCapabilities::default().with_elicitation(url);
    Some(("send the user to a URL", "elicitation.url", needed))
}

fn missing_sampling(
    params: &CreateMessageParams,
    capabilities: &ClientCapabilities,
    revision: Revision,
) -> Option<Missing> {
    let needed = |sampling| ClientCapabilities::default().with_sampling(sampling);
    let Some(sampling) = &capabilities.sampling else {
        let needed = needed(SamplingCapability::default());
        return Some(("ask a model", "sampling", needed));
    };
    let wants_tools = !params.tools.is_empty() || params.tool_choice.is_some();
    if !wants_tools || revision.has_sampling_tools() && sampling.tools.is_some() {
        return None;
    }
    let needed = needed(SamplingCapability::default().with_tools(JsonObject::new()));
    Some(("give a model tools", "sampling.tools", needed))
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
    let checked = match request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form_answer(form, answer, revision),
        InputRequest::Elicit(_) => parsed::<ElicitResult>(answer),
        InputRequest::CreateMessage(_) => parsed::<CreateMessageResult>(answer),
        InputRequest::ListRoots(_) => parsed::<ListRootsResult>(answer),
        _ => Ok(answer.to_owned()),
    };
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

fn parsed<T: Payload + DeserializeOwned>(answer: &RawValue) -> Result<Box<RawValue>, String> {
    let read = T::from_json(answer.get());
    read.map(|_| answer.to_owned())
        .map_err(|error| error.to_string())
}

fn form_answer(
    form: &ElicitFormParams,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>, String> {
    let mut result: ElicitResult =
        ElicitResult::from_json(answer.get()).map_err(|error| error.to_string())?;
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
