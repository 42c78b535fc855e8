//! The extensions of the upstreams: what the gateway declares of them, and their methods, which it passes on without knowing them.

use oxmcp::{
    ClientSession, Error, ErrorCode, RequestContext, Result, WeakServer,
    middleware::{Next, Request, Response},
    protocol::{JsonObject, Meta, OrderedMap, RawJson, ServerCapabilities, method},
    tasks,
};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{
    calls::{name_of, passed_meta, permit},
    events::{name_message, named_error, params_of},
    links::Link,
    offers::is_declarable,
    state::Inner,
};

/// The member of a request or a result that names a resource.
const URI: &str = "uri";

/// The method of questions to the user.
const ELICIT: &str = "elicitation/create";

/// The member of a request or a result with its metadata.
const META: &str = "_meta";

/// The member of a request or a result with the state that a client keeps between two rounds.
const STATE: &str = "requestState";

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
    let name = request.method();
    // The tasks of clients are the gateway's own.
    let is_core = name.starts_with("tasks/")
        || tables
            .iter()
            .any(|table| method::find(table, name).is_some());
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
    let front = inner.server.get().and_then(WeakServer::upgrade);
    let is_own = front.is_some_and(|it| it.serves_method(&name));
    match served {
        Err(error) if error.code() == ErrorCode::METHOD_NOT_FOUND && !is_own => {
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
    let bound_to = [name, inner.group.label_at(server)];
    change_state(&mut members, |sealed| cx.open_state(&bound_to, &sealed))?;
    let meta = Value::Object(passed_meta(inner, cx)?);
    members.insert(META, meta.into());
    let params = to_raw_value(&members).map_err(unwritten)?;
    let _permit = permit(inner)?;
    let link = inner.link(cx, server).await?;
    let label = name_of(inner, server);
    let result = link.session.request_raw(name, &params).await;
    let result = result.map_err(|error| named_error(label.as_deref(), error))?;
    let mut result = exposed(inner, (server, cx), &result)?;
    change_state(&mut result, |state| cx.seal_state(&bound_to, state))?;
    if let Some(label) = label {
        name_questions(&label, &mut result);
    }
    Response::new(&result)
}

/// Passes a notification of a client's extension on to the upstreams of its session that declare the extension, or any extension
/// if none of them has one with which the name begins.
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
    let links = inner.links.of(&front);
    let declares = |link: &Link| declared(&link.session).iter().any(|id| is_of(name, id));
    let is_named = links.iter().any(|link| declares(link));
    let of_any = |link: &Link| !is_named && !declared(&link.session).is_empty();
    for link in links.iter().filter(|link| declares(link) || of_any(link)) {
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

/// The server that a request belongs to: the only one; that of the resource that the params name; the first that declares an
/// extension with which the method begins; or the only one that declares any extension at all.
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
    let extensions = |server: usize| Some(declared(&inner.group.open_session_at(server)?));
    let servers = 0..inner.group.server_count();
    let declared: Vec<(usize, Vec<String>)> = servers
        .filter_map(|server| Some((server, extensions(server)?)))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    let mut named = declared.iter();
    let named = named.find(|(_, ids)| ids.iter().any(|id| is_of(name, id)));
    Ok(match (named, declared.as_slice()) {
        (Some((server, _)), _) | (None, [(server, _)]) => Some(*server),
        _ => None,
    })
}

/// Changes the state that a client keeps between two rounds, if there is one.
fn change_state(
    members: &mut OrderedMap<RawJson>,
    change: impl FnOnce(String) -> Result<String>,
) -> Result<()> {
    let state = members.get(STATE).map(|it| serde_json::from_str(it.get()));
    if let Some(Ok(state)) = state {
        members.insert(STATE, Value::String(change(state)?).into());
    }
    Ok(())
}

/// Adds the name of the upstream to the questions in a result.
fn name_questions(label: &str, result: &mut OrderedMap<RawJson>) {
    const QUESTIONS: &str = "inputRequests";
    let questions = result.get(QUESTIONS).map(|it| it.get());
    let questions = questions.and_then(|it| serde_json::from_str::<JsonObject>(it).ok());
    let Some(mut questions) = questions else {
        return;
    };
    for question in questions.values_mut() {
        let is_elicitation = question.get("method").and_then(Value::as_str) == Some(ELICIT);
        if let (true, Some(params)) = (is_elicitation, question.get_mut("params")) {
            name_message(label, params);
        }
    }
    result.insert(QUESTIONS, Value::Object(questions).into());
}

/// The extensions that a server declares, and that the gateway passes on.
fn declared(session: &ClientSession) -> Vec<String> {
    let declared = session.server_capabilities().extensions.iter().flatten();
    let passed = declared.filter(|(id, settings)| *id != tasks::ID && is_declarable(id, settings));
    passed.map(|(id, _)| id.clone()).collect()
}

/// Whether a message is one of an extension: its name is the identifier, or continues it after a slash.
fn is_of(name: &str, id: &str) -> bool {
    let name = name.strip_prefix("notifications/").unwrap_or(name);
    let rest = name.strip_prefix(id);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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

    #[test]
    fn method_belongs_to_the_extension_that_it_names() {
        for name in [
            "com.example/a",
            "com.example/a/b",
            "notifications/com.example/a/b",
        ] {
            assert!(is_of(name, "com.example/a"), "{name}");
        }
        for id in ["", "c", "com.example/", "com.example/a/b/c"] {
            let settings = json!({});
            assert!(
                !is_of("com.example/a/b", id) || !is_declarable(id, &settings),
                "{id}"
            );
        }
    }

    #[test]
    fn questions_of_results_have_the_name_of_their_server() {
        let result = json!({"inputRequests": {
            "pin": {"method": ELICIT, "params": {"message": "Your PIN?"}},
            "roots": {"method": "roots/list", "params": {"message": "x"}},
        }});
        let mut result: OrderedMap<RawJson> = serde_json::from_str(&result.to_string()).unwrap();
        name_questions("evil", &mut result);
        let named: Value =
            serde_json::from_str(result.get("inputRequests").unwrap().get()).unwrap();
        assert_eq!(named["pin"]["params"]["message"], json!("evil: Your PIN?"));
        assert_eq!(named["roots"]["params"]["message"], json!("x"));
    }
}
