//! One view: its bridge, and the messages for the page that shows it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use oxmcp::{ClientSession, protocol::JsonObject};
use oxmcp_apps::host::{
    Action, Answer, AppBridge, AppPage, HostRequest, HostRequestKind, Notice, RequestKey,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::AbortHandle,
    time::{Instant, sleep_until},
};

/// The messages that wait for the page. A page that reads none of them is given up.
const MAX_WAITING: usize = 1000;

/// One view.
pub(super) struct View {
    pub(super) page: AppPage,
    session: ClientSession,
    state: Mutex<State>,
}

struct State {
    bridge: AppBridge,
    /// The messages for the page; `None` once the view was removed.
    to_page: Option<Sender<Value>>,
    from_view: Option<Receiver<Value>>,
    /// The requests that the user decides about, by a number.
    asked: HashMap<u64, HostRequest>,
    next: u64,
    /// The requests that the server works on.
    forwarded: HashMap<RequestKey, AbortHandle>,
}

impl View {
    pub(super) fn new(session: ClientSession, bridge: AppBridge, page: AppPage) -> Arc<Self> {
        let (to_page, from_view) = channel(MAX_WAITING);
        let state = State {
            bridge,
            to_page: Some(to_page),
            from_view: Some(from_view),
            asked: HashMap::new(),
            next: 0,
            forwarded: HashMap::new(),
        };
        Arc::new(Self {
            page,
            session,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().to_page.is_some()
    }

    /// The messages for the page, once.
    pub(super) fn messages(&self) -> Option<Receiver<Value>> {
        self.state().from_view.take()
    }

    /// Calls the tool whose result the view shows.
    pub(super) async fn call(self: Arc<Self>, tool: String, arguments: JsonObject) {
        let input = self.state().bridge.tool_input(&arguments);
        self.carry_out(input.unwrap_or_default());
        let result = self.session.call_tool(tool, arguments).await;
        let ended = match result {
            Ok(result) => self.state().bridge.tool_result(&result),
            Err(error) => self.state().bridge.tool_cancelled(error.message()),
        };
        self.carry_out(ended.unwrap_or_default());
    }

    /// Receives a message of the view.
    pub(super) fn receive(self: &Arc<Self>, message: &str) {
        let now = Instant::now().into_std();
        let actions = self.state().bridge.receive(message, now);
        self.carry_out(actions);
    }

    /// Receives the decision of the user about a request.
    pub(super) fn decide(self: &Arc<Self>, number: u64, is_accepted: bool) {
        let Some(request) = self.state().asked.remove(&number) else {
            return;
        };
        self.answer(match is_accepted {
            true => request.accept(),
            false => request.deny("the user has declined"),
        });
    }

    fn answer(self: &Arc<Self>, answer: Answer) {
        let actions = self.state().bridge.answer(answer);
        self.carry_out(actions);
    }

    /// Removes the view when it has answered, or after a time.
    pub(super) fn close(self: &Arc<Self>) {
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

    fn carry_out(self: &Arc<Self>, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(message) => self.tell(json!({"post": message})),
                Action::Forward(request) => {
                    let (view, key) = (Arc::clone(self), request.key);
                    let forwarded = tokio::spawn(async move {
                        let answer = request.forward(&view.session).await;
                        view.state().forwarded.remove(&key);
                        view.answer(answer);
                    });
                    self.state().forwarded.insert(key, forwarded.abort_handle());
                }
                Action::Cancel(key) => {
                    if let Some(forwarded) = self.state().forwarded.remove(&key) {
                        forwarded.abort();
                    }
                    self.state().asked.retain(|_, it| it.key != key);
                }
                Action::Decide(request) => self.ask(request),
                Action::Notice(Notice::SizeChanged { height, .. }) => {
                    self.tell(json!({"height": height}));
                }
                Action::Notice(Notice::TeardownRequested) => self.close(),
                Action::Notice(notice) => self.tell(json!({"note": format!("{notice:?}")})),
                Action::Report(problem) => self.tell(json!({"note": problem})),
                Action::Unmount => {
                    self.tell(json!({"unmount": true}));
                    self.state().to_page = None;
                }
                _ => {}
            }
        }
    }

    fn ask(self: &Arc<Self>, request: HostRequest) {
        let kind = format!("{:?}", request.kind);
        let link = match &request.kind {
            HostRequestKind::OpenLink(url) => Some(url.clone()),
            _ => None,
        };
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.asked.insert(number, request);
        drop(state);
        self.tell(json!({"ask": {"number": number, "kind": kind, "link": link}}));
    }

    fn tell(&self, message: Value) {
        let mut state = self.state();
        let sent = state.to_page.as_ref().map(|it| it.try_send(message));
        if matches!(sent, Some(Err(_))) {
            state.to_page = None;
        }
    }
}
