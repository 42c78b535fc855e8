//! Rounds of input: the input requests of a modern server within a result, the answers of the client's handlers or of the
//! caller, and the repeated request.
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::FutureExt;
use oxmcp_json::Text;
use oxmcp_protocol::{
    InputRequest, InputRequiredResult, InputResponse, InputResponses, OrderedMap, RequestId,
    internal::{
        RawInputRequest, RawInputRequired, RequestParams, ResultType, with_input_responses,
    },
    lenient::{self, Tolerated},
    method::{self, MultiRoundTrip},
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::{
    select,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        dispatch::handle,
        methods,
        requests::{
            call::Call,
            call_answer::{CallAnswer, PendingInput},
            call_request::{CallRequest, cancellation, cancelled},
            results::{decode, read},
        },
        session::ClientSession,
    },
    error::{Error, Result, plain_decode_error},
    session::{
        connection::RequestContext,
        inbound::run::run_question,
        outbound::{calls::CallResult, options::OnQuestion},
        task::{after, try_join_boxed},
    },
};

/// The first and the longest pause before a request is made again, if the server has asked for no input.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

impl CallRequest {
    /// Answers the input requests of the server and makes the request again, until the result is complete. A session that
    /// is being closed waits for this, as it does for any call.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request on the wire, and the handlers that are running.
    pub(crate) async fn answer_rounds(&mut self, input: PendingInput) -> Result<CallResult> {
        let method = self.method;
        if !method::is_in(method::MULTI_ROUND_TRIP, method, self.session.revision()) {
            return Err(Error::decode(format!(
                "{method}: unexpected request for input: this method does not support it"
            )));
        }
        let PendingInput { mut result, _guard } = input;
        let start = self.options.start.unwrap_or_else(Instant::now);
        let (timeout, max_total) = (self.options.timeout, self.options.max_total);
        let rounds = Rounds {
            session: self.session.clone(),
            method,
            cancel: self.options.cancel.clone(),
            max_total,
            deadline: after(start, max_total),
        };
        self.options.is_continuation = true;
        let limit = self.session.connection().limits.client.max_rounds;
        let mut pause = PAUSES.0;
        for _ in 0..limit {
            let connection = self.session.connection();
            let lenient = || connection.read_by(method, || read_leniently(&result));
            let mut asked = RawInputRequired::read(&result, lenient).map_err(|wrong| {
                Error::decode(format!("{method}: invalid request for input: {wrong}"))
            })?;
            let state = asked.request_state.take();
            let state = state.as_deref();
            self.check_state(state)?;
            let answers = match asked.inputs() {
                Some(inputs) => {
                    let on_question = self.options.on_question.clone();
                    let answers = answer_all(&rounds.session, method, inputs, on_question);
                    Some(rounds.bounded(answers).await?)
                }
                None => {
                    rounds.bounded(sleep(pause).map(Ok)).await?;
                    pause = (pause * 2).min(PAUSES.1);
                    None
                }
            };
            let params = str::from_utf8(&self.params);
            let params = params.map_err(|_| Error::misuse("the params are not UTF-8"))?;
            let params = with_input_responses(Text::checked(params), answers.as_ref(), state);
            let params = params.map_err(|error| {
                Error::misuse(format!(
                    "{method}: could not serialize the input responses: {error}"
                ))
            })?;
            let left = max_total.saturating_sub(start.elapsed());
            let options = &mut self.options;
            (options.start, options.max_total, options.timeout) = (None, left, timeout.min(left));
            let connection = self.session.connection();
            let answer = connection.call_written(method, &params, options).await?;
            if answer.result_type() != ResultType::InputRequired {
                self.check_type(&answer.json)?;
                return Ok(answer);
            }
            result = answer.json;
        }
        Err(Error::limit(format!(
            "{method}: the server still asks for input after {limit} rounds; raise \
             `ClientLimits::max_rounds` if that is expected"
        )))
    }

    /// Refuses a request state that is too long to be sent back to the server.
    fn check_state(&self, state: Option<&RawValue>) -> Result<()> {
        let limit = self.session.connection().limits.max_request_state;
        // The quotes of the JSON string do not count.
        let length = state.map_or(0, |state| state.get().len().saturating_sub(2));
        if length <= limit {
            return Ok(());
        }
        Err(Error::limit(format!(
            "{}: the server's `requestState` of {length} bytes exceeds the limit of {limit} bytes \
             (`Limits::max_request_state`)",
            self.method
        )))
    }
}

/// Reads a part of a result leniently, and returns what was tolerated.
pub(crate) fn read_leniently<T: DeserializeOwned>(json: &str) -> Option<(T, Vec<Tolerated>)> {
    let read = lenient::read(json).ok()?;
    Some((read.value, read.tolerated))
}

/// The data that the rounds of a call share.
struct Rounds {
    session: ClientSession,
    method: &'static str,
    cancel: Option<CancellationToken>,
    max_total: Duration,
    deadline: Instant,
}

impl Rounds {
    /// Runs the work between two requests, until the call is cancelled or has reached its deadline, or the session ends.
    async fn bounded<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let (method, max_total) = (self.method, self.max_total);
        let ended = self.session.connection().calls().wait_closed();
        select! {
            biased;
            () = cancelled(self.cancel.as_ref()) => Err(cancellation(method)),
            () = ended => Err(Error::closed(format!("the session ended before {method} completed"))),
            done = work => done,
            () = sleep_until(self.deadline) => Err(Error::timeout(format!(
                "{method} timed out: no result within {max_total:?}, including input for the server; \
                 set a longer `max_total` on the call"
            ))),
        }
    }
}

/// Answers the input requests of one round concurrently, with `on_question` or the client's handlers. The first failure ends it.
/// `method` is the method of the call for which the server asks.
pub(crate) async fn answer_all(
    session: &ClientSession,
    method: &str,
    inputs: OrderedMap<RawInputRequest>,
    on_question: Option<OnQuestion>,
) -> Result<InputResponses> {
    let limit = session.connection().limits.max_in_flight;
    if inputs.len() > limit {
        return Err(Error::limit(format!(
            "{method}: the server sent {} input requests at once; the limit is {limit} (`Limits::max_in_flight`)",
            inputs.len()
        )));
    }
    for (key, input) in &inputs {
        check_input(session, method, key, input)?;
    }
    let on_question = on_question.as_ref();
    let answer = |(key, input)| async move {
        match on_question {
            Some(on_question) => answer_by(on_question, key, input).await,
            None => answer(session, key, input).await,
        }
    };
    let answers = try_join_boxed(inputs.iter().map(answer)).await?;
    let keys = inputs.iter().map(|(key, _)| key);
    Ok(keys
        .zip(answers.into_iter().map(InputResponse::from))
        .collect())
}

/// Whether the server may ask for this input.
fn check_input(
    session: &ClientSession,
    method: &str,
    key: &str,
    input: &RawInputRequest,
) -> Result<()> {
    let (declared, revision) = (session.declared(), session.revision());
    let checked = methods::check(
        declared,
        revision,
        &input.method,
        text(input.params.as_deref()),
    );
    checked.map_err(|error| {
        let (wrong, key) = (error.message(), shorten(key));
        Error::unsupported(format!(
            "{method}: unsupported input request {key:?}: {wrong}"
        ))
    })
}

/// A key for an error message: keys can be of any length.
fn shorten(key: &str) -> String {
    key.chars().take(64).collect()
}

fn text(params: Option<&RawValue>) -> Text<'_> {
    params.map_or(Text::EMPTY, Text::from)
}

/// Answers one input request with the function of a call.
async fn answer_by(
    on_question: &OnQuestion,
    key: &str,
    input: &RawInputRequest,
) -> Result<Box<RawValue>> {
    #[derive(serde::Serialize)]
    struct Whole<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    let params = text(input.params.as_deref()).to_raw();
    let whole = Whole {
        method: &input.method,
        params: &params,
    };
    let read = serde_json::to_string(&whole).and_then(|whole| serde_json::from_str(&whole));
    let request: InputRequest = read.map_err(|wrong| {
        let (wrong, key) = (plain_decode_error(&wrong), shorten(key));
        Error::decode(format!("invalid input request {key:?}: {wrong}"))
    })?;
    let answer = on_question(request).await?;
    Ok(Text::from(answer.get()).to_raw())
}

/// Answers one input request, as if it were a request of the server with the key as its id.
async fn answer(
    session: &ClientSession,
    key: &str,
    input: &RawInputRequest,
) -> Result<Box<RawValue>> {
    let params = text(input.params.as_deref());
    let id = RequestId::String(key.into());
    let mut context = session.state().context(session.connection(), Some(id));
    context.meta = RequestParams::of(params).meta.raw().map(Into::into);
    let context = Arc::new(context);
    let cx = RequestContext::new(Arc::clone(&context));
    let features = session.client().features().clone();
    let future =
        methods::begin(&features, (cx, handle), &input.method, params).map_err(|error| {
            let (wrong, key) = (error.message(), shorten(key));
            Error::decode(format!("invalid input request {key:?}: {wrong}"))
        })?;
    let revision = session.revision();
    let body = run_question(context, future).await?;
    let json = body.into_json(revision, None)?;
    let raw = RawValue::from_string(json.into());
    raw.map_err(|error| Error::internal("the response is not JSON").with_source(error))
}

/// The outcome of a call of a single round; see [`Call::manual`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallOutcome<R> {
    /// The result.
    Complete(R),
    /// No result yet: the server asks for input.
    InputRequired(InputRequiredResult),
}

impl<M: MultiRoundTrip> Call<M> {
    /// Makes the call, and leaves the input requests of the server to the caller. To continue, make the call again, with
    /// [`input_responses`](Self::input_responses) and [`request_state`](Self::request_state). Legacy servers ask in separate
    /// requests, which the client's handlers answer, so their results are always complete.
    /// See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
    ///
    /// A server asks only for input that the client has declared: for forms, [`Client::on_elicit`] must be set although it
    /// is not called here.
    ///
    /// ```
    /// use oxmcp::{
    ///     CallOutcome,
    ///     protocol::{ElicitAction, ElicitResult, InputResponse},
    /// };
    /// use serde_json::json;
    ///
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let mut call = session.call_tool("delete", json!({"project": "teahouse"}));
    /// let result = loop {
    ///     let asked = match call.manual().await? {
    ///         CallOutcome::Complete(result) => break result,
    ///         CallOutcome::InputRequired(asked) => asked,
    ///         _ => unreachable!("there is nothing else"),
    ///     };
    ///     call = session.call_tool("delete", json!({"project": "teahouse"}));
    ///     for (key, _question) in asked.input_requests.iter().flatten() {
    ///         let answer = ElicitResult::new(ElicitAction::Decline);
    ///         call = call.input_responses([(key, InputResponse::new(&answer).expect("it is JSON"))]);
    ///     }
    ///     if let Some(state) = asked.request_state {
    ///         call = call.request_state(state);
    ///     }
    /// };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Client::on_elicit`]: crate::Client::on_elicit
    ///
    /// # Errors
    /// Those of the call.
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn manual(self) -> Result<CallOutcome<M::Result>> {
        let driver = self.session.driver_of::<M>();
        let mut request = self.prepare()?;
        let session = request.session.clone();
        let answer = match driver {
            Some(driver) => request.drive(driver, true).await?,
            None => request.send().await?,
        };
        let result = match answer {
            CallAnswer::Complete(result) | CallAnswer::Extended(result) => result,
            CallAnswer::InputRequired(input) => {
                let input = decode(session.connection(), M::NAME, &input.result);
                return input.map(CallOutcome::InputRequired);
            }
        };
        read::<M>(&session, result).map(CallOutcome::Complete)
    }

    /// Answers the input requests of this call with a function, in place of the client's handlers: those in results of a modern
    /// server, and those of a [task](crate::tasks) that the call becomes. Requests of a legacy server belong to no call, and go
    /// to the handlers.
    ///
    /// As for [`manual`](Self::manual), a server asks only for input that the client has declared.
    ///
    /// ```
    /// use oxmcp::{Error, protocol::{ElicitAction, ElicitResult, InputRequest, InputResponse}};
    ///
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let call = session.call_tool("delete", ()).answer_with(|question: InputRequest| async move {
    ///     match question {
    ///         InputRequest::Elicit(_) => Ok(InputResponse::new(&ElicitResult::new(ElicitAction::Decline)).expect("it is JSON")),
    ///         other => Err(Error::method_not_found(other.method())),
    ///     }
    /// });
    /// let result = call.await?;
    /// # let _ = result;
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer_with<F>(
        mut self,
        answer: impl Fn(InputRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<InputResponse>> + Send + 'static,
    {
        self.options.on_question = Some(Arc::new(move |request| Box::pin(answer(request))));
        self
    }

    /// Adds answers to the input requests of the previous round, by their keys.
    pub fn input_responses<K: Into<String>>(
        mut self,
        answers: impl IntoIterator<Item = (K, InputResponse)>,
    ) -> Self {
        let input = self.round_input.get_or_insert_default();
        let all = input.answers.get_or_insert_default();
        for (key, answer) in answers {
            all.insert(key, answer);
        }
        self
    }

    /// Sends back the request state that the server sent in the previous round.
    pub fn request_state(mut self, state: impl Into<String>) -> Self {
        self.round_input.get_or_insert_default().state = Some(state.into());
        self
    }
}
