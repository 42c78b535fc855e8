use std::{
    borrow::Cow,
    fmt,
    future::{Future, IntoFuture},
    mem,
    pin::Pin,
    time::Duration,
};

use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Result, Revision,
    client::{
        CallOutcome, ClientSession,
        cache::{CacheMode, Kind},
        decode::{decode, read},
        features::LONGEST_WAIT,
        manual::Earlier,
        rounds::{Again, unknown_type},
    },
    json::Text,
    protocol::{
        CallToolResult, ContentBlock, Meta, Method, Payload, ProgressParams, ResultType,
        has_result_type,
        method::{self, CallTool},
        peek_result_type,
    },
    session::CallOptions,
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
    pub(super) session: ClientSession,
    pub(super) params: Result<Params<M::Params>>,
    pub(super) options: CallOptions,
    /// What an earlier call that went on by hand has brought.
    pub(super) earlier: Option<Box<Earlier>>,
}

/// What a call carries. It is small, because calls are moved about.
pub(super) enum Params<P> {
    /// What the client may have an answer to already says how that is used; it stands here because it takes no room
    /// here.
    Typed(Box<P>, CacheMode),
    /// A JSON object that fits every revision, without a `_meta`.
    Written(Vec<u8>),
}

impl<P: Payload> Params<P> {
    /// The params as a JSON object, in the revision that they were made to fit.
    pub(super) fn to_json(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Typed(params, _) => {
                let json = serde_json::to_vec(params).map_err(|error| {
                    Error::misuse(format!("the params are no JSON: {error}")).with_source(error)
                });
                json.map(Cow::Owned)
            }
            Self::Written(params) => Ok(Cow::Borrowed(params)),
        }
    }
}

/// A call that can be made.
pub(super) struct Ready<P> {
    pub(super) session: ClientSession,
    pub(super) params: Params<P>,
    pub(super) options: CallOptions,
}

impl<M: Method> Call<M> {
    /// The kind of answers that are kept which the method gives.
    const KEPT: Option<Kind> = Kind::of(M::NAME);

    pub(super) fn new(session: &ClientSession, params: Result<Params<M::Params>>) -> Self {
        Self {
            session: session.clone(),
            params,
            options: CallOptions::within(session.default_timeout().min(LONGEST_WAIT)),
            earlier: None,
        }
    }

    /// How long to wait for the answer. Progress, where it was asked for, starts the clock anew.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout.min(LONGEST_WAIT);
        self.options.max_total = self.options.max_total.max(self.options.timeout);
        self
    }

    /// How long to wait altogether, however much progress is reported. Default: 10 minutes, or the timeout if that is
    /// longer.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.options.max_total = max_total.min(LONGEST_WAIT);
        self
    }

    /// Asks for progress, and is told of it, in order and before the answer.
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

    /// Makes the call, whatever was answered before.
    pub(super) fn send(self) -> impl Future<Output = Result<M::Result>> + Send {
        // What is awaited is moved about, and has room of its own for whatever it is given: it is given what is ready.
        let ready = self.ready();
        async move {
            let mut ready = ready;
            let ready = match ready {
                Ok(ref mut ready) => ready,
                Err(error) => return Err(error),
            };
            let (result, _) = ready.complete::<M>().await?;
            read::<M>(&ready.session, &result)
        }
    }

    /// Makes the call, and answers what the server asks before it gives the result. Returns the result as it is, and
    /// whether it depends on the params alone: the server has asked nothing.
    pub(super) async fn complete(self) -> Result<(Box<str>, bool)> {
        self.ready()?.complete::<M>().await
    }

    /// Makes the call once.
    pub(super) async fn send_once(self) -> Result<CallOutcome<M::Result>> {
        let mut ready = self.ready()?;
        let result = ready.exchange::<M>().await?;
        if !ready.session.revision().is_modern() {
            return read::<M>(&ready.session, &result).map(CallOutcome::Complete);
        }
        match peek_result_type(Text::checked(&result)) {
            ResultType::Complete => read::<M>(&ready.session, &result).map(CallOutcome::Complete),
            ResultType::InputRequired => decode(M::NAME, &result).map(CallOutcome::InputRequired),
            ResultType::Other => {
                check_type::<M>(&ready.session, &result)?;
                read::<M>(&ready.session, &result).map(CallOutcome::Complete)
            }
        }
    }

    /// Makes everything fit the session.
    fn ready(self) -> Result<Ready<M::Params>> {
        let Self {
            session,
            params,
            mut options,
            earlier,
        } = self;
        let mut params = params?;
        let revision = session.revision();
        session.has_method(M::NAME)?;
        if let Params::Typed(params, _) = &mut params {
            if let Some(own) = params.metadata() {
                options.meta.merge(mem::take(own));
            }
            params.fit(revision);
        }
        let is_own = || method::find(method::REQUESTS_TO_SERVER, M::NAME).is_some();
        if matches!(params, Params::Typed(..)) && !is_own() {
            // A user's code must not run under the outbox's lock: it may well log.
            params = Params::Written(params.to_json()?.into_owned());
        }
        if let Some(earlier) = earlier {
            params = Params::Written(earlier.add_to(&params.to_json()?, revision)?);
        }
        check_meta(&options, revision)?;
        session.want_log(&mut options.meta);
        Ok(Ready {
            session,
            params,
            options,
        })
    }
}

impl<P: Payload> Ready<P> {
    /// Makes the call, and answers what the server asks, as [`Call::complete`] does.
    async fn complete<M: Method<Params = P>>(&mut self) -> Result<(Box<str>, bool)> {
        let result = self.exchange::<M>().await?;
        if !self.session.revision().is_modern() {
            return Ok((result, true));
        }
        match peek_result_type(Text::checked(&result)) {
            ResultType::Complete => Ok((result, true)),
            ResultType::InputRequired => {
                // Few calls ever come here, and none needs room for it before.
                let complete = Box::pin(self.go_on::<M>(result)).await?;
                Ok((complete, false))
            }
            ResultType::Other => {
                check_type::<M>(&self.session, &result)?;
                Ok((result, false))
            }
        }
    }

    /// Answers what the server asks in `result`, until it asks no more.
    async fn go_on<M: Method<Params = P>>(&mut self, result: Box<str>) -> Result<Box<str>> {
        let session = &self.session;
        if !method::is_in(method::MULTI_ROUND_TRIP, M::NAME, session.revision()) {
            return Err(Error::decode(format!(
                "{}: the server asks for input, which it must not do here",
                M::NAME
            )));
        }
        let again = Again::after(M::NAME, mem::take(&mut self.options));
        let params = self.params.to_json()?;
        let complete = again.until_complete(session, &params, result).await?;
        check_type::<M>(session, &complete)?;
        Ok(complete)
    }

    /// Makes the call; a tool's once more where the server found that its headers do not fit. The params and the options are
    /// still there afterwards.
    async fn exchange<M: Method<Params = P>>(&mut self) -> Result<Box<str>> {
        let listed = self.session.peer().mirrored().listed();
        match self.exchange_once::<M>().await {
            Err(error)
                if M::NAME == CallTool::NAME
                    && self.session.peer().mirrored().is_mismatch(&error) =>
            {
                Box::pin(self.exchange_anew::<M>(error, listed)).await
            }
            answer => answer,
        }
    }

    /// Makes the call once.
    pub(super) async fn exchange_once<M: Method<Params = P>>(&mut self) -> Result<Box<str>> {
        let connection = self.session.connection();
        self.options.start = Some(Instant::now());
        let answer = match &self.params {
            Params::Typed(params, _) => {
                let options = self.options.lend();
                Box::pin(connection.call(M::NAME, &**params, options)).await
            }
            Params::Written(params) => {
                let options = &mut self.options;
                connection.call_written(M::NAME, params, options).await
            }
        };
        answer.inspect_err(|error| self.session.peer().visits().begin_all(error))
    }
}

/// Refuses a result of a type that is nobody's. One that an extension has added is taken where the client has the extension,
/// and the method reads it.
fn check_type<M: Method>(session: &ClientSession, result: &str) -> Result<()> {
    let result = Text::checked(result);
    if peek_result_type(result) != ResultType::Other {
        return Ok(());
    }
    let features = session.client().features().clone();
    let is_known = |name: &&&str| features.extensions.has_result_type(name);
    let mut known = M::RESULT_TYPES.iter().filter(is_known);
    if known.any(|name| has_result_type(result, name)) {
        return Ok(());
    }
    Err(unknown_type(M::NAME))
}

/// What the session itself puts into the metadata must not stand there twice.
fn check_meta(options: &CallOptions, revision: Revision) -> Result<()> {
    const ENVELOPE: [&str; 3] = [
        Meta::PROTOCOL_VERSION,
        Meta::CLIENT_INFO,
        Meta::CLIENT_CAPABILITIES,
    ];
    if options.meta.is_empty() {
        return Ok(());
    }
    let envelope = ENVELOPE.into_iter().filter(|_| revision.is_modern());
    let progress = options.on_progress.is_some();
    let mut own = envelope.chain(progress.then_some(Meta::PROGRESS_TOKEN));
    match own.find(|key| options.meta.get(key).is_some()) {
        Some(key) => Err(Error::misuse(format!(
            "the session sets {key:?} in the _meta of its requests by itself"
        ))),
        None => Ok(()),
    }
}

impl Call<CallTool> {
    /// Makes the call, and reads the structured content of the result as `T`.
    ///
    /// A server that speaks a revision without structured content says the same as text, which is read instead: as
    /// JSON, or for a type that a string can stand for as it is.
    ///
    /// # Errors
    /// Besides those of the call: [`Error::is_tool_error`], with the tool's own words, where the tool failed; and where
    /// the result is not a `T`.
    ///
    /// # Cancel safety
    /// As for the call itself.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T> {
        let wraps = !self.session.revision().is_modern();
        structured(&self.send().await?, wraps)
    }
}

fn structured<T: DeserializeOwned>(result: &CallToolResult, wraps: bool) -> Result<T> {
    let texts = || result.content.iter().filter_map(ContentBlock::as_text);
    if result.is_error {
        let said = texts().collect::<Vec<_>>().join("\n");
        return Err(Error::tool(if said.is_empty() {
            "the tool failed and did not say why".into()
        } else {
            said
        }));
    }
    let decoded = match (&result.structured_content, texts().next()) {
        (Some(structured), _) => read_json(structured.get(), wraps),
        (None, Some(text)) => read_text(text),
        (None, None) => return Err(Error::decode("the tool returned no structured content")),
    };
    decoded.map_err(|error| {
        Error::decode(format!(
            "the tool's result is not of the type asked for: {error}"
        ))
        .with_source(error)
    })
}

/// Reads text that stands for structured content. It need not be JSON: some tools write a word, and mean a string.
fn read_text<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| {
        T::deserialize(text.into_deserializer()).map_err(|_: serde_json::Error| error)
    })
}

/// Reads structured content. Legacy revisions allow objects only, and there a value of another type stands in `result`: what
/// has no other member is taken for such a value, where the type allows it.
fn read_json<T: DeserializeOwned>(json: &str, wraps: bool) -> serde_json::Result<T> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<T> {
        result: T,
    }
    let unwrapped = || serde_json::from_str(json).map(|Wrapped { result }| result);
    let direct = || serde_json::from_str(json);
    if wraps {
        unwrapped().or_else(|_| direct())
    } else {
        direct().or_else(|error| unwrapped().map_err(|_| error))
    }
}

impl<M: Method> IntoFuture for Call<M> {
    type Output = Result<M::Result>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<M::Result>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        match Self::KEPT {
            Some(kind) => Box::pin(self.cached(kind)),
            None => Box::pin(self.send()),
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
