//! The builder of a call, which is also its future.

use std::{
    future::{Future, IntoFuture, ready},
    mem,
    pin::Pin,
    time::Duration,
};

use oxmcp_protocol::{CallToolResult, Method, Payload, ProgressParams, method::CallTool};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        cache::key::ResponseKind,
        features::LONGEST_WAIT,
        requests::{
            call_answer::CallAnswer,
            call_request::{CallRequest, Params, RoundInput},
            left_out::PageLosses,
            results::{read_noting, structured},
        },
        session::ClientSession,
    },
    debug::opaque_debug,
    error::{Error, Result},
    session::{
        outbound::{call::written, options::CallOptions},
        task::BoxFuture,
    },
};

/// A call to a server. Await it for the result, or set its options first.
///
/// ```
/// use std::time::Duration;
/// # use oxmcp::ClientSession;
/// # use serde_json::json;
/// # async fn run(session: ClientSession) -> oxmcp::Result<()> {
/// let result = session
///     .call_tool("build", json!({"target": "all"}))
///     .timeout(Duration::from_secs(30))
///     .on_progress(|p| eprintln!("{p}"))
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// Dropping it before it is awaited does nothing. For functions that accept only futures, such as [`tokio::spawn`], use its
/// [`into_future`](IntoFuture::into_future), which borrows nothing.
///
/// If a modern server asks for input (elicitation, sampling or roots) before it returns the result, the client's handlers
/// answer, and the call continues by itself, at most [`ClientLimits::max_rounds`](crate::ClientLimits::max_rounds) times. While
/// the handlers run, the [timeout](Self::timeout) is paused; [`max_total`](Self::max_total) is not.
/// [`manual`](Self::manual) leaves the answers to the caller.
///
/// # Errors
/// The error response of the server, the error of a handler that answers input requests, or any failure that prevents a
/// response: see the methods of [`Error`].
///
/// # Cancel safety
/// Dropping the future cancels the call: the server receives `notifications/cancelled`, and its handler stops.
#[must_use = "a call is made when it is awaited"]
pub struct Call<M: Method> {
    pub(crate) session: ClientSession,
    /// The params, or the error that prevents the call.
    pub(crate) params: Result<Params<M::Params>>,
    pub(crate) options: CallOptions,
    /// The caller's answers to the input requests of an earlier round.
    pub(crate) round_input: Option<Box<RoundInput>>,
    /// The record of what is left out of the result.
    pub(crate) losses: Option<PageLosses>,
}

impl<M: Method> Call<M> {
    pub(crate) fn new(session: &ClientSession, params: Result<Params<M::Params>>) -> Self {
        Self {
            session: session.clone(),
            params,
            options: CallOptions::within(session.state().client.features().timeout),
            round_input: None,
            losses: None,
        }
    }

    /// Records what is left out of the result.
    pub(crate) fn noting(mut self, losses: PageLosses) -> Self {
        self.losses = Some(losses);
        self
    }

    /// Sets the longest time to wait for the response. Progress restarts it, if it was requested.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let options = &mut self.options;
        options.timeout = timeout.min(LONGEST_WAIT);
        options.max_total = options.max_total.max(options.timeout);
        self
    }

    /// Sets the longest time to wait in total, however much progress is reported. Default: 10 minutes, or the timeout if
    /// that is longer.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.options.max_total = max_total.min(LONGEST_WAIT);
        self
    }

    /// Requests progress, and sets the handler that is called with it, in order and before the call returns.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    pub fn on_progress(mut self, handler: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.options.on_progress = Some(Box::new(handler));
        self
    }

    /// Cancels the call when the token is cancelled.
    ///
    /// ```
    /// use oxmcp::CancellationToken;
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let stop = CancellationToken::new();
    /// let call = tokio::spawn(session.call_tool("build", ()).cancel_with(stop.clone()).into_future());
    /// stop.cancel();
    /// assert!(call.await.expect("it does not panic").unwrap_err().is_cancelled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.options.cancel = Some(token);
        self
    }

    /// Sets a key of the request's [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.meta.insert(key, value);
        self
    }

    /// Makes the call, bypassing the cache.
    ///
    /// The request is prepared before the future is made, so that the future holds nothing else: a future of more than a
    /// kilobyte would cost each call a slow allocation.
    pub(crate) fn send(mut self) -> BoxFuture<Result<M::Result>> {
        let losses = self.losses.take();
        let driver = self.session.driver_of::<M>();
        match (self.prepare(), driver) {
            (Ok(request), Some(driver)) => Box::pin(async move {
                let session = request.session.clone();
                match request.drive(driver, false).await? {
                    CallAnswer::Complete(result) | CallAnswer::Extended(result) => {
                        read_noting::<M>(&session, result, losses.as_ref())
                    }
                    CallAnswer::InputRequired(_) => {
                        Err(Error::internal("unexpected request for input"))
                    }
                }
            }),
            (Ok(mut request), None) => Box::pin(async move {
                let result = match request.send().await? {
                    CallAnswer::Complete(result) | CallAnswer::Extended(result) => result,
                    CallAnswer::InputRequired(input) => {
                        Box::pin(request.answer_rounds(input)).await?
                    }
                };
                let requested = &request.session.state().requested;
                requested.note_granted::<M>(&request.params);
                read_noting::<M>(&request.session, result, losses.as_ref())
            }),
            (Err(error), _) => Box::pin(ready(Err(error))),
        }
    }

    /// Fits the params and options to the session.
    pub(crate) fn prepare(self) -> Result<CallRequest> {
        let Self {
            session,
            params,
            mut options,
            round_input,
            ..
        } = self;
        let params = params?;
        session.has_method(M::NAME)?;
        let revision = session.revision();
        let driver = session.driver_of::<M>();
        let result_types = driver.map_or(M::RESULT_TYPES, |it| it.result_types);
        let mut params = match params {
            Params::Typed(mut params, _) => {
                if let Some(own) = params.metadata() {
                    options.meta.merge(mem::take(own));
                }
                params.fit(revision);
                written(&*params)?
            }
            Params::Written(params) => params,
        };
        if let Some(input) = round_input {
            params = input.add_to(&params, revision)?;
        }
        session.connection().check_meta(&options)?;
        session.add_log_level(&mut options.meta);
        Ok(CallRequest {
            session,
            method: M::NAME,
            result_types,
            params,
            options,
        })
    }
}

impl<M: Method> IntoFuture for Call<M> {
    type Output = Result<M::Result>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<M::Result>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        match ResponseKind::of(M::NAME) {
            Some(kind) => Box::pin(self.cached(kind)),
            None => self.send(),
        }
    }
}

impl Call<CallTool> {
    /// Makes the call, and reads the structured content of the result as `T`.
    ///
    /// If the result has no structured content, as in revisions without it, its text is read instead: as JSON, or as it is for a
    /// type that can be read from a string.
    ///
    /// In revisions before 2026-07-28 structured content is an object, and servers wrap values of other types:
    /// `{"result": [1, 2]}`. A server of this SDK marks this in the `_meta` of the result
    /// ([`Meta::WRAPPED`](oxmcp_protocol::Meta::WRAPPED)), and the value is unwrapped, so that the same value is returned
    /// in every revision. From other servers, an object whose only member is `result` is unwrapped if it cannot be read as
    /// a `T` otherwise.
    ///
    /// # Errors
    /// Besides those of the call: [`Error::is_tool_error`](crate::error::Error::is_tool_error), with the tool's own
    /// message, if the tool failed; and an error if the result is not a `T`, or does not match the output schema that the
    /// server has listed for the tool; see [`validated`](Self::validated).
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T> {
        structured(&self.validated().await?)
    }

    /// Makes the call, and validates the structured content of the result against the output schema that the server last listed
    /// for the tool in this session, as [`structured`](Self::structured) does. If the tool was not listed, failed, or has a
    /// schema that cannot be used, the result is returned as it is. If the call itself is awaited, its result is never
    /// validated.
    ///
    /// # Errors
    /// Besides those of the call: an error if the result does not match the schema.
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn validated(self) -> Result<CallToolResult> {
        let schemas = &self.session.state().output_schemas;
        let validates = self.session.client().features().validate_results;
        let tool = match &self.params {
            Ok(params) if validates && !schemas.is_empty() => params.tool_name(),
            _ => None,
        };
        let schema = tool.and_then(|tool| Some((schemas.get(&tool)?, tool)));
        let result = self.send().await?;
        if let Some((schema, tool)) = schema {
            schema.check(&tool, &result)?;
        }
        Ok(result)
    }
}

opaque_debug!([M: Method] Call<M>, |_it| { method: M::NAME });
