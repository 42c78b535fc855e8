//! Messages of an upstream during the calls of a session: progress, log messages, questions. Each is passed to a call of the client
//! to which the session belongs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxmcp::{
    Client, ClientSession, Error, RequestContext, Result, ServerSession,
    middleware::{Next, Request, Response, from_fn},
    protocol::{
        ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitFormParams,
        ElicitParams, ElicitResult, ElicitUrlParams, EmptyParams, InputRequest, InputResponse,
        LoggingMessageParams, ProgressParams,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{mpsc, oneshot};

/// The number of events that wait for a call. Progress and log messages beyond it are dropped, and questions are refused.
pub(super) const CAPACITY: usize = 64;

/// An event of a call.
pub(super) enum CallEvent {
    Progress(ProgressParams),
    Log(LoggingMessageParams),
    Asked(Asked),
}

/// A question of an upstream that waits for its answer.
pub(super) struct Asked {
    pub(super) request: InputRequest,
    pub(super) answer: oneshot::Sender<InputResponse>,
}

/// The calls that are open in a session with an upstream, the newest last.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    open: Vec<(u64, mpsc::Sender<CallEvent>)>,
    next: u64,
}

/// The entry of an open call. It ends when this is dropped.
pub(super) struct OpenCall {
    calls: Arc<OpenCalls>,
    id: u64,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.calls.lock().open.retain(|(id, _)| *id != self.id);
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
        calls.open.push((id, events));
        OpenCall {
            calls: Arc::clone(self),
            id,
        }
    }

    fn newest(&self) -> Option<mpsc::Sender<CallEvent>> {
        self.lock().open.last().map(|(_, events)| events.clone())
    }

    /// The only open call. `None` if there are several: it is not known which of them an event belongs to.
    fn only(&self) -> Option<mpsc::Sender<CallEvent>> {
        match self.lock().open.as_slice() {
            [(_, events)] => Some(events.clone()),
            _ => None,
        }
    }
}

/// The features of a client that an upstream learns of: those that the client in front of the gateway has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Offers(u8);

impl Offers {
    const FORM: u8 = 1;
    const URL: u8 = 2;
    const SAMPLING: u8 = 4;
    const SAMPLING_TOOLS: u8 = 8;
    const SAMPLING_CONTEXT: u8 = 16;
    const ROOTS: u8 = 32;

    pub(super) fn of(declared: &ClientCapabilities) -> Self {
        let elicitation = declared.elicitation.as_ref();
        let sampling = declared.sampling.as_ref();
        let all = [
            (Self::FORM, elicitation.is_some_and(|it| it.has_form())),
            (Self::URL, elicitation.is_some_and(|it| it.has_url())),
            (Self::SAMPLING, sampling.is_some()),
            (
                Self::SAMPLING_TOOLS,
                sampling.is_some_and(|it| it.tools.is_some()),
            ),
            (
                Self::SAMPLING_CONTEXT,
                sampling.is_some_and(|it| it.context.is_some()),
            ),
            (Self::ROOTS, declared.roots.is_some()),
        ];
        Self(
            all.iter()
                .filter(|(_, has)| *has)
                .fold(0, |bits, (bit, _)| bits | bit),
        )
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// The receiver of an upstream's messages: the calls of a session, or the client's session if there is one.
#[derive(Clone)]
struct Receiver {
    calls: Arc<OpenCalls>,
    front: Option<ServerSession>,
}

/// Creates the client of a session with an upstream, which passes on all that the upstream sends.
pub(super) fn client_for(
    base: &Client,
    label: &str,
    offers: Offers,
    calls: &Arc<OpenCalls>,
    front: Option<ServerSession>,
) -> Client {
    let receiver = Receiver {
        calls: Arc::clone(calls),
        front,
    };
    let mut client = base.for_server(label);
    let own = || receiver.clone();
    let (logs, done) = (own(), own());
    client = client
        .on_log(move |message, _: ClientSession| logs.clone().log(message))
        .on_elicitation_complete(move |id, _: ClientSession| done.clone().complete(id));
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
    async fn log(self, message: LoggingMessageParams) {
        let call = match &self.front {
            Some(_) => self.calls.newest(),
            // Several clients may share the session.
            None => self.calls.only(),
        };
        match (call, self.front) {
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
        if let Some(front) = self.front {
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
            Error::invalid_params(format!("invalid answer of the client: {error}"))
        })
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse> {
        if let Some(call) = self.calls.newest() {
            let (answer, answered) = oneshot::channel();
            let asked = CallEvent::Asked(Asked { request, answer });
            call.try_send(asked).map_err(|_| {
                Error::limit("too many open questions in one call; ask them one after another")
            })?;
            return answered
                .await
                .map_err(|_| Error::cancelled("the call that the question belongs to has ended"));
        }
        let front = self.front.as_ref().ok_or_else(|| {
            Error::invalid_request("cannot ask outside a call: the client has no session")
        })?;
        match request {
            InputRequest::Elicit(params) => response(&front.elicit(params).await?),
            InputRequest::CreateMessage(params) => response(&front.create_message(*params).await?),
            InputRequest::ListRoots(_) => response(&front.list_roots().await?),
            other => Err(Error::method_not_found(other.method())),
        }
    }
}

fn response(result: &impl Serialize) -> Result<InputResponse> {
    InputResponse::new(result)
        .map_err(|error| Error::internal(format!("could not serialize an answer: {error}")))
}
