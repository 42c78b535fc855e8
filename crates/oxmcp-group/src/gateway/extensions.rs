//! The extensions of the upstreams: what the gateway declares of them, and their methods, which it passes on without knowing them.

use std::collections::BTreeMap;

use oxmcp::{
    Error, ErrorCode, RequestContext, Result,
    middleware::{Next, Request, Response},
    protocol::{JsonObject, Meta, OrderedMap, RawJson, ServerCapabilities, method},
    tasks,
};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{
    calls::{passed_meta, permit},
    events::params_of,
    state::Inner,
};

/// The member of a request or a result that names a resource.
const URI: &str = "uri";

/// The member of a request or a result with its metadata.
const META: &str = "_meta";

/// The extensions that servers declare together, with their settings. Where two declare the same, each member of the settings is
/// that of the first that has it.
pub(super) fn merged<'a>(servers: impl Iterator<Item = &'a ServerCapabilities>) -> JsonObject {
    let mut merged = JsonObject::new();
    let declared = servers.filter_map(|it| it.extensions.as_ref()).flatten();
    // The tasks of clients are the gateway's own.
    for (id, settings) in declared.filter(|(id, _)| *id != tasks::ID) {
        match (merged.get_mut(id), settings) {
            (None, settings) => {
                merged.insert(id.clone(), settings.clone());
            }
            (Some(Value::Object(known)), Value::Object(settings)) => {
                for (name, setting) in settings {
                    known.entry(name).or_insert_with(|| setting.clone());
                }
            }
            _ => {}
        }
    }
    merged
}

/// Serves a message, and passes it on to an upstream if the gateway's own server does not know it.
pub(super) async fn serve(inner: &Inner, request: Request, next: Next) -> Result<Response> {
    let tables = [method::REQUESTS_TO_SERVER, method::NOTIFICATIONS_TO_SERVER];
    let is_core = tables
        .iter()
        .any(|table| method::find(table, request.method()).is_some());
    let context = request.context().filter(|_| !is_core).cloned();
    let Some(cx) = context else {
        return next.run(request).await;
    };
    let name = request.method().to_owned();
    let params = params_of(&request)?;
    let is_notification = request.is_notification();
    let served = next.run(request).await;
    if is_notification {
        pass_notification(inner, &cx, &name, &params).await;
        return served;
    }
    match served {
        Err(error) if error.code() == ErrorCode::METHOD_NOT_FOUND => {
            tokio::select! {
                biased;
                () = cx.cancelled() => Err(Error::cancelled("the call was cancelled")),
                passed = pass_on(inner, &cx, &name, &params) => passed,
            }
        }
        served => served,
    }
}

async fn pass_on(
    inner: &Inner,
    cx: &RequestContext,
    name: &str,
    params: &RawValue,
) -> Result<Response> {
    let mut members = members(name, params)?;
    let Some(server) = route(inner, name, &mut members)? else {
        return Err(Error::method_not_found(name));
    };
    let meta = Value::Object(passed_meta(inner, cx)?);
    members.insert(META, meta.into());
    let params = to_raw_value(&members).map_err(unwritten)?;
    let _permit = permit(inner)?;
    let link = inner.link(cx, server).await?;
    let result = link.session.request_raw(name, &params).await?;
    let result = exposed(inner, (server, cx), &result)?;
    Response::new(&result)
}

/// Passes a notification of a client's extension on to the upstreams that its session uses.
async fn pass_notification(inner: &Inner, cx: &RequestContext, name: &str, params: &RawValue) {
    let Some(front) = cx.server_session() else {
        return;
    };
    let Ok(mut members) = members(name, params) else {
        return;
    };
    members.remove(META);
    let Ok(params) = to_raw_value(&members) else {
        return;
    };
    for link in inner.links.of(&front) {
        if let Err(error) = link.session.notify_raw(name, &params).await {
            tracing::debug!(%error, "could not pass on a notification to a server behind the gateway");
        }
    }
}

fn members(name: &str, params: &RawValue) -> Result<OrderedMap<RawJson>> {
    serde_json::from_str(params.get()).map_err(|error| {
        Error::invalid_params(format!("invalid params of {name}: {error}")).with_source(error)
    })
}

/// The server that a request belongs to: the only one; that of the resource that the params name; or the only one that declares
/// an extension with which the method begins, or any extension at all.
fn route(inner: &Inner, name: &str, members: &mut OrderedMap<RawJson>) -> Result<Option<usize>> {
    if inner.group.server_count() == 1 {
        return Ok(Some(0));
    }
    let uri = members.get(URI).map(|it| serde_json::from_str(it.get()));
    if let Some(Ok(uri)) = uri {
        let uri: String = uri;
        let (server, uri) = inner.group.uri_route(&uri)?;
        members.insert(URI, Value::String(uri).into());
        return Ok(Some(server));
    }
    let extensions = |server: usize| {
        let session = inner.group.open_session_at(server)?;
        let declared = session.server_capabilities().extensions.clone()?;
        let ids = declared.into_iter().map(|(id, _)| id);
        Some(ids.filter(|id| id != tasks::ID).collect::<Vec<_>>())
    };
    let servers = 0..inner.group.server_count();
    let declared: BTreeMap<usize, Vec<String>> = servers
        .filter_map(|server| Some((server, extensions(server)?)))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    let is_of = |id: &String| name.trim_start_matches("notifications/").starts_with(id);
    let named = declared.iter().filter(|(_, ids)| ids.iter().any(is_of));
    let named: Vec<usize> = named.map(|(server, _)| *server).collect();
    let any: Vec<usize> = declared.keys().copied().collect();
    Ok(match (named.as_slice(), any.as_slice()) {
        ([server], _) | ([], [server]) => Some(*server),
        _ => None,
    })
}

/// A result as the client gets it: in the form of its revision, with the URIs by which it can read them.
fn exposed(
    inner: &Inner,
    (server, cx): (usize, &RequestContext),
    result: &RawValue,
) -> Result<OrderedMap<RawJson>> {
    const TYPE: &str = "resultType";
    let unfit = |error: serde_json::Error| {
        Error::internal(format!(
            "the server sent a result that is no object: {error}"
        ))
        .with_source(error)
    };
    let mut members: OrderedMap<RawJson> = serde_json::from_str(result.get()).map_err(unfit)?;
    if inner.group.server_count() > 1 {
        if let Some(Ok(mut uri)) = members.get(URI).map(|it| serde_json::from_str(it.get())) {
            inner.group.expose_uri(server, &mut uri);
            members.insert(URI, Value::String(uri).into());
        }
        for member in members.values_mut() {
            let mut value: Value = serde_json::from_str(member.get()).map_err(unfit)?;
            if expose(inner, server, &mut value) {
                *member = value.into();
            }
        }
    }
    match (cx.revision().is_modern(), members.get(TYPE).is_some()) {
        (true, false) => drop(members.insert(TYPE, Value::from("complete").into())),
        (false, true) => drop(members.remove(TYPE)),
        _ => {}
    }
    // The server in front names itself.
    let meta = members
        .get(META)
        .and_then(|it| serde_json::from_str::<JsonObject>(it.get()).ok());
    if let Some(mut meta) = meta
        && meta.remove(Meta::SERVER_INFO).is_some()
    {
        match meta.is_empty() {
            true => drop(members.remove(META)),
            false => drop(members.insert(META, Value::Object(meta).into())),
        }
    }
    Ok(members)
}

/// Changes the URIs in a value. Returns whether there is any.
fn expose(inner: &Inner, server: usize, value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let mut is_any = false;
            for (name, member) in members {
                match member {
                    Value::String(uri) if name == URI => {
                        inner.group.expose_uri(server, uri);
                        is_any = true;
                    }
                    member => is_any |= expose(inner, server, member),
                }
            }
            is_any
        }
        Value::Array(entries) => {
            let mut is_any = false;
            for entry in entries {
                is_any |= expose(inner, server, entry);
            }
            is_any
        }
        _ => false,
    }
}

fn unwritten(error: serde_json::Error) -> Error {
    Error::internal(format!("could not write params: {error}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declaring(extensions: &Value) -> ServerCapabilities {
        let extensions = extensions.as_object().cloned().unwrap();
        ServerCapabilities::default().with_extensions(extensions)
    }

    #[test]
    fn settings_of_servers_are_merged() {
        let (first, second) = (
            declaring(&json!({"com.example/a": {"x": 1}, "io.modelcontextprotocol/tasks": {}})),
            declaring(&json!({"com.example/a": {"x": 2, "y": 3}, "com.example/b": {}})),
        );
        let merged = merged([&first, &second].into_iter());
        let expected = json!({"com.example/a": {"x": 1, "y": 3}, "com.example/b": {}});
        assert_eq!(Value::Object(merged), expected);
    }
}
