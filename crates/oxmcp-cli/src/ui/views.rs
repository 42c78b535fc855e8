//! The apps that the page shows: for each view a bridge, which holds it to the protocol.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use oxmcp::{
    ClientSession,
    protocol::{CallToolResult, Implementation, Tool},
};
use oxmcp_apps::host::{
    Action, Answer, AppBridge, AppPage, DisplayMode, HostCapabilities, HostContext, HostRequest,
    HostRequestKind, Modalities, Notice, Platform, RequestKey, ToolInfo,
};
use serde_json::{Map, Value, json};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use crate::ui::{events::Events, token};

/// The views that are open at once. Another one closes the oldest.
const MAX_VIEWS: usize = 16;

/// The bytes of an app that the page shows.
const MAX_HTML: usize = 4 << 20;

/// The requests of a view that wait for the user.
const MAX_ASKED: usize = 16;

/// The views of all servers.
pub(crate) struct Views {
    events: Arc<Events>,
    /// The origin of the sandbox.
    sandbox: String,
    open: Mutex<VecDeque<Arc<View>>>,
}

/// One view.
pub(crate) struct View {
    key: String,
    server: usize,
    url: String,
    pub page: AppPage,
    session: ClientSession,
    events: Arc<Events>,
    state: Mutex<State>,
}

struct State {
    bridge: AppBridge,
    is_open: bool,
    /// The requests that the user decides about, by a number.
    asked: BTreeMap<u64, HostRequest>,
    last: u64,
    /// The requests that the server works on.
    forwarded: BTreeMap<RequestKey, AbortHandle>,
}

impl Views {
    pub(crate) fn new(events: Arc<Events>, sandbox: String) -> Self {
        Self {
            events,
            sandbox,
            open: Mutex::default(),
        }
    }

    /// Opens the app of a tool.
    ///
    /// # Errors
    /// The tool has no app, or the app cannot be read.
    pub(crate) async fn open(
        &self,
        server: usize,
        session: &ClientSession,
        tools: Vec<Tool>,
        name: &str,
    ) -> Result<Arc<View>, String> {
        let tool = tools.iter().find(|it| it.name == name);
        let tool = tool.ok_or_else(|| format!("the server has no tool {name:?}"))?;
        let page = AppPage::open(session, tool).await;
        let page = page.map_err(|error| error.message().to_owned())?;
        let page = page.ok_or_else(|| format!("the tool {name:?} has no app"))?;
        if page.html.len() > MAX_HTML {
            let bytes = page.html.len();
            return Err(format!(
                "the app has {bytes} bytes, and the page shows at most {MAX_HTML}"
            ));
        }
        let mut context = HostContext::default();
        context.tool_info = Some(ToolInfo::new(tool.clone()));
        context.display_mode = Some(DisplayMode::Inline);
        context.platform = Some(Platform::Web);
        let host = Implementation::new("oxmcp", env!("CARGO_PKG_VERSION"));
        let bridge = AppBridge::new(host, capabilities())
            .context(context)
            .tools(tools)
            .page(page.clone());
        let key = token::random().map_err(|error| error.to_string())?;
        let view = Arc::new(View {
            url: format!("{}/{key}", self.sandbox),
            key,
            server,
            page,
            session: session.clone(),
            events: Arc::clone(&self.events),
            state: Mutex::new(State {
                bridge,
                is_open: true,
                asked: BTreeMap::new(),
                last: 0,
                forwarded: BTreeMap::new(),
            }),
        });
        let oldest = {
            let mut open = self.lock();
            open.retain(|view| view.state().is_open);
            open.push_back(Arc::clone(&view));
            (open.len() > MAX_VIEWS).then(|| open.pop_front()).flatten()
        };
        if let Some(oldest) = oldest {
            oldest.unmount();
        }
        Ok(view)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<View>> {
        self.lock().iter().find(|it| it.key == key).cloned()
    }

    /// Removes the views of a server whose session is over.
    pub(crate) fn close_all(&self, server: usize) {
        let mut closed = Vec::new();
        self.lock().retain(|view| {
            let is_kept = view.server != server;
            if !is_kept {
                closed.push(Arc::clone(view));
            }
            is_kept
        });
        for view in closed {
            view.unmount();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<View>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn capabilities() -> HostCapabilities {
    let mut capabilities = HostCapabilities::default();
    capabilities.open_links = true;
    capabilities.server_tools = true;
    capabilities.server_resources = true;
    capabilities.logging = true;
    capabilities.message = Some(Modalities::TEXT);
    capabilities.update_model_context = Some(Modalities::ALL);
    capabilities
}

impl View {
    /// The facts that the page needs to show it.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "view": self.key,
            "open": {
                "url": self.url,
                "allow": self.page.allow(),
                "uri": self.page.uri,
                "policy": self.page.policy(),
                "border": self.page.meta.prefers_border,
            },
        })
    }

    /// Gives the view the arguments of the call.
    pub(crate) fn input(self: &Arc<Self>, arguments: &Map<String, Value>) {
        let actions = self.state().bridge.tool_input(arguments);
        self.carry_out(actions.unwrap_or_default());
    }

    /// Gives the view the result of the call.
    pub(crate) fn result(self: &Arc<Self>, result: &CallToolResult) {
        let actions = self.state().bridge.tool_result(result);
        self.carry_out(actions.unwrap_or_default());
    }

    /// Tells the view that the call has failed.
    pub(crate) fn cancelled(self: &Arc<Self>, reason: &str) {
        let actions = self.state().bridge.tool_cancelled(reason);
        self.carry_out(actions.unwrap_or_default());
    }

    /// Receives a message of the view.
    pub(crate) fn receive(self: &Arc<Self>, message: &str) {
        let now = Instant::now().into_std();
        let actions = self.state().bridge.receive(message, now);
        self.carry_out(actions);
    }

    /// Receives the decision of the user about a request.
    pub(crate) fn decide(self: &Arc<Self>, number: u64, is_accepted: bool) {
        let Some(request) = self.state().asked.remove(&number) else {
            return;
        };
        self.answer(match is_accepted {
            true => request.accept(),
            false => request.deny("the user has declined"),
        });
    }

    /// Removes the view when it has answered, or after a time.
    pub(crate) fn close(self: &Arc<Self>) {
        let now = Instant::now().into_std();
        let actions = self.state().bridge.teardown("the user has closed it", now);
        self.carry_out(actions);
        let Some(deadline) = self.state().bridge.deadline() else {
            return;
        };
        let view = Arc::clone(self);
        tokio::spawn(async move {
            sleep_until(deadline.into()).await;
            let actions = view.state().bridge.expire(deadline);
            view.carry_out(actions);
        });
    }

    fn answer(self: &Arc<Self>, answer: Answer) {
        let actions = self.state().bridge.answer(answer);
        self.carry_out(actions);
    }

    fn carry_out(self: &Arc<Self>, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(message) => self.tell(json!({"post": message})),
                Action::Forward(request) => {
                    let (view, key) = (Arc::clone(self), request.key);
                    let forwarded = tokio::spawn(Box::pin(async move {
                        let answer = request.forward(&view.session).await;
                        view.state().forwarded.remove(&key);
                        view.answer(answer);
                    }));
                    self.state().forwarded.insert(key, forwarded.abort_handle());
                }
                Action::Cancel(key) => {
                    let mut state = self.state();
                    if let Some(forwarded) = state.forwarded.remove(&key) {
                        forwarded.abort();
                    }
                    state.asked.retain(|_, it| it.key != key);
                }
                Action::Decide(request) => self.ask(request),
                Action::Notice(notice) => self.notice(notice),
                Action::Report(problem) => self.tell(json!({"note": problem})),
                Action::Unmount => self.unmount(),
                _ => {}
            }
        }
    }

    fn notice(self: &Arc<Self>, notice: Notice) {
        match notice {
            Notice::SizeChanged { height, .. } => self.tell(json!({"height": height})),
            Notice::TeardownRequested => self.close(),
            Notice::Initialized(app) => {
                self.tell(json!({"note": format!("{} {} is ready", app.name, app.version)}));
            }
            Notice::Log { level, text, .. } => {
                self.tell(json!({"note": format!("{}: {text}", level.as_str())}));
            }
            _ => {}
        }
    }

    fn ask(self: &Arc<Self>, request: HostRequest) {
        let ask = match &request.kind {
            HostRequestKind::OpenLink(url) => json!({"what": "open a link", "link": url}),
            HostRequestKind::Message(content) => {
                json!({"what": "add a message to the conversation", "content": content})
            }
            HostRequestKind::UpdateModelContext(context) => {
                let context = json!({
                    "content": context.content,
                    "structuredContent": context.structured_content,
                });
                self.tell(json!({"context": context}));
                return self.answer(request.accept());
            }
            HostRequestKind::DisplayMode(_) => {
                return self.answer(request.shown(DisplayMode::Inline));
            }
            _ => return self.answer(request.deny("this host does not do it")),
        };
        let mut state = self.state();
        if state.asked.len() >= MAX_ASKED {
            drop(state);
            return self.answer(request.deny("too many requests wait for the user"));
        }
        state.last += 1;
        let number = state.last;
        state.asked.insert(number, request);
        drop(state);
        self.tell(json!({"number": number, "ask": ask}));
    }

    fn unmount(&self) {
        let mut state = self.state();
        state.is_open = false;
        for (_, forwarded) in std::mem::take(&mut state.forwarded) {
            forwarded.abort();
        }
        state.asked.clear();
        drop(state);
        self.tell(json!({"unmount": true}));
    }

    fn tell(&self, mut message: Value) {
        if let Some(message) = message.as_object_mut() {
            message.insert("view".to_owned(), self.key.clone().into());
        }
        self.events.push("view", Some(self.server), message);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
