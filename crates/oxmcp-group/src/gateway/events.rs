//! Messages of an upstream during the calls of a session: progress, log messages, questions. Each is passed to a call of the client
//! to which the session belongs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxmcp::{
    Client, ClientSession, Error, ErrorCode, RequestContext, Result, ServerSession,
    middleware::{Next, Request, Response, from_fn},
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitParams, ElicitResult,
        ElicitUrlParams, EmptyParams, InputRequest, InputResponse, JsonObject,
        LoggingMessageParams, Meta, Notification, OrderedMap, ProgressParams, RawJson, method,
    },
    tasks::{ClientTasks, TaskChanged},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use tokio::sync::{mpsc, oneshot};

use super::offers::Offers;

/// The number of events that wait for a call, and of its open questions. Progress and log messages beyond it are dropped, and
/// questions are refused.
pub(super) const CAPACITY: usize = 64;

/// An event of a call.
pub(super) enum CallEvent {
    Progress(ProgressParams),
    Log(LoggingMessageParams),
    /// The description of what the task of a call does.
    Status(String),
    /// A notification of an extension.
    Other(String, Box<RawValue>),
    Asked(Asked),
}

/// A question of an upstream that waits for its answer.
pub(super) struct Asked {
    pub(super) request: InputRequest,
    pub(super) answer: oneshot::Sender<Result<InputResponse>>,
}

/// Asks the client of a call.
pub(super) async fn ask_call(
    call: &mpsc::Sender<CallEvent>,
    request: InputRequest,
) -> Result<InputResponse> {
    let (answer, answered) = oneshot::channel();
    let asked = CallEvent::Asked(Asked { request, answer });
    call.try_send(asked).map_err(|_| {
        Error::limit("too many open questions in one call; ask them one after another")
    })?;
    answered
        .await
        .map_err(|_| Error::cancelled("the call that the question belongs to has ended"))?
}

/// A question under the name of its upstream: a user must know where the answer goes.
pub(super) fn named(server: Option<&str>, mut question: InputRequest) -> InputRequest {
    let message = match &mut question {
        InputRequest::Elicit(ElicitParams::Form(form)) => Some(&mut form.message),
        InputRequest::Elicit(ElicitParams::Url(url)) => Some(&mut url.message),
        _ => None,
    };
    if let (Some(server), Some(message)) = (server, message) {
        *message = format!("{server}: {message}");
    }
    question
}

/// An error under the name of its upstream, as for [`named`]: it can ask the user to visit URLs.
pub(super) fn named_error(server: Option<&str>, error: Error) -> Error {
    let data = error.data().map(RawValue::get);
    let (Some(server), Some(data)) = (server, data) else {
        return error;
    };
    if error.code() != ErrorCode::URL_ELICITATION_REQUIRED {
        return error;
    }
    let Ok(mut data) = serde_json::from_str::<JsonObject>(data) else {
        return error;
    };
    if let Some(Value::Array(questions)) = data.get_mut("elicitations") {
        for question in questions {
            name_message(server, question);
        }
    }
    error.with_data(data)
}

/// Adds the name of an upstream to the message of a question that is not typed.
pub(super) fn name_message(server: &str, question: &mut Value) {
    if let Some(Value::String(message)) = question.get_mut("message") {
        *message = format!("{server}: {message}");
    }
}

/// The calls that are open in a session with an upstream, the newest last.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    open: Vec<Entry>,
    next: u64,
}

struct Entry {
    id: u64,
    events: mpsc::Sender<CallEvent>,
    /// Whether it waits for the answer of its client.
    is_parked: bool,
}

/// The entry of an open call. It ends when this is dropped.
pub(super) struct OpenCall {
    calls: Arc<OpenCalls>,
    id: u64,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.calls.lock().open.retain(|it| it.id != self.id);
    }
}

impl OpenCall {
    /// Sets whether the call waits for the answer of its client.
    pub(super) fn set_parked(&self, is_parked: bool) {
        let mut calls = self.calls.lock();
        if let Some(entry) = calls.open.iter_mut().find(|it| it.id == self.id) {
            entry.is_parked = is_parked;
        }
    }
}

impl OpenCalls {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>, events: mpsc::Sender<CallEvent>) -> OpenCall {
        let mut calls = self.lock();
        let id = calls.next;
        calls.next += 1;
        calls.open.push(Entry {
            id,
            events,
            is_parked: false,
        });
        OpenCall {
            calls: Arc::clone(self),
            id,
        }
    }

    /// The newest call that runs, or the newest of all if each waits for its client.
    fn newest(&self) -> Option<mpsc::Sender<CallEvent>> {
        let calls = self.lock();
        let running = calls.open.iter().rev().find(|it| !it.is_parked);
        running
            .or_else(|| calls.open.last())
            .map(|it| it.events.clone())
    }

    /// The only open call. `None` if there are several: it is not known which of them an event belongs to.
    fn only(&self) -> Option<mpsc::Sender<CallEvent>> {
        match self.lock().open.as_slice() {
            [only] => Some(only.events.clone()),
            _ => None,
        }
    }
}

/// The receiver of an upstream's messages: the calls of a session, or the client's session if there is one.
#[derive(Clone)]
pub(super) struct Receiver {
    pub(super) calls: Arc<OpenCalls>,
    /// The session of the only client.
    pub(super) front: Option<ServerSession>,
    /// The name of the upstream that its questions have.
    pub(super) name: Option<String>,
}

/// Creates the client of a session with an upstream, which passes on all that the upstream sends.
pub(super) fn client_for(
    base: &Client,
    label: &str,
    offers: &Offers,
    receiver: &Receiver,
) -> Client {
    let mut client = base.for_server(label);
    let own = || receiver.clone();
    let (logs, done, others) = (own(), own(), own());
    client = client
        .on_log(move |message, _: ClientSession| logs.clone().log(message))
        .on_elicitation_complete(move |id, _: ClientSession| done.clone().complete(id));
    let others = move |request: Request, next: Next| others.clone().other(request, next);
    client = client.layer(from_fn(others));
    if offers.has(Offers::TASKS) {
        client = client.tasks();
    }
    for extension in offers.extensions() {
        if !client.has_extension(extension.id()) {
            client = client.extension(extension);
        }
    }
    if offers.has(Offers::FORM) {
        let own = own();
        client = client.on_elicit(move |form: ElicitFormParams, _: RequestContext| {
            own.clone()
                .answer::<ElicitResult>(ElicitParams::from(form).into())
        });
    }
    if offers.has(Offers::URL) {
        let own = own();
        client = client.on_elicit_url(move |url: ElicitUrlParams, _: RequestContext| {
            own.clone()
                .answer::<ElicitResult>(ElicitParams::from(url).into())
        });
    }
    if offers.has(Offers::SAMPLING) {
        let own = own();
        client = client.on_sample(move |params: CreateMessageParams, _: RequestContext| {
            own.clone().answer::<CreateMessageResult>(params.into())
        });
    }
    if offers.has(Offers::SAMPLING_TOOLS) {
        client = client.sampling_tools();
    }
    if offers.has(Offers::SAMPLING_CONTEXT) {
        client = client.sampling_context();
    }
    if offers.has(Offers::ROOTS) {
        let own = own();
        let roots = move |request: Request, next: Next| own.clone().roots(request, next);
        client = client.roots([]).layer(from_fn(roots));
    }
    client
}

impl Receiver {
    /// The call that a message belongs to that names none.
    fn call(&self) -> Option<mpsc::Sender<CallEvent>> {
        match &self.front {
            Some(_) => self.calls.newest(),
            // Several clients may share the session.
            None => self.calls.only(),
        }
    }

    /// The client's session, if it can get what belongs to no call: nothing reaches a modern client outside of its requests.
    fn opened(&self) -> Option<&ServerSession> {
        self.front.as_ref().filter(|it| it.revision().is_some())
    }

    /// Passes on notifications and requests of extensions.
    async fn other(self, request: Request, next: Next) -> Result<Response> {
        let name = request.method();
        let tables = [method::REQUESTS_TO_CLIENT, method::NOTIFICATIONS_TO_CLIENT];
        let is_core = |name: &str| {
            tables
                .iter()
                .any(|table| method::find(table, name).is_some())
        };
        if is_core(name) || name == TaskChanged::NAME {
            return next.run(request).await;
        }
        let name = name.to_owned();
        let params = without_reserved_meta(params_of(&request)?)?;
        match (request.is_notification(), self.call(), self.opened()) {
            (true, Some(call), _) => {
                let _ = call.try_send(CallEvent::Other(name, params));
            }
            (true, None, Some(front)) => {
                let _ = front.notify_raw(name, &params).await;
            }
            (false, _, Some(front)) => {
                return Response::new(&front.request_raw(name, &params).await?);
            }
            _ => {}
        }
        next.run(request).await
    }

    async fn log(self, message: LoggingMessageParams) {
        match (self.call(), self.opened()) {
            (Some(call), _) => {
                let _ = call.try_send(CallEvent::Log(message));
            }
            (None, Some(front)) => {
                // A client that does not want it does not get it.
                let _ = front.log(message).await;
            }
            (None, None) => tracing::debug!("dropping a log message that belongs to no call"),
        }
    }

    async fn complete(self, id: String) {
        if let Some(front) = self.opened() {
            // The session has ended if this fails.
            let _ = front.notify_elicitation_complete(id).await;
        }
    }

    async fn roots(self, request: Request, next: Next) -> Result<Response> {
        if request.method() != "roots/list" {
            return next.run(request).await;
        }
        let asked = InputRequest::ListRoots(EmptyParams::default());
        Response::new(&self.ask(asked).await?.get())
    }

    async fn answer<T: DeserializeOwned>(self, request: InputRequest) -> Result<T> {
        let answer = self.ask(request).await?;
        answer.decode().map_err(|error| {
            Error::invalid_params(format!("invalid answer from the client: {error}"))
        })
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse> {
        if let Some(call) = self.calls.newest() {
            return ask_call(&call, request).await;
        }
        let front = self.opened().ok_or_else(|| {
            Error::invalid_request("cannot ask outside a call: the client has no session")
        })?;
        match named(self.name.as_deref(), request) {
            InputRequest::Elicit(params) => response(&front.elicit(params).await?),
            InputRequest::CreateMessage(params) => response(&front.create_message(*params).await?),
            InputRequest::ListRoots(_) => response(&front.list_roots().await?),
            other => Err(Error::method_not_found(other.method())),
        }
    }
}

/// The params of a message without the metadata that only a session's own sides write.
fn without_reserved_meta(params: Box<RawValue>) -> Result<Box<RawValue>> {
    const META: &str = "_meta";
    let Ok(mut members) = serde_json::from_str::<OrderedMap<RawJson>>(params.get()) else {
        return Ok(params);
    };
    let meta = members.get(META).map(|it| it.get());
    let Some(meta) = meta.and_then(|it| serde_json::from_str::<JsonObject>(it).ok()) else {
        return Ok(params);
    };
    let own = meta
        .into_iter()
        .filter(|(key, _)| !Meta::is_reserved_key(key));
    members.insert(META, Value::Object(own.collect()).into());
    to_raw_value(&members)
        .map_err(|error| Error::internal(format!("could not write params: {error}")))
}

/// The params of a message; an empty object if it has none.
pub(super) fn params_of(request: &Request) -> Result<Box<RawValue>> {
    match request.raw_params() {
        Some(params) => Ok(params.to_owned()),
        None => to_raw_value(&JsonObject::new())
            .map_err(|error| Error::internal(format!("could not write params: {error}"))),
    }
}

fn response(result: &impl Serialize) -> Result<InputResponse> {
    InputResponse::new(result)
        .map_err(|error| Error::internal(format!("could not serialize an answer: {error}")))
}
