use std::{
    fmt,
    future::{Future, IntoFuture},
    mem,
    pin::Pin,
    time::Duration,
};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        cache::key::Kind,
        features::LONGEST_WAIT,
        requests::{
            exchange::{Begun, Given, Params, Ready, check_type},
            manual_rounds::{CallOutcome, Earlier},
            results::{decode, read},
            sending::Sending,
        },
        session::ClientSession,
    },
    error::{Error, Result},
    protocol::{Method, Payload, ProgressParams, ResultType, method},
    session::{CallOptions, GoingOn},
};

/// A call that is about to be made. Await it for the result, or first say how it is to be made.
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
/// Dropping it before does nothing. What takes futures only, as [`tokio::spawn`] does, takes its
/// [`into_future`](IntoFuture::into_future), which borrows nothing.
///
/// Where a modern server asks the user, the model or for the roots before it gives the result, the client's handlers
/// answer, and the call goes on by itself, no more than [`Limits::max_rounds`](crate::Limits::max_rounds) times. While
/// they do the [timeout](Self::timeout) stands still; [`max_total`](Self::max_total) does not. [`manual`](Self::manual) leaves
/// the answers to you.
///
/// # Errors
/// What the server answered as an error, what a handler that answers failed with, and whatever keeps the answer from
/// coming: see [`Error`]'s questions.
///
/// # Cancel safety
/// Dropping the future cancels the call: the server is told with `notifications/cancelled`, and its handler stops.
#[must_use = "a call is made when it is awaited"]
pub struct Call<M: Method> {
    /// It is awaited where it is.
    sending: Box<Sending<M>>,
}

/// What is known of a call before it is made.
pub(crate) struct Draft<P> {
    /// What is made of it, once everything [fits the session](Self::prepare).
    pub(crate) ready: Ready<P>,
    /// Why it cannot be made.
    pub(crate) problem: Option<Error>,
    /// What an earlier call that went on by hand has brought.
    pub(crate) earlier: Option<Box<Earlier>>,
}

impl<M: Method> Call<M> {
    /// The kind of answers that are kept which the method gives.
    const KEPT: Option<Kind> = Kind::of(M::NAME);

    pub(crate) fn new(session: &ClientSession, params: Result<Params<M::Params>>) -> Self {
        let (params, problem) = match params {
            Ok(params) => (params, None),
            Err(problem) => (Params::NONE, Some(problem)),
        };
        let ready = Ready {
            session: session.clone(),
            params,
            options: CallOptions::within(session.default_timeout()),
        };
        let draft = Draft {
            ready,
            problem,
            earlier: None,
        };
        Self {
            sending: Box::new(Sending::new(draft)),
        }
    }

    pub(crate) fn session(&self) -> &ClientSession {
        &self.sending.draft.ready.session
    }

    pub(crate) fn draft(&mut self) -> &mut Draft<M::Params> {
        &mut self.sending.draft
    }

    fn options(&mut self) -> &mut CallOptions {
        &mut self.draft().ready.options
    }

    /// How long to wait for the answer. Progress, where it was asked for, starts the clock anew.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let options = self.options();
        options.timeout = timeout.min(LONGEST_WAIT);
        options.max_total = options.max_total.max(options.timeout);
        self
    }

    /// How long to wait altogether, however much progress is reported. Default: 10 minutes, or the timeout if that is
    /// longer.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.options().max_total = max_total.min(LONGEST_WAIT);
        self
    }

    /// Asks for progress, and is told of it, in order and before the answer.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    pub fn on_progress(mut self, handler: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.options().on_progress = Some(Box::new(handler));
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
        self.options().cancel = Some(token);
        self
    }

    /// Sets a key of the request's [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options().meta.insert(key, value);
        self
    }

    /// Makes the call, whatever was answered before.
    pub(crate) fn send(self) -> Pin<Box<Sending<M>>> {
        Box::into_pin(self.sending)
    }

    /// Makes the call once, and returns what is needed to go on where the server asks for something first.
    pub(crate) async fn begin(self) -> Result<Begun<M::Params>> {
        let mut ready = self.ready()?;
        Ok(match ready.begin::<M>().await? {
            Given::Complete(result) => Begun::Complete(result.json),
            Given::Extended(result) => Begun::Extended(result),
            Given::Asks(asks) => Begun::Asks(Box::new(ready), asks),
        })
    }

    /// Makes the call once.
    pub(crate) async fn send_once(self) -> Result<CallOutcome<M::Result>> {
        let mut ready = self.ready()?;
        let result = ready.exchange::<M>().await?;
        if !ready.session.revision().is_modern() {
            return read::<M>(&ready.session, result).map(CallOutcome::Complete);
        }
        match result.result_type() {
            ResultType::Complete => read::<M>(&ready.session, result).map(CallOutcome::Complete),
            ResultType::InputRequired => {
                // What the session waits for if it is being closed goes no further here.
                drop(GoingOn::new(ready.session.connection()));
                decode(M::NAME, &result.json).map(CallOutcome::InputRequired)
            }
            ResultType::Other => {
                check_type::<M>(&ready.session, &result.json)?;
                read::<M>(&ready.session, result).map(CallOutcome::Complete)
            }
        }
    }

    /// The call, once everything fits the session.
    fn ready(mut self) -> Result<Ready<M::Params>> {
        let draft = self.draft();
        draft.prepare::<M>()?;
        Ok(draft.ready.take())
    }
}

impl<P: Payload> Draft<P> {
    /// Makes everything fit the session.
    pub(crate) fn prepare<M: Method<Params = P>>(&mut self) -> Result<()> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let Ready {
            session,
            params,
            options,
        } = &mut self.ready;
        let revision = session.revision();
        session.has_method(M::NAME)?;
        if let Params::Typed(params, _) = params {
            if let Some(own) = params.metadata() {
                options.meta.merge(mem::take(own));
            }
            params.fit(revision);
        }
        let is_own = || method::find(method::REQUESTS_TO_SERVER, M::NAME).is_some();
        if matches!(params, Params::Typed(..)) && !is_own() {
            // A user's code must not run under the outbox's lock: it may well log.
            *params = Params::Written(params.to_json()?.into_owned());
        }
        if let Some(earlier) = self.earlier.take() {
            *params = Params::Written(earlier.add_to(&params.to_json()?, revision)?);
        }
        options.check_meta(revision.is_modern())?;
        session.want_log(&mut options.meta);
        Ok(())
    }
}

impl<M: Method> IntoFuture for Call<M> {
    type Output = Result<M::Result>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<M::Result>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        match Self::KEPT {
            Some(kind) => Box::pin(self.cached(kind)),
            None => self.send(),
        }
    }
}

impl<M: Method> fmt::Debug for Call<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
