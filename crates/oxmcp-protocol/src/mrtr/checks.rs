//! Checks of an input request against the capabilities of the client, and of an answer against its input request.

use std::mem;

use oxmcp_json::Text;
use serde::de::DeserializeOwned;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    error::EncodeError,
    jsonrpc::error::{ErrorCode, ErrorObject},
    lenient::{Reading, Tolerated},
    meta::object::Meta,
    mrtr::requests::InputRequest,
    result::payload::Payload,
    revision::version::Revision,
    types::{
        base::EmptyParams,
        capabilities::{
            ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
        },
        elicitation::{
            params::{ElicitAction, ElicitFormParams, ElicitParams, ElicitResult},
            schema::{ElicitSchema, PrimitiveSchema},
        },
        errors::MissingClientCapabilityData,
        roots::ListRootsResult,
        sampling::{CreateMessageParams, CreateMessageResult, IncludeContext},
    },
    values::json::{JsonObject, whole},
};

/// The method of a request, the `_meta` of its params, and its params without the `_meta`.
type Request = (&'static str, Meta, Box<RawValue>);

/// The action that the client does not support, in words; the name of the capability; and the capabilities that the client must
/// declare.
type Missing = (&'static str, &'static str, ClientCapabilities);

impl InputRequest {
    /// Returns the message for the user. Empty for input requests other than elicitations.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Elicit(params) => params.message(),
            Self::CreateMessage(_) | Self::ListRoots(_) | Self::Unknown { .. } => "",
        }
    }

    /// Converts the input request to a request of a session, fitted to the revision of the client: the method, the `_meta` of the
    /// params, and the params without it. `None` if the kind of input request is unknown.
    ///
    /// # Errors
    /// If the params cannot be serialized as JSON.
    pub fn into_request(self, to: Revision) -> Result<Option<Request>, EncodeError> {
        fn written<P: Payload>(
            method: &'static str,
            mut params: P,
            to: Revision,
        ) -> Result<Option<Request>, EncodeError> {
            params.fit(to);
            let meta = params.metadata().map(mem::take).unwrap_or_default();
            Ok(Some((method, meta, to_raw_value(&params)?)))
        }
        match self {
            Self::Elicit(params) => written("elicitation/create", params, to),
            Self::CreateMessage(params) => written("sampling/createMessage", *params, to),
            Self::ListRoots(params) => written::<EmptyParams>("roots/list", params, to),
            Self::Unknown { .. } => Ok(None),
        }
    }

    /// Removes an optional part that needs a capability which the client did not declare: the context of other servers for a
    /// model, if the client lacks `sampling.context`. Revisions that have no such capability do not require it.
    pub fn fit_capabilities(&mut self, capabilities: &ClientCapabilities, revision: Revision) {
        if let Self::CreateMessage(params) = self
            && revision.has_sampling_tools()
            && params.include_context != Some(IncludeContext::None)
            && let Some(sampling) = &capabilities.sampling
            && sampling.context.is_none()
        {
            params.include_context = None;
        }
    }

    /// Returns the error for a client that did not declare the capability to answer, or whose revision lacks it. `None` if the
    /// client can answer, or if the kind of input request is unknown.
    #[must_use]
    pub fn missing_capability(
        &self,
        capabilities: &ClientCapabilities,
        revision: Revision,
    ) -> Option<ErrorObject> {
        let (action, name, needed) = match self {
            Self::Elicit(ElicitParams::Form(_)) => missing_form(capabilities, revision),
            Self::Elicit(ElicitParams::Url(_)) => missing_url(capabilities, revision),
            Self::CreateMessage(params) => missing_sampling(params, capabilities, revision),
            Self::ListRoots(_) => capabilities.roots.is_none().then(|| {
                let needed = ClientCapabilities::default().with_roots(RootsCapability::default());
                ("list its roots", "roots", needed)
            }),
            Self::Elicit(ElicitParams::Unknown(_)) | Self::Unknown { .. } => None,
        }?;
        let message = if name == "elicitation" && !revision.has_elicitation() {
            format!("the client cannot {action}: revision {revision} has no elicitation")
        } else if name == "elicitation.url" && !revision.has_elicitation_modes() {
            format!("the client cannot {action}: revision {revision} has no URL elicitation")
        } else {
            format!("the client cannot {action}: it did not declare the capability {name:?}")
        };
        let error = ErrorObject::new(ErrorCode::MISSING_CLIENT_CAPABILITY, message);

        Some(error.with_data(MissingClientCapabilityData::new(needed)))
    }

    /// Checks that a client can answer the input request.
    ///
    /// # Errors
    /// If its kind is unknown, its URL is not allowed, or its conversation with a model lacks a tool result, with a description
    /// of the problem.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Elicit(ElicitParams::Url(params)) => params
                .check_url()
                .map_err(|wrong| format!("cannot send the user to {:?}: {wrong}", params.url)),
            Self::CreateMessage(params) => params.check_tool_results(),
            Self::Elicit(ElicitParams::Form(_)) | Self::ListRoots(_) => Ok(()),
            Self::Elicit(ElicitParams::Unknown(_)) | Self::Unknown { .. } => Err(format!(
                "unsupported input request {}; use elicitation (a form or a URL), sampling or roots",
                self.method()
            )),
        }
    }

    /// Checks an answer that was received in a revision, and normalizes it: an answer to a form is completed with the defaults of
    /// the form, and lists that an old revision carries as text become lists again.
    ///
    /// # Errors
    /// If the answer does not fit, with a description of the problem.
    pub fn check_answer(
        &self,
        answer: &RawValue,
        revision: Revision,
    ) -> Result<Box<RawValue>, String> {
        match self {
            Self::Elicit(ElicitParams::Form(form)) => return form_answer(form, answer, revision),
            Self::Elicit(ElicitParams::Url(_) | ElicitParams::Unknown(_)) => {
                parsed::<ElicitResult>(answer).map(drop)?;
            }
            Self::CreateMessage(_) => parsed::<CreateMessageResult>(answer).map(drop)?,
            Self::ListRoots(_) => parsed::<ListRootsResult>(answer).map(drop)?,
            Self::Unknown { .. } => {}
        }
        Ok(answer.to_owned())
    }

    /// Reads an answer leniently that [`check_answer`](Self::check_answer) has refused, and writes it again without its deviations.
    /// `None` if it has none, or cannot be read. An input response that is not an object is never an answer.
    #[must_use]
    pub fn mend_answer(
        &self,
        answer: &RawValue,
        revision: Revision,
    ) -> Option<(Box<RawValue>, Vec<Tolerated>)> {
        if revision.has_input_responses() && !answer.get().starts_with('{') {
            return None;
        }
        match self {
            Self::Elicit(_) => mended::<ElicitResult>(answer),
            Self::CreateMessage(_) => mended::<CreateMessageResult>(answer),
            Self::ListRoots(_) => mended::<ListRootsResult>(answer),
            Self::Unknown { .. } => None,
        }
    }
}

/// Reads an answer leniently whose question is not known, like [`InputRequest::mend_answer`]: the members tell what was asked. `None`
/// also if it can be read strictly.
#[must_use]
pub fn mend_unchecked_answer(answer: &RawValue) -> Option<(Box<RawValue>, Vec<Tolerated>)> {
    fn odd<T: Payload + DeserializeOwned>(
        answer: &RawValue,
    ) -> Option<(Box<RawValue>, Vec<Tolerated>)> {
        let is_odd = T::from_json(answer.get()).is_err();
        is_odd.then(|| mended::<T>(answer)).flatten()
    }
    let has = |name: &str| {
        Text::from(answer)
            .members()
            .any(|(key, _)| key.is_str(name))
    };
    if has("action") {
        odd::<ElicitResult>(answer)
    } else if has("role") || has("model") {
        odd::<CreateMessageResult>(answer)
    } else if has("roots") {
        odd::<ListRootsResult>(answer)
    } else {
        None
    }
}

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

fn parsed<T: Payload + DeserializeOwned>(answer: &RawValue) -> Result<T, String> {
    // An array would be read as the members of an object in their order.
    if !answer.get().starts_with('{') {
        return Err("expected an object".to_owned());
    }
    T::from_json(answer.get()).map_err(|error| error.to_string())
}

fn mended<T: Payload + DeserializeOwned>(
    answer: &RawValue,
) -> Option<(Box<RawValue>, Vec<Tolerated>)> {
    let Reading { value, tolerated } = T::from_json_leniently(answer.get()).ok()?;
    let written = to_raw_value(&value).ok()?;
    (!tolerated.is_empty()).then_some((written, tolerated))
}

fn form_answer(
    form: &ElicitFormParams,
    answer: &RawValue,
    revision: Revision,
) -> Result<Box<RawValue>, String> {
    let mut result = parsed::<ElicitResult>(answer)?;
    if result.action != ElicitAction::Accept {
        result.content = None;
    } else {
        let schema = &form.requested_schema;
        let content = result.content.as_deref();
        let content = content.map(|content| convert(schema, content, revision));
        result.content = Some(schema.complete(content.as_deref())?);
    }
    to_raw_value(&result).map_err(|error| error.to_string())
}

/// Restores values that an old revision or an unusual client changed: lists that were typed as text, and whole numbers that were
/// written with a fraction.
fn convert(schema: &ElicitSchema, content: &RawValue, revision: Revision) -> Box<RawValue> {
    let Ok(mut fields) = serde_json::from_str::<JsonObject>(content.get()) else {
        return content.to_owned();
    };
    for (name, field) in &schema.properties {
        let Some(value) = fields.get_mut(name) else {
            continue;
        };
        match field {
            PrimitiveSchema::MultiSelect(_) if !revision.has_rich_forms() => split_list(value),
            PrimitiveSchema::Number(_) => drop_zero_fraction(value),
            _ => {}
        }
    }
    to_raw_value(&fields).unwrap_or_else(|_| content.to_owned())
}

fn split_list(value: &mut Value) {
    if let Value::String(text) = value {
        let parts = text.split(',').map(str::trim);
        *value = parts.filter(|part| !part.is_empty()).collect();
    }
}

fn drop_zero_fraction(value: &mut Value) {
    if let Value::Number(number) = value
        && number.is_f64()
        && let Some(number) = number.as_f64().and_then(whole)
    {
        *value = number.into();
    }
}
