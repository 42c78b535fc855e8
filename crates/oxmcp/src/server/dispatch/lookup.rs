//! Lookup of the tool, prompt, resource or completer that a request names, limited to those visible to the caller.

use std::sync::Arc;

use oxmcp_json::Text;
use oxmcp_protocol::{
    CompleteParams, CompleteResult, ErrorCode, Method, TaskMetadata,
    method::{self, CallTool},
};
use oxmcp_schema::internal::quote_text;
use serde::Deserialize;

use crate::{
    error::{Error, Result},
    server::{
        ask,
        completion::{Completer, Completes, CompletionInput},
        dispatch::{Call, Served, call::misfit},
        features::Registered,
        prompt::RegisteredPrompt,
        registry::{Callable, duplicate_key},
        resource::{RegisteredTemplate, Target},
    },
    session::handler::journal::RoundRequest,
};

/// See [calling tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools) and
/// [getting a prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt).
pub(crate) fn call_by_name<T: Registered + Callable>(call: &Call<'_>) -> Result<Served> {
    let registry = T::registry(call.features);
    if !registry.is_declared() {
        return Err(Error::method_not_found(T::METHOD));
    }
    let name = call.params.name.and_then(Text::as_str).ok_or_else(|| {
        Error::invalid_params(format!(
            "invalid params of {}: \"name\" must be a string",
            T::METHOD
        ))
    })?;
    let feature = registry.get(&name, &call.cx);
    let feature = feature.ok_or_else(|| call.unknown::<T>(&name))?;
    call.role.check_deferred()?;
    if T::METHOD == CallTool::NAME && call.features.has_core_tasks(call.cx.revision()) {
        take_task(call, &name, feature.can_be_task())?;
    }
    let arguments = call.params.arguments.filter(|it| !it.is_null());
    let arguments = arguments.unwrap_or(Text::EMPTY);
    let mode = feature.ask_mode();
    if !ask::needs_rounds(call, mode) {
        return Ok(Served::Pending(feature.call(call.cx.clone(), arguments)));
    }
    if let Some(fault) = duplicate_key(arguments) {
        // The feature would also refuse such arguments, but only after opening the request state that is bound to them.
        return feature.refuse(&fault).map(Served::Ready);
    }
    let request = RoundRequest::new(T::METHOD, &name, arguments);
    let feature = Arc::clone(feature);
    let begin = move |cx, arguments: Text<'_>| feature.call(cx, arguments);
    ask::serve(call, request, mode, begin).map(Served::Pending)
}

/// Stores the client's task metadata for a call that should run as a task. Without the capability, the member has no meaning.
/// See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#tool-level-negotiation).
///
/// # Errors
/// If the tool cannot be a task.
fn take_task(call: &Call<'_>, tool: &str, can_be_task: bool) -> Result<()> {
    let Some(asked) = call.params.first_member("task").filter(|it| !it.is_null()) else {
        return Ok(());
    };
    let task: TaskMetadata = asked.parse().map_err(|error| {
        Error::invalid_params(format!(
            "invalid `task`: it must be an object whose `ttl` is a number of milliseconds: {error}"
        ))
    })?;
    if !can_be_task {
        let name = quote_text(tool);
        return Err(Error::protocol(
            ErrorCode::METHOD_NOT_FOUND,
            format!("tool {name} cannot run as a task; call it without `task`"),
        ));
    }
    // It is already set if middleware has repeated the request.
    let _ = call.cx.parts().task.set(task);
    Ok(())
}

/// See [reading resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources).
pub(crate) fn read_resource(call: &Call<'_>) -> Result<Served> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    let name = method::ReadResource::NAME;
    let features = call.features;
    if !features.resources.is_declared() {
        return Err(Error::method_not_found(name));
    }
    let read = call.params.raw.parse();
    let Params { uri } = read.map_err(|error| misfit(name, &error))?;
    let (reader, captures) = if let Some(resource) = features.resources.get(&uri, &call.cx) {
        (resource.reader(), Vec::new())
    } else if features.resources.contains(&uri) {
        // The caller does not see the resource, so a matching template must not serve it either.
        return Err(Error::resource_not_found(&uri));
    } else {
        match (
            features.routes.find(&uri, &call.cx),
            &features.resource_fallback,
        ) {
            (Some((template, captures)), _) => (template.reader(), captures),
            (None, Some(reader)) if !features.routes.hides(&uri, &call.cx) => (reader, Vec::new()),
            (None, _) => return Err(Error::resource_not_found(&uri)),
        }
    };
    let target = Target::new(&uri, captures);
    let mode = reader.ask_mode();
    if !ask::needs_rounds(call, mode) {
        return Ok(Served::Pending(reader.call(call.cx.clone(), target)));
    }
    let reader = Arc::clone(reader);
    let request = RoundRequest::new(name, &uri, Text::EMPTY);
    let begin = move |cx, _: Text<'_>| reader.call(cx, target.clone());
    ask::serve(call, request, mode, begin).map(Served::Pending)
}

/// See [requesting completions](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#requesting-completions).
pub(crate) fn complete(call: &Call<'_>) -> Result<Served> {
    let name = method::Complete::NAME;
    if !call.features.has_completions {
        return Err(Error::method_not_found(name));
    }
    let CompleteParams {
        reference,
        argument,
        context,
        ..
    } = call.read(name)?;
    let completer = if let Some(name) = reference.prompt_name() {
        find_completer::<RegisteredPrompt>(call, name, &argument.name)
    } else if let Some(template) = reference.template() {
        find_completer::<RegisteredTemplate>(call, template, &argument.name)
    } else {
        Err(Error::invalid_params(
            "invalid `ref`: its `type` must be \"ref/prompt\" or \"ref/resource\"",
        ))
    }?;
    let Some(completer) = completer else {
        return call.answer(CompleteResult::default());
    };
    let arguments = context.and_then(|context| context.arguments);
    let completing = CompletionInput {
        argument: argument.name,
        value: argument.value,
        arguments: arguments.unwrap_or_default(),
    };
    Ok(Served::Pending(
        completer.complete(call.cx.clone(), completing),
    ))
}

/// The completer of an argument of the feature of that id. `None` if the argument has none.
fn find_completer<T: Registered + Completes>(
    call: &Call<'_>,
    id: &str,
    argument: &str,
) -> Result<Option<Completer>> {
    let feature = T::registry(call.features).get(id, &call.cx);
    let completers = feature.ok_or_else(|| call.unknown::<T>(id))?.completers();
    let of_feature =
        |wrong| Error::invalid_params(format!("{} {}: {wrong}", T::KIND, quote_text(id)));
    completers.check(argument).map_err(of_feature)?;
    Ok(completers.get(argument).cloned())
}
