//! The messages of a view: which are allowed, and what each does.

use std::time::Instant;

use oxmcp::{
    ErrorCode, ErrorObject, RequestId,
    protocol::{
        CallToolParams, ContentBlock, CreateMessageParams, Cursor, IncludeContext, JsonObject,
        LoggingMessageParams,
    },
};
use serde::Deserialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::host::{
    action::{
        Action, AppInfo, DENIED, ForwardedRequest, ForwardedRequestKind, HostRequest,
        HostRequestKind, ModelContext, Notice,
    },
    agent::is_for_app,
    bridge::{AppBridge, Effect, Phase, ViewRequest, later, undeclared_mode},
    capabilities::Modalities,
    context::DisplayMode,
    link::{check_link, check_web_link},
    message::{Message, Params},
};

/// The outcome of checking a request of a view.
enum Handled {
    Answered(Value),
    Forward(ForwardedRequestKind),
    Decide(HostRequestKind, Effect),
}

type Refused = ErrorObject;

impl AppBridge {
    /// Receives a message that the view has posted, as JSON, and returns the actions for the host. A message that is not allowed has
    /// no effect; a request among them gets an error.
    pub fn receive(&mut self, message: &str, now: Instant) -> Vec<Action> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        let limit = self.limits.max_message_bytes;
        if message.len() > limit {
            let size = message.len();
            self.report(&format!(
                "message too large: {size} bytes, and the limit is {limit}"
            ));
            return self.take_actions();
        }
        let limits = self.limits;
        let is_permitted = self.rate.count(&limits, now);
        self.requests
            .retain(|_, it| it.cancelled_until.is_none_or(|until| until > now));
        match Message::read(message) {
            Err(problem) => self.report(&problem),
            Ok(Message::Request(id, method, params)) => {
                let bytes = message.len();
                let checked = self.check_capacity(bytes, is_permitted);
                self.receive_request((id, bytes), &method, params, checked);
            }
            Ok(Message::Response(id, result)) => self.receive_response(&id, result),
            Ok(Message::Notification(method, _)) if !is_permitted => {
                self.report(&format!("too many messages: `{method}` was dropped"));
            }
            Ok(Message::Notification(method, params)) => {
                self.receive_notification(&method, params, now);
            }
        }
        self.take_actions()
    }

    /// Checks that a request of this size may be in flight with the others.
    fn check_capacity(&self, bytes: usize, is_permitted: bool) -> Result<(), Refused> {
        if !is_permitted {
            return Err(denied("too many messages; send fewer"));
        }
        let in_flight = self.requests.len();
        if in_flight >= self.limits.max_requests {
            let text =
                format!("too many requests: {in_flight} are in flight; wait for their answers");
            return Err(denied(&text));
        }
        let limit = self.limits.max_request_bytes;
        let all = self.requests.values().map(|it| it.bytes);
        if all.fold(bytes, usize::saturating_add) > limit {
            let text = format!(
                "requests too large: those in flight may have {limit} bytes together; wait for their answers"
            );
            return Err(denied(&text));
        }
        Ok(())
    }

    fn receive_request(
        &mut self,
        (id, bytes): (RequestId, usize),
        method: &str,
        params: Params<'_>,
        capacity: Result<(), Refused>,
    ) {
        let mut waiting = self.requests.values();
        if waiting.any(|it| it.id == id && it.cancelled_until.is_none()) {
            // An error would end the request that has the ID.
            return self.report(&format!(
                "`{method}` has the ID {id} of a request in flight"
            ));
        }
        match capacity.and_then(|()| self.handle(method, params)) {
            Ok(Handled::Answered(result)) => {
                let result = to_raw_value(&result).map_err(|error| internal(&error.to_string()));
                self.respond(&id, &result);
            }
            Ok(Handled::Forward(kind)) => {
                let key = self.keep(id, bytes, Effect::None);
                self.actions
                    .push(Action::Forward(ForwardedRequest { key, kind }));
            }
            Ok(Handled::Decide(kind, effect)) => {
                let key = self.keep(id, bytes, effect);
                self.actions.push(Action::Decide(HostRequest { key, kind }));
            }
            Err(error) => {
                self.report(&format!("`{method}` was refused: {}", error.message));
                self.respond(&id, &Err(error));
            }
        }
    }

    fn handle(&mut self, method: &str, params: Params<'_>) -> Result<Handled, Refused> {
        match (method, self.phase) {
            ("ping", _) => return Ok(Handled::Answered(json!({}))),
            ("ui/initialize", Phase::Loading) => return self.initialize(params),
            ("ui/initialize", _) => return Err(denied("the view is initialized already")),
            (_, Phase::Loading | Phase::Initializing) => {
                return Err(denied(
                    "the view is not initialized; send `ui/initialize`, and `ui/notifications/initialized` after its answer",
                ));
            }
            _ => {}
        }
        let offered = self.capabilities;
        let is_offered = match method {
            "tools/call" | "tools/list" => offered.server_tools,
            "resources/read" | "resources/list" | "resources/templates/list" => {
                offered.server_resources
            }
            "sampling/createMessage" => offered.sampling,
            "ui/open-link" => offered.open_links,
            "ui/download-file" => offered.download_file,
            "ui/message" => offered.message.is_some(),
            "ui/update-model-context" => offered.update_model_context.is_some(),
            "ui/request-display-mode" => true,
            _ => false,
        };
        if !is_offered {
            let text = format!("method not found: `{method}`; the host does not offer it");
            return Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, text));
        }
        match method {
            "tools/call" => self.call_tool(params),
            "tools/list" => Ok(Handled::Answered(self.visible_tools())),
            "sampling/createMessage" => self.create_message(params),
            "ui/open-link" => open_link(params),
            "ui/download-file" => download_file(params),
            "ui/message" => message(params, offered.message.unwrap_or(Modalities::TEXT)),
            "ui/update-model-context" => self.update_model_context(params),
            "ui/request-display-mode" => self.request_display_mode(params),
            _ => resources(method, params),
        }
    }

    fn initialize(&mut self, params: Params<'_>) -> Result<Handled, Refused> {
        /// A name or version of a view. More is no use to people.
        const MAX_NAME: usize = 200;
        let params: Value = params.read("ui/initialize")?;
        let info = |name: &str| {
            let text = params
                .pointer(&format!("/appInfo/{name}"))
                .and_then(Value::as_str);
            text.unwrap_or_default().chars().take(MAX_NAME).collect()
        };
        let modes = params.pointer("/appCapabilities/availableDisplayModes");
        let modes = modes.and_then(Value::as_array).map(|modes| {
            let known = [
                DisplayMode::Inline,
                DisplayMode::Fullscreen,
                DisplayMode::Pip,
            ];
            let is_named = |it: &DisplayMode| modes.contains(&json!(it));
            known.into_iter().filter(is_named).collect()
        });
        let tools = params.pointer("/appCapabilities/tools");
        self.app = AppInfo {
            name: info("name"),
            version: info("version"),
            has_tools: tools.is_some_and(Value::is_object),
            display_modes: modes,
        };
        self.phase = Phase::Initializing;
        Ok(Handled::Answered(self.initialize_result()))
    }

    fn call_tool(&self, params: Params<'_>) -> Result<Handled, Refused> {
        #[derive(Deserialize)]
        struct Called {
            name: String,
            arguments: Option<Box<RawValue>>,
        }
        let Called { name, arguments } = params.read("tools/call")?;
        let Some(tool) = self.tools.get(&name) else {
            return Err(invalid(&format!(
                "the server of the app has no tool {name:?}"
            )));
        };
        if !is_for_app(tool) {
            return Err(denied(&format!("the tool {name:?} is not for views")));
        }
        if arguments
            .as_ref()
            .is_some_and(|it| !it.get().starts_with('{'))
        {
            return Err(invalid("the arguments of a tool must be an object"));
        }
        // Other members, such as metadata, are the host's.
        let mut call = CallToolParams::new(name);
        call.arguments = arguments;
        Ok(Handled::Forward(ForwardedRequestKind::CallTool(call)))
    }

    /// The tools that the view may call, in one page.
    fn visible_tools(&self) -> Value {
        let tools: Vec<_> = self.tools.values().filter(|it| is_for_app(it)).collect();
        json!({"tools": tools})
    }

    fn create_message(&self, params: Params<'_>) -> Result<Handled, Refused> {
        let mut prompt: CreateMessageParams = params.read("sampling/createMessage")?;
        let uses_tools = !prompt.tools.is_empty() || prompt.tool_choice.is_some();
        if uses_tools && !self.capabilities.sampling_tools {
            return Err(denied("the host does not offer tools for prompts"));
        }
        prompt.task = None;
        // A view must learn nothing of other servers.
        if prompt.include_context == Some(IncludeContext::AllServers) {
            prompt.include_context = Some(IncludeContext::ThisServer);
        }
        let kind = HostRequestKind::CreateMessage(Box::new(prompt));
        Ok(Handled::Decide(kind, Effect::None))
    }

    fn update_model_context(&self, params: Params<'_>) -> Result<Handled, Refused> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Update {
            #[serde(default)]
            content: Vec<ContentBlock>,
            structured_content: Option<JsonObject>,
        }
        let limit = self.limits.max_context_bytes;
        if params.len() > limit {
            return Err(denied(&format!(
                "the context is too large; the limit is {limit} bytes"
            )));
        }
        let update: Update = params.read("ui/update-model-context")?;
        let accepted = self.capabilities.update_model_context;
        let accepted = accepted.unwrap_or(Modalities::TEXT);
        check_content(&update.content, accepted)?;
        if update.structured_content.is_some() && !accepted.structured_content {
            return Err(denied("the host does not accept structured content"));
        }
        let context = ModelContext {
            content: update.content,
            structured_content: update.structured_content,
        };
        let kind = HostRequestKind::UpdateModelContext(context.clone());
        Ok(Handled::Decide(kind, Effect::ModelContext(context)))
    }

    fn request_display_mode(&self, params: Params<'_>) -> Result<Handled, Refused> {
        #[derive(Deserialize)]
        struct Requested {
            mode: DisplayMode,
        }
        let Requested { mode } = params.read("ui/request-display-mode")?;
        if !self.can_show(mode) {
            return Err(denied(undeclared_mode().message()));
        }
        let modes = self.context.available_display_modes.as_ref();
        let is_available = modes.is_some_and(|it| it.contains(&mode));
        let current = self.context.display_mode.unwrap_or(DisplayMode::Inline);
        if !is_available || mode == current {
            return Ok(Handled::Answered(json!({"mode": current})));
        }
        let kind = HostRequestKind::DisplayMode(mode);
        Ok(Handled::Decide(kind, Effect::DisplayMode))
    }

    fn receive_response(&mut self, id: &RequestId, result: Result<&RawValue, ErrorObject>) {
        let number = match id {
            RequestId::Number(number) => Some(*number),
            _ => None,
        };
        let call = number.and_then(|it| self.calls.remove(&it));
        match call {
            Some(call) => self.end_host_call(&call, result),
            None => self.report(&format!(
                "a response to {id}, which the host has not requested"
            )),
        }
    }

    fn receive_notification(&mut self, method: &str, params: Params<'_>, now: Instant) {
        let taken = match (method, self.phase) {
            ("ui/notifications/sandbox-proxy-ready", _) => self.load_page(),
            ("ui/notifications/initialized", Phase::Initializing) => {
                self.phase = Phase::Ready;
                let app = self.app.clone();
                self.actions.push(Action::Notice(Notice::Initialized(app)));
                let mut flushed = self.flush();
                self.actions.append(&mut flushed);
                Ok(())
            }
            (_, Phase::Loading | Phase::Initializing) | ("ui/notifications/initialized", _) => {
                Err("out of order".to_owned())
            }
            ("ui/notifications/size-changed", _) => self.change_size(params),
            ("ui/notifications/request-teardown", _) => {
                self.actions.push(Action::Notice(Notice::TeardownRequested));
                Ok(())
            }
            ("notifications/message", _) if self.capabilities.logging => self.log(params),
            ("notifications/tools/list_changed", _) if self.app.has_tools => {
                self.actions.push(Action::Notice(Notice::AppToolsChanged));
                Ok(())
            }
            ("notifications/cancelled", _) => self.cancel(params, now),
            _ => Err("the host does not accept it".to_owned()),
        };
        if let Err(problem) = taken {
            self.report(&format!("`{method}` was ignored: {problem}"));
        }
    }

    /// Gives the page to the sandbox proxy, once: a view that imitates the proxy gets nothing.
    fn load_page(&mut self) -> Result<(), String> {
        let page = self.page.as_ref().filter(|_| !self.has_loaded);
        let params = page.map(|page| page.to_sandbox());
        let params =
            params.ok_or("the page was given to the sandbox proxy already, or there is none")?;
        self.has_loaded = true;
        self.send(None, "ui/notifications/sandbox-resource-ready", &params);
        Ok(())
    }

    fn change_size(&mut self, params: Params<'_>) -> Result<(), String> {
        /// More pixels than any screen has.
        const MAX_PIXELS: f64 = 100_000.0;
        #[derive(Deserialize)]
        struct Size {
            width: Option<f64>,
            height: Option<f64>,
        }
        let size: Size = read(params)?;
        let within = |it: Option<f64>| it.is_none_or(|it| (0.0..=MAX_PIXELS).contains(&it));
        if !within(size.width) || !within(size.height) {
            return Err(format!("a size must be from 0 to {MAX_PIXELS} pixels"));
        }
        let Size { width, height } = size;
        if self.size != (width, height) {
            self.size = (width, height);
            let notice = Notice::SizeChanged { width, height };
            self.actions.push(Action::Notice(notice));
        }
        Ok(())
    }

    fn log(&mut self, params: Params<'_>) -> Result<(), String> {
        let message: LoggingMessageParams = read(params)?;
        let limit = self.limits.max_log_bytes;
        let data = message.data.get();
        let text = serde_json::from_str(data).unwrap_or_else(|_| data.to_owned());
        self.actions.push(Action::Notice(Notice::Log {
            level: message.level,
            logger: message.logger.map(|it| cut(it, limit)),
            text: cut(text, limit),
        }));
        Ok(())
    }

    /// Cancels a request. It still counts as in flight for some time: a view could otherwise keep the server busy with more
    /// requests than it may have, by cancelling them.
    fn cancel(&mut self, params: Params<'_>, now: Instant) -> Result<(), String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }
        let Cancelled { request_id } = read(params)?;
        let until = later(now, self.limits.cancelled_time);
        let mut in_flight = self.requests.iter_mut();
        let is_meant = |it: &&mut ViewRequest| it.id == request_id && it.cancelled_until.is_none();
        // A request that was answered meanwhile needs no cancellation.
        if let Some((key, request)) = in_flight.find(|(_, it)| is_meant(it)) {
            request.cancelled_until = Some(until);
            request.effect = Effect::None;
            self.actions.push(Action::Cancel(*key));
        }
        Ok(())
    }
}

fn denied(text: &str) -> Refused {
    ErrorObject::new(DENIED.into(), text)
}

fn invalid(text: &str) -> Refused {
    ErrorObject::new(ErrorCode::INVALID_PARAMS, text)
}

fn internal(text: &str) -> Refused {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, text)
}

fn read<T: serde::de::DeserializeOwned>(params: Params<'_>) -> Result<T, String> {
    params.read("its method").map_err(|error| error.message)
}

/// Cuts a text off after this number of bytes.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|it| text.is_char_boundary(*it));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

fn check_content(content: &[ContentBlock], accepted: Modalities) -> Result<(), Refused> {
    match content.iter().all(|block| accepted.allows(block)) {
        true => Ok(()),
        false => Err(denied("the host does not accept content of this type")),
    }
}

fn open_link(params: Params<'_>) -> Result<Handled, Refused> {
    #[derive(Deserialize)]
    struct Link {
        url: String,
    }
    let Link { url } = params.read("ui/open-link")?;
    check_link(&url).map_err(denied)?;
    Ok(Handled::Decide(
        HostRequestKind::OpenLink(url),
        Effect::None,
    ))
}

fn download_file(params: Params<'_>) -> Result<Handled, Refused> {
    #[derive(Deserialize)]
    struct Download {
        contents: Vec<ContentBlock>,
    }
    let Download { contents } = params.read("ui/download-file")?;
    // A link to another scheme could make the host read its own files.
    let is_file = |block: &ContentBlock| match block {
        ContentBlock::Resource(_) => true,
        ContentBlock::ResourceLink(link) => check_web_link(&link.uri).is_ok(),
        _ => false,
    };
    if contents.is_empty() || !contents.iter().all(is_file) {
        return Err(denied(
            "invalid content; use resources, and links to https or http",
        ));
    }
    Ok(Handled::Decide(
        HostRequestKind::DownloadFile(contents),
        Effect::None,
    ))
}

/// The specification has one block of content, and its SDK sends a list.
fn message(params: Params<'_>, accepted: Modalities) -> Result<Handled, Refused> {
    #[derive(Deserialize)]
    struct Sent {
        role: String,
        content: Box<RawValue>,
    }
    let Sent { role, content } = params.read("ui/message")?;
    if role != "user" {
        return Err(denied("invalid message; its role must be \"user\""));
    }
    let content = content.get();
    let content: Vec<ContentBlock> = match content.starts_with('[') {
        true => serde_json::from_str(content),
        false => serde_json::from_str(content).map(|block| vec![block]),
    }
    .map_err(|error| invalid(&format!("invalid params of `ui/message`: {error}")))?;
    if content.is_empty() {
        return Err(denied("invalid message; it has no content"));
    }
    check_content(&content, accepted)?;
    Ok(Handled::Decide(
        HostRequestKind::Message(content),
        Effect::None,
    ))
}

fn resources(method: &str, params: Params<'_>) -> Result<Handled, Refused> {
    #[derive(Deserialize)]
    struct Read {
        uri: String,
    }
    #[derive(Deserialize)]
    struct List {
        cursor: Option<Cursor>,
    }
    let kind = match method {
        "resources/read" => ForwardedRequestKind::ReadResource(params.read::<Read>(method)?.uri),
        "resources/list" => {
            ForwardedRequestKind::ListResources(params.read::<List>(method)?.cursor)
        }
        _ => ForwardedRequestKind::ListResourceTemplates(params.read::<List>(method)?.cursor),
    };
    Ok(Handled::Forward(kind))
}
