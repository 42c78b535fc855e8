//! Questions in a legacy session (up to 2025-11-25): requests to the client, for whose answers the handler waits.

use std::{
    future::{Future, IntoFuture},
    mem,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use oxmcp_protocol::{ElicitParams, InputRequest, Meta, Method, Payload, ProgressParams, Revision};
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{check, settings::AskSettings};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    server::session::ServerSession,
    session::{
        connection::{Connection, RequestContext},
        outbound::{call::wait_until_ready, options::CallOptions},
        sealing::random,
    },
};

/// Asks a question and waits for the answer. The question is cancelled when its request is cancelled.
pub(crate) async fn ask(
    cx: &RequestContext,
    settings: &AskSettings,
    key: &str,
    request: &InputRequest,
) -> Result<Box<RawValue>> {
    ask_with(cx, settings.call_options(), key, request).await
}

/// Asks a question of a task, on the stream of a request that waits for the task. The question names its task in `_meta`.
/// See [related tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#associating-task-related-messages).
///
/// # Errors
/// [`Error::is_unsupported`] if this client cannot be asked, and any error that prevents an answer.
pub(crate) async fn ask_for_task(
    cx: &RequestContext,
    task_id: &str,
    key: &str,
    request: &InputRequest,
) -> Result<Box<RawValue>> {
    check::question(request, cx.client_capabilities(), cx.revision())?;
    let mut options = cx.server()?.features().ask.call_options();
    options
        .meta
        .insert(Meta::RELATED_TASK, json!({"taskId": task_id}));
    ask_with(cx, options, key, request).await
}

async fn ask_with(
    cx: &RequestContext,
    options: CallOptions,
    key: &str,
    request: &InputRequest,
) -> Result<Box<RawValue>> {
    let revision = cx.revision();
    let connection = &cx.parts().connection;
    let question = async {
        if let Some(session) = cx.server_session() {
            session.role().legacy_session().may_be_asked().await;
        }
        send(connection, request.clone(), revision, options).await
    };
    let asked = tokio::select! {
        biased;
        answer = question => answer?,
        () = cx.cancelled() => {
            let method = request.method();
            return Err(Error::cancelled(format!("{method} was cancelled with the call that asked")));
        }
    };
    let text: &RawValue = serde_json::from_str(&asked).map_err(|error| {
        check::wrong_answer(Some(key), request.method(), &error.to_string(), revision)
    })?;
    check::answer(connection, Some(key), request, text, revision)
}

/// Sends a question as a request, and waits for the answer.
async fn send(
    connection: &Arc<Connection>,
    mut request: InputRequest,
    revision: Revision,
    mut options: CallOptions,
) -> Result<Box<str>> {
    if let InputRequest::Elicit(params) = &mut request {
        assign_id(params, revision)?;
    }
    let method = request.method().to_owned();
    let Some((method, meta, params)) = request.into_request(revision)? else {
        return Err(Error::misuse(format!(
            "cannot send {method} to a client: not a question of the protocol"
        )));
    };
    options.meta.merge(meta);
    let answer = connection.call_written(method, params.get().as_bytes(), &mut options);
    answer.await.map(|result| result.json)
}

/// Makes a request whose params are fitted to the revision. The `_meta` of the params becomes that of the call.
async fn call<M: Method>(
    connection: &Arc<Connection>,
    mut params: Box<M::Params>,
    revision: Revision,
    mut options: CallOptions,
) -> Result<Box<str>> {
    params.fit(revision);
    if let Some(own) = params.metadata() {
        options.meta.merge(mem::take(own));
    }
    connection.check_meta(&options)?;
    connection.call(M::NAME, &*params, options).await
}

/// Assigns an id to a URL elicitation if the revision requires one and it has none.
pub(crate) fn assign_id(params: &mut ElicitParams, revision: Revision) -> Result<()> {
    if let ElicitParams::Url(url) = params
        && revision.has_elicitation_ids()
        && url.elicitation_id.is_none()
    {
        let id = random::<16>()?;
        url.elicitation_id = Some(format!("{:032x}", u128::from_be_bytes(id)));
    }
    Ok(())
}

/// A request to a client, sent when awaited. Set its options first.
///
/// ```
/// # async fn run(session: oxmcp::ServerSession) -> oxmcp::Result<()> {
/// let result = session.list_roots().timeout(std::time::Duration::from_secs(5)).await?;
/// # let _ = result.roots;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The error that the client returned, and any error that prevents a response: see [`Error`]'s predicates.
/// [`Error::is_unsupported`] if the client does not support the request; nothing is sent then.
///
/// # Cancel safety
/// Dropping the future cancels the request on the wire.
#[must_use = "the request is sent when this is awaited"]
pub struct SessionCall<M: Method> {
    session: ServerSession,
    params: Result<Box<M::Params>>,
    /// The question that the answer is checked against, if there is one.
    question: Option<InputRequest>,
    options: CallOptions,
}

impl<M: Method> SessionCall<M> {
    pub(crate) fn new(session: &ServerSession, params: Result<Box<M::Params>>) -> Self {
        let options = session.role().server().features().ask.call_options();
        Self {
            session: session.clone(),
            params,
            question: None,
            options,
        }
    }

    /// Sets the question that the answer is checked against.
    pub(crate) fn question(mut self, question: InputRequest) -> Self {
        self.question = Some(question);
        self
    }

    /// Sets the timeout. Default: [`Server::ask_timeout`](crate::Server::ask_timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self.options.max_total = timeout;
        self
    }

    /// Requests progress. The handler is called in order, and before the call returns. Progress does not extend the deadline,
    /// which already allows for the user's time.
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    pub fn on_progress(mut self, handler: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.options.on_progress = Some(Box::new(handler));
        self
    }

    /// Sets a key of the request's [`_meta`](https://modelcontextprotocol.io/specification/2025-11-25/basic#_meta).
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.meta.insert(key, value);
        self
    }

    /// Cancels the request when the token is cancelled.
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.options.cancel = Some(token);
        self
    }

    async fn send(self) -> Result<M::Result> {
        let Self {
            session,
            params,
            question,
            mut options,
        } = self;
        let params = params?;
        let revision = session.takes_requests(M::NAME)?.revision;
        let ready = session.role().legacy_session().may_be_asked();
        wait_until_ready(M::NAME, &mut options, ready).await?;
        let answer = call::<M>(session.connection(), params, revision, options).await?;
        let wrong = |error: serde_json::Error| {
            check::wrong_answer(None, M::NAME, &error.to_string(), revision).with_source(error)
        };
        let read = |answer: &str| session.connection().read(M::NAME, answer).map_err(wrong);
        let Some(question) = question else {
            return read(&answer);
        };
        let answer = serde_json::from_str(&answer).map_err(wrong)?;
        let answer = check::answer(session.connection(), None, &question, answer, revision)?;
        read(answer.get())
    }
}

impl<M: Method> IntoFuture for SessionCall<M> {
    type Output = Result<M::Result>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<M::Result>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

opaque_debug!([M: Method] SessionCall<M>, |_it| { method: M::NAME });
