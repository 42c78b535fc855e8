//! Calls whose answers can be kept.

use std::{sync::Arc, time::Duration};

use tokio::{
    select,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        cache::{
            key::{Ask, Kind, Question},
            options::CacheMode,
            shared::Waiting,
        },
        requests::{
            call::{Call, Draft},
            exchange::{Begun, Params, Ready},
            multi_round_trip::Asks,
            results::read_text,
        },
    },
    error::{Error, Result},
    json::Logged,
    jsonrpc::ErrorCode,
    protocol::{Method, Payload, method::Cacheable},
    session::after,
};

impl<M: Cacheable> Call<M> {
    /// How the call uses what the client has kept of earlier answers. By default an answer that is still fresh is taken
    /// without asking the server.
    ///
    /// Calls that ask the same at once share one request, if the answer is one that stays fresh. A call with metadata of
    /// its own, one that wants to be told of progress, and one that carries answers to the server's questions is always
    /// made, and nothing of it is kept; so it is after [`ClientSession::close`](crate::ClientSession::close), and then
    /// fails. Middleware sees only what is sent.
    ///
    /// ```
    /// use oxmcp::CacheMode;
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let now = session.read_resource("file:///todo.md").cache(CacheMode::Refresh).await?;
    /// # let _ = now;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    pub fn cache(self, mode: CacheMode) -> Self {
        self.in_mode(mode)
    }
}

impl<M: Method> Call<M> {
    pub(crate) fn in_mode(mut self, mode: CacheMode) -> Self {
        if let Params::Typed(_, of_call) = &mut self.draft().ready.params {
            *of_call = mode;
        }
        self
    }

    /// Makes the call, unless there is an answer already.
    pub(crate) async fn cached(mut self, kind: Kind) -> Result<M::Result> {
        let (mode, ask) = match self.question(kind)? {
            Some((CacheMode::Bypass, _)) | None => return self.send().await,
            Some(asked) => asked,
        };
        let session = self.session().clone();
        let client = session.client();
        let cache = client.response_cache();
        let used = mode == CacheMode::Use;
        if let Some(text) = used.then(|| cache.fresh(&ask)).flatten() {
            return read_text::<M>(&session, &text);
        }
        // A legacy server asks while it reads, and what is asked may lead to the same question.
        let may_join = kind != Kind::Read || session.revision().is_modern();
        let joins = used && may_join && session.peer().seat().joins(kind);
        let waiting = cache.enter(&ask, joins);
        let result = if joins {
            self.fetch_together(&waiting, &ask).await
        } else {
            match self.fetch(&waiting, kind).await {
                Ok(fetched) => fetched.finish().await,
                Err(error) => Err(error),
            }
        };
        let Err(error) = result else {
            return result;
        };
        if is_bad_cursor(&error, &ask) {
            cache.forget_pages(&ask);
        }
        let stale = used && is_failure(&error);
        match stale.then(|| cache.stale(&ask)).flatten() {
            Some(text) => {
                tracing::warn!(error = %Logged(&error), method = M::NAME, "an answer that is no longer fresh is used");
                read_text::<M>(&session, &text)
            }
            None => Err(error),
        }
    }

    /// What the call asks, and how it uses what is kept. `None` where the answer is for nobody but this call.
    fn question(&mut self, kind: Kind) -> Result<Option<(CacheMode, Arc<Ask>)>> {
        let Draft { ready, earlier, .. } = self.draft();
        let Ready {
            session,
            params,
            options,
        } = ready;
        let revision = session.revision();
        let plain = options.meta.is_empty() && options.on_progress.is_none() && earlier.is_none();
        let closing = session.connection().is_closing();
        let off = session.client().response_cache().is_off();
        let Params::Typed(params, mode) = params else {
            return Ok(None);
        };
        let own_meta = params.metadata().is_some_and(|meta| !meta.is_empty());
        if !plain || own_meta || closing || off || *mode == CacheMode::Bypass {
            return Ok(None);
        }
        params.fit(revision);
        let text = serde_json::to_string(params).map_err(|error| {
            Error::misuse(format!("the params are no JSON: {error}")).with_source(error)
        })?;
        let peer = session.peer();
        let question = Question::new(kind, text, peer.terms());
        Ok(question.map(|question| (*mode, peer.seat().ask(question))))
    }

    /// Makes the call once, and hands in the answer.
    async fn fetch(self, waiting: &Waiting<'_>, kind: Kind) -> Result<Fetched<M>> {
        let session = self.session().clone();
        let seat = session.peer().seat();
        let (text, depends_on_params_alone) = match self.begin().await? {
            Begun::Complete(text) => (text, true),
            Begun::Extended(text) => (text, false),
            Begun::Asks(call, asked) => {
                // Nobody waits while a person is asked, for he may need what the others want.
                waiting.fail();
                seat.note(kind, false);
                return Ok(Fetched::Asks(call, asked));
            }
        };
        // What cannot be read is not kept.
        let result = read_text::<M>(&session, &text)?;
        let shared = if depends_on_params_alone {
            waiting.answer(&text)
        } else {
            waiting.fail();
            None
        };
        seat.note(kind, shared.is_some());
        Ok(Fetched::Done(result, shared))
    }

    /// Makes the call, or waits for who asks the same. Who waits takes over from one who gives up.
    async fn fetch_together(mut self, waiting: &Waiting<'_>, ask: &Arc<Ask>) -> Result<M::Result> {
        let kind = ask.question.kind;
        let Ready {
            session, options, ..
        } = &self.draft().ready;
        let limit = options.timeout.min(options.max_total);
        let deadline = after(Instant::now(), limit);
        let cancel = options.cancel.clone();
        let session = session.clone();
        let mut call = Some(self);
        let mut own = None;
        let lead = async {
            let Some(mut call) = call.take() else {
                return Ok(None);
            };
            call.draft().ready.options.timeout = deadline.saturating_duration_since(Instant::now());
            match call.fetch(waiting, kind).await {
                Ok(fetched) => {
                    let shared = fetched.shared();
                    own = Some(Ok(fetched));
                    Ok(shared)
                }
                // That was this caller's patience. The others' may last longer.
                Err(error) if error.is_timeout() || error.is_cancelled() => Err(error),
                Err(error) => {
                    waiting.fail();
                    own = Some(Err(error));
                    Ok(None)
                }
            }
        };
        let shared = select! {
            biased;
            shared = waiting.shared.get_or_try_init(|| lead) => shared?.clone(),
            error = impatience(M::NAME, cancel, deadline, limit) => return Err(error),
        };
        match (own, shared, call) {
            (Some(own), _, _) => own?.finish().await,
            (None, Some(text), _) => read_text::<M>(&session, &text),
            // The answer was for who asked alone.
            (None, None, Some(mut call)) => {
                call.draft().ready.options.timeout =
                    deadline.saturating_duration_since(Instant::now());
                let waiting = waiting.again();
                call.fetch(&waiting, kind).await?.finish().await
            }
            (None, None, None) => Err(Error::cancelled(format!(
                "the call of {} was cancelled",
                M::NAME
            ))),
        }
    }
}

/// What a call gives, made once.
enum Fetched<M: Method> {
    /// The result, and its text where it stays fresh for a while.
    Done(M::Result, Option<Arc<str>>),
    /// The server asks for something first.
    Asks(Box<Ready<M::Params>>, Asks),
}

impl<M: Method> Fetched<M> {
    fn shared(&self) -> Option<Arc<str>> {
        match self {
            Self::Done(_, shared) => shared.clone(),
            Self::Asks(..) => None,
        }
    }

    /// Answers what the server asks, if it does.
    async fn finish(self) -> Result<M::Result> {
        match self {
            Self::Done(result, _) => Ok(result),
            Self::Asks(mut call, asked) => {
                let result = Box::pin(call.go_on::<M>(asked)).await?;
                read_text::<M>(&call.session, &result)
            }
        }
    }
}

/// Waits until a caller wants to wait no longer for who asks the same.
async fn impatience(
    method: &str,
    cancel: Option<CancellationToken>,
    deadline: Instant,
    limit: Duration,
) -> Error {
    let cancelled = async {
        match cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    select! {
        biased;
        () = cancelled => Error::cancelled(format!("the call of {method} was cancelled")),
        () = sleep_until(deadline) => Error::timeout(format!(
            "no answer to {method} within {limit:?}, to a call that asked the same before \
             (set a longer timeout on the call where it may take longer)"
        )),
    }
}

/// Whether the server does not know any more where a page begins.
fn is_bad_cursor(error: &Error, ask: &Ask) -> bool {
    error.is_protocol() && error.code() == ErrorCode::INVALID_PARAMS && ask.question.has_cursor()
}

/// Whether asking failed by no fault of the question.
fn is_failure(error: &Error) -> bool {
    let failed = error.is_protocol() && error.code() == ErrorCode::INTERNAL_ERROR;
    // Over HTTP a server can also be busy, or be down behind something that is not.
    let away = matches!(error.http_status(), Some(408 | 429 | 500..=599));
    failed || away || error.is_network() || error.is_timeout() || error.is_closed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CallToolParams;

    #[test]
    fn how_a_cache_is_used_takes_no_room_in_calls_of_tools() {
        assert_eq!(size_of::<Params<CallToolParams>>(), size_of::<Vec<u8>>());
    }
}
