//! Whether a client can be asked.

use crate::{
    Error, ErrorCode, Result, Revision,
    codec::uri::check_page,
    protocol::{
        ClientCapabilities, CreateMessageParams, ElicitParams, ElicitationCapability, InputRequest,
        JsonObject, MissingClientCapabilityData, RootsCapability, SamplingCapability,
        check_tool_results,
    },
};

/// Whether there is anything that the client can be asked.
pub(super) fn is_any(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some()
        || capabilities.sampling.is_some()
        || capabilities.roots.is_some()
}

/// Refuses a question that the client has not said it can answer.
///
/// # Errors
/// [`ErrorCode::MISSING_CLIENT_CAPABILITY`], with what is missing. Nothing has been sent then.
pub(super) fn check(
    request: &InputRequest,
    capabilities: &ClientCapabilities,
    revision: Revision,
) -> Result<()> {
    let missing = match request {
        InputRequest::Elicit(ElicitParams::Form(_)) => form(capabilities, revision),
        InputRequest::Elicit(ElicitParams::Url(_)) => url(capabilities, revision),
        InputRequest::CreateMessage(params) => sampling(params, capabilities, revision),
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
        return fits(request);
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
fn fits(request: &InputRequest) -> Result<()> {
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

/// What the client would do, the capability's name, and what it would have had to declare.
type Missing = (&'static str, &'static str, ClientCapabilities);

fn form(capabilities: &ClientCapabilities, revision: Revision) -> Option<Missing> {
    let elicitation = capabilities.elicitation.as_ref();
    if revision.has_elicitation() && elicitation.is_some_and(ElicitationCapability::has_form) {
        return None;
    }
    let form = ElicitationCapability::default().with_form(JsonObject::new());
    let needed = ClientCapabilities::default().with_elicitation(form);
    Some(("show the user a form", "elicitation", needed))
}

fn url(capabilities: &ClientCapabilities, revision: Revision) -> Option<Missing> {
    let elicitation = capabilities.elicitation.as_ref();
    if revision.has_elicitation_modes() && elicitation.is_some_and(ElicitationCapability::has_url) {
        return None;
    }
    let url = ElicitationCapability::default().with_url(JsonObject::new());
    let needed = ClientCapabilities::default().with_elicitation(url);
    Some(("send the user to a URL", "elicitation.url", needed))
}

fn sampling(
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
