//! Asking a client that takes requests, while the handler waits.

use std::mem;

use serde_json::value::RawValue;

use super::{answer, key::random, settings::AskSettings};
use crate::{
    Error, Result, Revision,
    protocol::{ElicitParams, InputRequest, Meta, Method, Payload, method},
    session::{CallOptions, Connection, RequestContext},
};

/// Asks, and waits for the answer. The question is cancelled with the request that it belongs to.
pub(super) async fn ask(
    cx: &RequestContext,
    settings: &AskSettings,
    key: &str,
    request: &InputRequest,
) -> Result<Box<RawValue>> {
    let revision = cx.revision();
    let options = settings.options();
    let connection = &cx.parts().connection;
    let asked = tokio::select! {
        biased;
        answer = send(connection, request.clone(), revision, options) => answer?,
        () = cx.cancelled() => {
            let method = request.method();
            return Err(Error::cancelled(format!("the request that asked {method} was cancelled")));
        }
    };
    let text: &RawValue = serde_json::from_str(&asked).map_err(|error| {
        answer::wrong(Some(key), request.method(), &error.to_string(), revision)
    })?;
    answer::check(Some(key), request, text, revision)
}

/// Makes the request that a question is.
async fn send(
    connection: &std::sync::Arc<Connection>,
    request: InputRequest,
    revision: Revision,
    mut options: CallOptions,
) -> Result<Box<str>> {
    match request {
        InputRequest::Elicit(mut params) => {
            identify(&mut params, revision)?;
            options.meta = fit(&mut params, revision);
            let name = method::Elicit::NAME;
            connection.call(name, params, options).await
        }
        InputRequest::CreateMessage(mut params) => {
            options.meta = fit(&mut *params, revision);
            let name = method::CreateMessage::NAME;
            connection.call(name, params, options).await
        }
        InputRequest::ListRoots(mut params) => {
            options.meta = fit(&mut params, revision);
            let name = method::ListRoots::NAME;
            connection.call(name, params, options).await
        }
        other => Err(Error::misuse(format!(
            "clients cannot be asked {}: the protocol has no such question",
            other.method()
        ))),
    }
}

/// Makes params fit, and takes out their `_meta`, which is the call's.
pub(super) fn fit(params: &mut impl Payload, revision: Revision) -> Meta {
    params.fit(revision);
    params.metadata().map(mem::take).unwrap_or_default()
}

/// Gives a URL elicitation an id where the revision wants one and the author had none in mind.
pub(super) fn identify(params: &mut ElicitParams, revision: Revision) -> Result<()> {
    if let ElicitParams::Url(url) = params
        && revision.has_elicitation_ids()
        && url.elicitation_id.is_none()
    {
        let id = random::<16>()?;
        url.elicitation_id = Some(data_encoding::HEXLOWER.encode(&id));
    }
    Ok(())
}
