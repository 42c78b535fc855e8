use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    answer::{check, wrong},
    live::fit,
};
use crate::{
    Error, Result,
    protocol::{InputRequest, Method},
    server::ServerSession,
    session::CallOptions,
};

/// A request to a client that is about to be made. Await it for the result, or first say how it is to be made.
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
/// What the client answered as an error, and whatever keeps the answer from coming: see [`Error`]'s questions. Where the
/// client cannot be asked, nothing is sent: [`Error::is_unsupported`].
///
/// # Cancel safety
/// Dropping the future cancels the request on the wire.
#[must_use = "a request is made when it is awaited"]
pub struct SessionCall<M: Method> {
    session: ServerSession,
    params: Result<Box<M::Params>>,
    /// What the answer is held against, where it answers a question.
    question: Option<InputRequest>,
    options: CallOptions,
}

impl<M: Method> SessionCall<M> {
    pub(in crate::server) fn new(session: &ServerSession, params: Result<Box<M::Params>>) -> Self {
        let options = session.server().features().ask.options();
        Self {
            session: session.clone(),
            params,
            question: None,
            options,
        }
    }

    /// The same with the question that it puts.
    pub(super) fn question(mut self, question: InputRequest) -> Self {
        self.question = Some(question);
        self
    }

    /// How long to wait for the answer. Default: [`Server::ask_timeout`](crate::Server::ask_timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self.options.max_total = timeout;
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
        let mut params = params?;
        let Some(revision) = session.revision() else {
            return Err(Error::unsupported(format!(
                "{} needs a client that opened a session with initialize; modern clients take no requests",
                M::NAME
            )));
        };
        options.meta = fit(&mut *params, revision);
        let connection = session.connection();
        let answer = connection.call(M::NAME, params, options).await?;
        let wrong = |error: serde_json::Error| {
            wrong(None, M::NAME, &error.to_string(), revision).with_source(error)
        };
        let Some(question) = question else {
            return serde_json::from_str(&answer).map_err(wrong);
        };
        let answer = serde_json::from_str(&answer).map_err(wrong)?;
        let answer = check(None, &question, answer, revision)?;
        serde_json::from_str(answer.get()).map_err(wrong)
    }
}

impl<M: Method> IntoFuture for SessionCall<M> {
    type Output = Result<M::Result>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<M::Result>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl<M: Method> fmt::Debug for SessionCall<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCall")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
