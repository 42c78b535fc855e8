//! Answering what modern servers ask within the result of a request, and making the request again.
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{
    future::{Future, pending},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, future::try_join_all};
use serde_json::value::RawValue;
use tokio::{
    select,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{methods, session::ClientSession},
    error::{Error, Result},
    json::Text,
    jsonrpc::RequestId,
    protocol::{
        Asked, AskedInput, InputResponse, InputResponses, Meta, OrderedMap, RequestParams,
        ResultType, peek_result_type, with_answers,
    },
    session::{
        Body, BoxFuture, CallOptions, Connection, GoingOn, OnProgress, RequestContext, after,
        attend, middleware::Request, shared_progress,
    },
};

/// How long to wait before a request is made again that nothing was asked for, at first and at last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// A result in which the server asks for something.
pub(crate) struct Asks {
    result: Box<str>,
    _going_on: GoingOn,
}

impl Asks {
    pub(crate) fn new(connection: &Arc<Connection>, result: Box<str>) -> Self {
        let _going_on = GoingOn::new(connection);
        Self { result, _going_on }
    }
}

/// What is needed to make a request again.
pub(crate) struct Again {
    method: &'static str,
    start: Instant,
    timeout: Duration,
    max_total: Duration,
    on_progress: Option<Arc<Mutex<OnProgress>>>,
    cancel: Option<CancellationToken>,
    meta: Meta,
}

impl Again {
    /// Takes it from the options of the first request.
    pub(crate) fn after(method: &'static str, options: CallOptions) -> Self {
        Self {
            method,
            start: options.start.unwrap_or_else(Instant::now),
            timeout: options.timeout,
            max_total: options.max_total,
            on_progress: options.on_progress.map(|it| Arc::new(Mutex::new(it))),
            cancel: options.cancel,
            meta: options.meta,
        }
    }

    fn options(&self) -> CallOptions {
        let left = self.max_total.saturating_sub(self.start.elapsed());
        CallOptions {
            timeout: self.timeout.min(left),
            max_total: left,
            on_progress: self.on_progress.clone().map(shared_progress),
            cancel: self.cancel.clone(),
            meta: self.meta.clone(),
            goes_on: true,
            ..CallOptions::default()
        }
    }

    /// Answers what the server asks and makes the request again, until the server asks no more. A session that is being
    /// closed waits for that, as it does for any call.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request on the wire, and the handlers that are running.
    pub(crate) async fn until_complete(
        self,
        session: &ClientSession,
        params: &[u8],
        asks: Asks,
    ) -> Result<Box<str>> {
        let method = self.method;
        let Asks {
            mut result,
            _going_on,
        } = asks;
        let limit = session.connection().limits.max_rounds;
        let params = str::from_utf8(params).map_err(|_| Error::misuse("the params are no text"))?;
        let mut pause = PAUSES.0;
        for _ in 0..limit {
            let asked = Asked::read(&result).map_err(|wrong| {
                Error::decode(format!("{method}: the server asks for input, but {wrong}"))
            })?;
            let state = asked.request_state;
            let answers = match asked.inputs() {
                Some(inputs) => Some(self.bounded(session, self.answers(session, inputs)).await?),
                None => {
                    self.bounded(session, sleep(pause).map(Ok)).await?;
                    pause = (pause * 2).min(PAUSES.1);
                    None
                }
            };
            let params = with_answers(Text::checked(params), answers.as_ref(), state);
            let params = params.map_err(|error| {
                Error::misuse(format!("{method}: the answers cannot be JSON: {error}"))
            })?;
            let connection = session.connection();
            result = connection
                .call_written(method, &params, &mut self.options())
                .await?
                .json;
            match peek_result_type(Text::checked(&result)) {
                // An extension may have added the type: who reads the result knows.
                ResultType::Complete | ResultType::Other => return Ok(result),
                ResultType::InputRequired => {}
            }
        }
        Err(Error::limit(format!(
            "{method}: the server still asks for input after {limit} rounds, which is the limit \
             (Limits::max_rounds)"
        )))
    }

    /// Runs what is done between two requests: it ends with the call, and when the server can be asked nothing more.
    async fn bounded<T>(
        &self,
        session: &ClientSession,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let method = self.method;
        let cancelled = async {
            match &self.cancel {
                Some(token) => token.cancelled().await,
                None => pending().await,
            }
        };
        let ended = session.connection().calls().over();
        select! {
            biased;
            () = cancelled => Err(Error::cancelled(format!("the call of {method} was cancelled"))),
            () = ended => Err(Error::closed(format!("the session ended before {method} was answered"))),
            done = work => done,
            () = sleep_until(after(self.start, self.max_total)) => Err(Error::timeout(format!(
                "{method} was not done within {:?}, with all that the server asked; it was given up \
                 (set a longer max_total on the call where it may take longer)",
                self.max_total
            ))),
        }
    }

    /// Answers all that is asked, at once. The first failure ends it.
    async fn answers(
        &self,
        session: &ClientSession,
        inputs: OrderedMap<AskedInput<'_>>,
    ) -> Result<InputResponses> {
        let limit = session.connection().limits.max_in_flight;
        if inputs.len() > limit {
            return Err(Error::limit(format!(
                "{}: the server asks {} things at once; the limit is {limit} (Limits::max_in_flight)",
                self.method,
                inputs.len()
            )));
        }
        for (key, input) in &inputs {
            self.check(session, key, input)?;
        }
        let answers = inputs.iter().map(|(key, input)| async move {
            Ok::<_, Error>((key, answer(session, key, input).await?))
        });
        Ok(try_join_all(answers).await?.into_iter().collect())
    }

    /// Whether the server may ask this.
    fn check(&self, session: &ClientSession, key: &str, input: &AskedInput<'_>) -> Result<()> {
        let (declared, revision) = (session.declared(), session.revision());
        let checked = methods::check(declared, revision, &input.method, text(input.params));
        checked.map_err(|error| {
            let (method, wrong, key) = (self.method, error.message(), shown(key));
            Error::unsupported(format!(
                "{method}: the server asks under the key {key:?} for input that this client did not \
                 declare it can give: {wrong}"
            ))
        })
    }
}

pub(crate) fn unknown_type(method: &str) -> Error {
    Error::decode(format!(
        "{method}: the server sent a result of a type that this client does not know"
    ))
}

/// A key can be of any length.
fn shown(key: &str) -> String {
    key.chars().take(64).collect()
}

fn text(params: Option<&RawValue>) -> Text<'_> {
    params.map_or(Text::EMPTY, Text::from)
}

/// Answers one thing, as if it were a request of the server with the key for its id.
async fn answer(
    session: &ClientSession,
    key: &str,
    input: &AskedInput<'_>,
) -> Result<InputResponse> {
    let params = text(input.params);
    let id = RequestId::String(key.into());
    let mut context = session.peer().context(session.connection(), Some(id));
    context.meta = RequestParams::of(params).meta.raw().map(Into::into);
    let context = Arc::new(context);
    let cx = RequestContext::new(Arc::clone(&context));
    let features = session.client().features().clone();
    let future: BoxFuture<Result<Body>> = match features.incoming.next().cloned() {
        Some(next) => {
            let request = Request::incoming(cx, &input.method, Some(params));
            Box::pin(async move {
                let response = next.run(request).await?;
                Ok(Body::Json(response.into_text()))
            })
        }
        None => {
            let served = methods::serve(&features, cx, &input.method, params).map_err(|error| {
                let (wrong, key) = (error.message(), shown(key));
                Error::decode(format!(
                    "the server asks wrongly under the key {key:?}: {wrong}"
                ))
            })?;
            Box::pin(served.body())
        }
    };
    let revision = session.revision();
    let body = attend(context, future).await?;
    let json = body.into_json(revision, None)?;
    let raw = RawValue::from_string(json.into());
    raw.map(InputResponse::from)
        .map_err(|error| Error::internal("the answer is no JSON").with_source(error))
}
