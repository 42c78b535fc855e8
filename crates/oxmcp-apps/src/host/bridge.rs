//! [`AppBridge`], the state of one view, and the messages that its host sends to it.

use std::{
    collections::BTreeMap,
    fmt, mem,
    time::{Duration, Instant},
};

use oxmcp::{
    Error, ErrorCode, ErrorObject, RequestId, Result,
    protocol::{CallToolParams, CallToolResult, Implementation, Tool},
};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::host::{
    action::{Action, Answer, AppInfo, CallKey, DENIED, ModelContext, Notice, RequestKey},
    capabilities::HostCapabilities,
    context::{DisplayMode, HostContext},
    limits::{BridgeLimits, MessageRate},
    message::{outgoing, response},
    page::AppPage,
};

/// The phases of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The page loads.
    Loading,
    /// The host has answered `ui/initialize`. It sends nothing until the view has confirmed that.
    Initializing,
    /// The view is ready.
    Ready,
    /// The host has announced that it removes the view.
    Closing,
    /// The view was removed.
    Closed,
}

/// A request of the view in flight.
pub(crate) struct ViewRequest {
    pub(crate) id: RequestId,
    /// The effect of accepting it.
    pub(crate) effect: Effect,
    /// The size of its message.
    pub(crate) bytes: usize,
    /// The time at which it stops counting as in flight, if the view has cancelled it.
    pub(crate) cancelled_until: Option<Instant>,
}

/// The effect on the bridge of accepting a request.
pub(crate) enum Effect {
    None,
    ModelContext(ModelContext),
    DisplayMode,
}

/// A request of the host in flight.
pub(crate) struct HostCall {
    key: CallKey,
    kind: HostCallKind,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostCallKind {
    ListTools,
    CallTool,
    Teardown,
}

/// The tool call that the view shows, as far as the view must still hear of it.
#[derive(Default)]
struct ShownCall {
    partial: Option<Box<RawValue>>,
    input: Option<Box<RawValue>>,
    outcome: Option<(&'static str, Box<RawValue>)>,
    has_input: bool,
    is_done: bool,
}

/// The host's side of the conversation with one view, as a state machine without I/O.
///
/// The view runs in a frame or a web view that the program provides, with a pipe for JSON messages in both directions. The
/// program gives each message of the view to [`receive`](Self::receive), and carries out the returned [actions](Action): it posts
/// messages to the view, forwards requests to the server of the app, and decides about requests to itself.
///
/// ```
/// use std::time::Instant;
/// use oxmcp::{ClientSession, protocol::Implementation};
/// use oxmcp_apps::host::{Action, AppBridge, HostCapabilities};
///
/// /// Carries out the actions, with a function that posts a message to the view.
/// async fn carry_out(bridge: &mut AppBridge, mut actions: Vec<Action>, session: &ClientSession, post: impl Fn(String)) {
///     while !actions.is_empty() {
///         for action in std::mem::take(&mut actions) {
///             match action {
///                 Action::Send(message) => post(message),
///                 Action::Forward(request) => {
///                     let answer = request.forward(session).await;
///                     actions.extend(bridge.answer(answer));
///                 }
///                 Action::Decide(request) => actions.extend(bridge.answer(request.deny("not in this example"))),
///                 Action::Unmount => { /* remove the frame */ }
///                 _ => {}
///             }
///         }
///     }
/// }
///
/// # async fn run(session: &ClientSession, message: &str, now: Instant) -> oxmcp::Result<()> {
/// let mut capabilities = HostCapabilities::default();
/// capabilities.server_tools = true;
/// let mut bridge = AppBridge::new(Implementation::new("my-host", "1.0.0"), capabilities)
///     .tools(session.tools().all().await?);
/// let actions = bridge.receive(message, now);
/// carry_out(&mut bridge, actions, session, |message| { /* window.postMessage */ }).await;
/// # Ok(())
/// # }
/// ```
///
/// The bridge holds the view to the protocol, whatever it sends: nothing reaches it before it is initialized, it calls only the
/// tools of its own server that it may see, and a request that the host has not offered fails. A message that breaks a rule
/// has no effect but an [`Action::Report`]. [`BridgeLimits`] bounds everything that the view can make grow.
///
/// Times are arguments: give the current time of a monotonic clock. [`deadline`](Self::deadline) tells when to call
/// [`expire`](Self::expire).
pub struct AppBridge {
    host: Implementation,
    pub(crate) capabilities: HostCapabilities,
    pub(crate) context: HostContext,
    /// The changes of the context that the view must still hear of.
    changed_context: HostContext,
    /// The tools of the server of the app.
    pub(crate) tools: BTreeMap<String, Tool>,
    pub(crate) limits: BridgeLimits,
    /// The page, if the bridge gives it to a sandbox proxy.
    pub(crate) page: Option<AppPage>,
    pub(crate) has_loaded: bool,
    pub(crate) phase: Phase,
    pub(crate) app: AppInfo,
    pub(crate) requests: BTreeMap<RequestKey, ViewRequest>,
    pub(crate) calls: BTreeMap<i64, HostCall>,
    next_id: i64,
    shown: ShownCall,
    /// The context for the model, and the request that has set it.
    model_context: Option<(RequestKey, ModelContext)>,
    pub(crate) size: (Option<f64>, Option<f64>),
    pub(crate) rate: MessageRate,
    reports: usize,
    pub(crate) actions: Vec<Action>,
}

impl AppBridge {
    /// Creates the bridge for one view. `host` names the program to the view.
    #[must_use]
    pub fn new(host: Implementation, capabilities: HostCapabilities) -> Self {
        Self {
            host,
            capabilities,
            context: HostContext::default(),
            changed_context: HostContext::default(),
            tools: BTreeMap::new(),
            limits: BridgeLimits::default(),
            page: None,
            has_loaded: false,
            phase: Phase::Loading,
            app: AppInfo::default(),
            requests: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_id: 0,
            shown: ShownCall::default(),
            model_context: None,
            size: (None, None),
            rate: MessageRate::default(),
            reports: 0,
            actions: Vec::new(),
        }
    }

    /// Sets the context that the view gets when it is initialized.
    #[must_use]
    pub fn context(mut self, context: HostContext) -> Self {
        self.context = context;
        self
    }

    /// Sets the tools of the server of the app, and of no other server: the view can call those that are visible to it.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools = by_name(tools);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: BridgeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Gives the page to a [sandbox proxy](super::sandbox_proxy) when the proxy is ready, and tells the view which origins and
    /// permissions it has.
    #[must_use]
    pub fn page(mut self, page: AppPage) -> Self {
        self.page = Some(page);
        self
    }

    /// Returns whether the view is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns what the view adds to the context of the model: of the updates that the host has accepted, the one that the view
    /// has sent last, in whatever order the host has answered them.
    #[must_use]
    pub fn model_context(&self) -> Option<&ModelContext> {
        self.model_context.as_ref().map(|(_, context)| context)
    }

    /// Gives the view arguments of the tool call that are not complete yet, as an object. Only the last ones are kept for a
    /// view that is not ready.
    ///
    /// # Errors
    /// If the complete arguments were given, the call is over, or the arguments are not JSON.
    pub fn tool_input_partial(&mut self, arguments: impl Serialize) -> Result<Vec<Action>> {
        if self.shown.has_input || self.shown.is_done {
            return Err(misuse(
                "cannot send partial tool input: the complete input or the result was sent already",
            ));
        }
        self.shown.partial = Some(tool_arguments(arguments)?);
        Ok(self.flush())
    }

    /// Gives the view the arguments of the tool call, as an object. Do this once.
    ///
    /// # Errors
    /// If they were given already, the call is over, or they are not JSON.
    pub fn tool_input(&mut self, arguments: impl Serialize) -> Result<Vec<Action>> {
        if self.shown.has_input || self.shown.is_done {
            return Err(misuse(
                "cannot send the tool input: it was sent already, or the call is over",
            ));
        }
        self.shown.input = Some(tool_arguments(arguments)?);
        self.shown.partial = None;
        self.shown.has_input = true;
        Ok(self.flush())
    }

    /// Gives the view the result of the tool call.
    ///
    /// # Errors
    /// If the arguments were not given before, or the call is over.
    pub fn tool_result(&mut self, result: &CallToolResult) -> Result<Vec<Action>> {
        if !self.shown.has_input {
            return Err(misuse(
                "cannot send the tool result: send the tool input first",
            ));
        }
        self.end_call("ui/notifications/tool-result", &result)
    }

    /// Tells the view that the tool call was cancelled, for whatever reason.
    ///
    /// # Errors
    /// If the call is over.
    pub fn tool_cancelled(&mut self, reason: impl Into<String>) -> Result<Vec<Action>> {
        let params = json!({"reason": reason.into()});
        self.end_call("ui/notifications/tool-cancelled", &params)
    }

    fn end_call(&mut self, method: &'static str, params: &impl Serialize) -> Result<Vec<Action>> {
        if self.shown.is_done {
            return Err(misuse("cannot end the tool call: it is over already"));
        }
        self.shown.outcome = Some((method, raw(params)?));
        self.shown.partial = None;
        self.shown.is_done = true;
        Ok(self.flush())
    }

    /// Changes the context, and tells the view. `change` has only the members that change.
    ///
    /// # Errors
    /// If the view has not declared the display mode. Before it is initialized, every mode is accepted.
    pub fn change_context(&mut self, change: HostContext) -> Result<Vec<Action>> {
        let is_loading = self.phase == Phase::Loading;
        let is_undeclared = |mode| !is_loading && !self.can_show(mode);
        if change.display_mode.is_some_and(is_undeclared) {
            return Err(undeclared_mode());
        }
        if !is_loading {
            self.changed_context.merge(change.clone());
        }
        self.context.merge(change);
        Ok(self.flush())
    }

    /// Whether the view has declared a mode. One that declares nothing is shown in the conversation only.
    pub(crate) fn can_show(&self, mode: DisplayMode) -> bool {
        match &self.app.display_modes {
            Some(modes) => modes.contains(&mode),
            None => mode == DisplayMode::Inline,
        }
    }

    /// Replaces the tools of the server after they have changed, and notifies the view.
    pub fn tools_changed(&mut self, tools: impl IntoIterator<Item = Tool>) -> Vec<Action> {
        self.tools = by_name(tools);
        if self.capabilities.server_tools {
            self.notify_if_ready("notifications/tools/list_changed");
        }
        self.take_actions()
    }

    /// Notifies the view that the resources of the server have changed.
    pub fn resources_changed(&mut self) -> Vec<Action> {
        if self.capabilities.server_resources {
            self.notify_if_ready("notifications/resources/list_changed");
        }
        self.take_actions()
    }

    fn notify_if_ready(&mut self, method: &str) {
        if self.phase == Phase::Ready {
            self.send(None, method, &json!({}));
        }
    }

    /// Answers a request of the view. Nothing happens if the view has cancelled it.
    pub fn answer(&mut self, answer: Answer) -> Vec<Action> {
        let Answer { key, mut result } = answer;
        let request = self.requests.remove(&key);
        let Some(request) = request.filter(|it| it.cancelled_until.is_none()) else {
            return Vec::new();
        };
        match (request.effect, &result) {
            (Effect::ModelContext(context), Ok(_)) => self.set_model_context(key, context),
            (Effect::DisplayMode, Ok(accepted)) => {
                if let Err(error) = self.set_shown_mode(accepted) {
                    result = Err(ErrorObject::new(DENIED.into(), error.message()));
                }
            }
            _ => {}
        }
        self.respond(&request.id, &result);
        self.take_actions()
    }

    /// Keeps the context of an update, unless the context of a later one was accepted before.
    fn set_model_context(&mut self, key: RequestKey, context: ModelContext) {
        let current = self.model_context.as_ref();
        if current.is_none_or(|(newest, _)| *newest < key) {
            self.model_context = Some((key, context));
        }
    }

    /// Keeps the mode in which the host shows the view now.
    ///
    /// # Errors
    /// If the view has not declared it.
    fn set_shown_mode(&mut self, result: &RawValue) -> Result<()> {
        #[derive(serde::Deserialize)]
        struct Shown {
            mode: DisplayMode,
        }
        let Ok(Shown { mode }) = serde_json::from_str(result.get()) else {
            return Ok(());
        };
        let is_shown = self.context.display_mode == Some(mode);
        if !is_shown && !self.can_show(mode) {
            return Err(undeclared_mode());
        }
        self.context.display_mode = Some(mode);
        Ok(())
    }

    /// Requests the tools of the view. The answer is [`Notice::AppTools`], after at most
    /// [`answer_timeout`](BridgeLimits::answer_timeout).
    ///
    /// # Errors
    /// If the view is not ready, or has not declared that it has tools.
    pub fn list_app_tools(&mut self, now: Instant) -> Result<(CallKey, Vec<Action>)> {
        self.call_app(HostCallKind::ListTools, "tools/list", &json!({}), now)
    }

    /// Calls a tool of the view. The answer is [`Notice::AppToolResult`], after at most
    /// [`answer_timeout`](BridgeLimits::answer_timeout).
    ///
    /// # Errors
    /// If the view is not ready, or has not declared that it has tools.
    pub fn call_app_tool(
        &mut self,
        params: &CallToolParams,
        now: Instant,
    ) -> Result<(CallKey, Vec<Action>)> {
        self.call_app(HostCallKind::CallTool, "tools/call", params, now)
    }

    fn call_app(
        &mut self,
        kind: HostCallKind,
        method: &str,
        params: &impl Serialize,
        now: Instant,
    ) -> Result<(CallKey, Vec<Action>)> {
        if self.phase != Phase::Ready || !self.app.has_tools {
            return Err(misuse(
                "cannot call a tool of the view: the view is not ready, or has no tools",
            ));
        }
        let timeout = self.limits.answer_timeout;
        let key = self.request((kind, method), params, later(now, timeout));
        Ok((key, self.take_actions()))
    }

    /// Announces to the view that it is removed, and requests [`Action::Unmount`] when the view has answered, or after
    /// [`teardown_timeout`](BridgeLimits::teardown_timeout). Requests of the view are still served until then.
    pub fn teardown(&mut self, reason: impl Into<String>, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Loading | Phase::Initializing => self.unmount(),
            Phase::Ready => {
                let params = json!({"reason": reason.into()});
                let deadline = later(now, self.limits.teardown_timeout);
                let call = (HostCallKind::Teardown, "ui/resource-teardown");
                self.request(call, &params, deadline);
                self.phase = Phase::Closing;
            }
            Phase::Closing | Phase::Closed => {}
        }
        self.take_actions()
    }

    pub(crate) fn unmount(&mut self) {
        self.phase = Phase::Closed;
        let pending = mem::take(&mut self.requests).into_iter();
        let pending = pending.filter(|(_, request)| request.cancelled_until.is_none());
        self.actions
            .extend(pending.map(|(key, _)| Action::Cancel(key)));
        for call in mem::take(&mut self.calls).into_values() {
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the view was removed");
            self.end_host_call(&call, Err(error));
        }
        self.actions.push(Action::Unmount);
    }

    /// Returns the time at which [`expire`](Self::expire) must be called; `None` if nothing is waiting for the view.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.calls.values().map(|it| it.deadline).min()
    }

    /// Gives up the requests of the host that the view has not answered in time.
    pub fn expire(&mut self, now: Instant) -> Vec<Action> {
        let late = self.calls.iter().filter(|(_, it)| it.deadline <= now);
        let late: Vec<_> = late.map(|(id, _)| *id).collect();
        for id in late {
            let Some(call) = self.calls.remove(&id) else {
                continue;
            };
            let error =
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the view did not answer in time");
            self.end_host_call(&call, Err(error));
        }
        self.take_actions()
    }

    /// Ends a request of the host.
    pub(crate) fn end_host_call(
        &mut self,
        &HostCall { key, kind, .. }: &HostCall,
        result: Result<&RawValue, ErrorObject>,
    ) {
        let notice = match kind {
            HostCallKind::ListTools => {
                Notice::AppTools(key, result.and_then(|it| self.read_app_tools(it)))
            }
            HostCallKind::CallTool => Notice::AppToolResult(key, result.and_then(read_answer)),
            HostCallKind::Teardown if self.phase == Phase::Closed => return,
            HostCallKind::Teardown => return self.unmount(),
        };
        self.actions.push(Action::Notice(notice));
    }

    fn read_app_tools(&mut self, result: &RawValue) -> Result<Vec<Tool>, ErrorObject> {
        let page: oxmcp::protocol::ListToolsResult = read_answer(result)?;
        let limit = self.limits.max_app_tools;
        let mut tools = page.tools;
        if tools.len() > limit {
            self.report(&format!(
                "too many tools: {}, and the limit is {limit}",
                tools.len()
            ));
            tools.truncate(limit);
        }
        Ok(tools)
    }

    /// The answer to `ui/initialize`.
    pub(crate) fn initialize_result(&self) -> Value {
        let meta = self.page.as_ref().map(|page| &page.meta);
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "hostInfo": self.host,
            "hostCapabilities": self.capabilities.to_json(meta),
            "hostContext": self.context,
        })
    }

    /// Sends what the view must still hear of, in the order that the protocol demands, if it is ready.
    pub(crate) fn flush(&mut self) -> Vec<Action> {
        if self.phase == Phase::Ready {
            let change = mem::take(&mut self.changed_context);
            if change != HostContext::default() {
                self.send(None, "ui/notifications/host-context-changed", &change);
            }
            let shown = &mut self.shown;
            let (partial, input) = (shown.partial.take(), shown.input.take());
            let outcome = shown.outcome.take();
            if let Some(params) = partial {
                self.send(None, "ui/notifications/tool-input-partial", &params);
            }
            if let Some(params) = input {
                self.send(None, "ui/notifications/tool-input", &params);
            }
            if let Some((method, params)) = outcome {
                self.send(None, method, &params);
            }
        }
        self.take_actions()
    }

    pub(crate) fn send(&mut self, id: Option<i64>, method: &str, params: &impl Serialize) {
        self.actions
            .push(Action::Send(outgoing(id, method, params)));
    }

    fn request(
        &mut self,
        (kind, method): (HostCallKind, &str),
        params: &impl Serialize,
        deadline: Instant,
    ) -> CallKey {
        self.next_id += 1;
        let (id, key) = (self.next_id, CallKey::new());
        let call = HostCall {
            key,
            kind,
            deadline,
        };
        self.calls.insert(id, call);
        self.send(Some(id), method, params);
        key
    }

    /// Keeps a request of the view until it is answered.
    pub(crate) fn keep(&mut self, id: RequestId, bytes: usize, effect: Effect) -> RequestKey {
        let key = RequestKey::new();
        let request = ViewRequest {
            id,
            effect,
            bytes,
            cancelled_until: None,
        };
        self.requests.insert(key, request);
        key
    }

    pub(crate) fn respond(&mut self, id: &RequestId, result: &Result<Box<RawValue>, ErrorObject>) {
        if self.phase != Phase::Closed {
            self.actions.push(Action::Send(response(id, result)));
        }
    }

    /// Reports a message that has no effect. The number of reports is limited: a hostile view would fill the log.
    pub(crate) fn report(&mut self, problem: &str) {
        const MAX_REPORT: usize = 300;
        self.reports = self.reports.saturating_add(1);
        let limit = self.limits.max_reports;
        if self.reports <= limit {
            // The text has words of the view, and is logged.
            let plain = |it: char| if it.is_control() { ' ' } else { it };
            let mut text: String = problem.chars().take(MAX_REPORT).map(plain).collect();
            if self.reports == limit {
                text.push_str("; further messages that are not allowed are not reported");
            }
            self.actions.push(Action::Report(text));
        }
    }

    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        mem::take(&mut self.actions)
    }
}

impl fmt::Debug for AppBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppBridge")
            .field("app", &self.app.name)
            .field("phase", &self.phase)
            .field("requests", &self.requests.len())
            .finish_non_exhaustive()
    }
}

/// The version of the protocol between host and view.
const PROTOCOL_VERSION: &str = "2026-01-26";

fn by_name(tools: impl IntoIterator<Item = Tool>) -> BTreeMap<String, Tool> {
    let tools = tools.into_iter();
    tools.map(|tool| (tool.name.clone(), tool)).collect()
}

/// The error for a display mode that is not the view's: for the host, and for the view.
pub(crate) fn undeclared_mode() -> Error {
    misuse("cannot use the display mode: the view has not declared it in `availableDisplayModes`")
}

fn misuse(problem: &'static str) -> Error {
    Error::misuse(problem)
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(value)
        .map_err(|error| Error::invalid_params(format!("could not write the params: {error}")))
}

/// The time after a timeout, which may be as long as a host likes.
pub(crate) fn later(now: Instant, timeout: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    now + timeout.min(LONG)
}

/// The params with the arguments of a tool call.
///
/// # Errors
/// If they are not an object.
fn tool_arguments(arguments: impl Serialize) -> Result<Box<RawValue>> {
    let arguments = raw(&arguments)?;
    if !arguments.get().starts_with('{') {
        return Err(misuse(
            "cannot send the tool input: the arguments must be an object",
        ));
    }
    raw(&BTreeMap::from([("arguments", arguments)]))
}

fn read_answer<T: serde::de::DeserializeOwned>(result: &RawValue) -> Result<T, ErrorObject> {
    serde_json::from_str(result.get()).map_err(|error| {
        let text = format!("invalid answer of the view: {error}");
        ErrorObject::new(ErrorCode::INTERNAL_ERROR, text)
    })
}
