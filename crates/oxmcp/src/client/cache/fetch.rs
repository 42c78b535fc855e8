//! Calls through the cache.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{ErrorCode, Method, Payload, internal::into_text, method::Cacheable};
use tokio::{
    select,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        cache::{
            key::{CacheLookup, CacheRequest, ResponseKind},
            options::CacheMode,
            response_cache::Waiter,
        },
        requests::{
            call::Call,
            call_answer::{CallAnswer, PendingInput},
            call_request::{CallRequest, Params, cancellation, cancelled},
            results::read_text,
        },
    },
    error::{Error, Result},
    logged::Logged,
    session::{outbound::call::written, task::after},
};

impl<M: Cacheable> Call<M> {
    /// Sets how the call uses the client's cache. By default, a fresh response in the cache is used without a request.
    ///
    /// Concurrent equal calls share one request, if the response stays fresh. A call with its own metadata, a progress handler,
    /// or input for the server always makes a request, and its response is not cached. So does a call after
    /// [`ClientSession::close`](crate::ClientSession::close), and then fails. Middleware sees only requests that are sent.
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
        if let Ok(Params::Typed(_, of_call)) = &mut self.params {
            *of_call = mode;
        }
        self
    }

    /// Makes the call, unless a cached response can be used.
    pub(crate) async fn cached(mut self, kind: ResponseKind) -> Result<M::Result> {
        self.session.state().desired.note_request(kind);
        let Some((mode, lookup)) = self.lookup(kind)? else {
            return self.send().await;
        };
        let session = self.session.clone();
        let fresh = || session.client().response_cache().fresh(&lookup);
        if let Some(text) = (mode == CacheMode::Use).then(fresh).flatten() {
            return read_text::<M>(&session, &text, self.losses.as_ref());
        }
        let (mut result, losses) = (None, self.losses.take());
        let mut read = |text: &str| {
            result = Some(read_text::<M>(&session, text, losses.as_ref())?);
            Ok(())
        };
        let request = self.prepare()?;
        Box::pin(fetch_or_stale(request, mode, &lookup, &mut read)).await?;
        Ok(result.expect("a call that succeeds has read its answer"))
    }

    /// The key of the call in the cache, and the mode of its use. `None` if the response is only for this call.
    fn lookup(&mut self, kind: ResponseKind) -> Result<Option<(CacheMode, Arc<CacheLookup>)>> {
        let (session, options) = (&self.session, &self.options);
        let plain =
            options.meta.is_empty() && options.on_progress.is_none() && self.round_input.is_none();
        let closing = session.connection().is_closing();
        let off = session.client().response_cache().is_off();
        let Ok(Params::Typed(params, mode)) = &mut self.params else {
            return Ok(None);
        };
        let own_meta = params.metadata().is_some_and(|meta| !meta.is_empty());
        if !plain || own_meta || closing || off || *mode == CacheMode::Bypass {
            return Ok(None);
        }
        params.fit(session.revision());
        let text = into_text(written(&**params)?)?.into();
        let state = session.state();
        let request = CacheRequest::new(kind, text, state.request_envelope());
        Ok(request.map(|request| (*mode, state.cache.lookup(request))))
    }
}

/// Reads a response as the result type of its method, and keeps it for the caller. All other code here works on texts,
/// since it would be compiled again for each method.
type Read<'a> = &'a mut (dyn FnMut(&str) -> Result<()> + Send);

/// Makes a call for which there is no fresh response. If the server fails or cannot be reached, a stale response is used.
async fn fetch_or_stale(
    request: CallRequest,
    mode: CacheMode,
    lookup: &Arc<CacheLookup>,
    read: Read<'_>,
) -> Result<()> {
    let (session, method) = (request.session.clone(), request.method);
    let kind = lookup.request.kind;
    let client = session.client();
    let cache = client.response_cache();
    let may_use = mode == CacheMode::Use;
    // A legacy server may ask for input while it reads, and the client's handler may need the same resource to give it.
    let may_wait = kind != ResponseKind::Read || session.revision().is_modern();
    let joins = may_use && may_wait && session.state().cache.may_join(kind);
    let waiter = cache.enter(lookup, joins);
    let result = if joins {
        fetch_together(request, &waiter, kind, read).await
    } else {
        match fetch(request, &waiter, kind, read).await {
            Ok(fetched) => fetched.finish(read).await,
            Err(error) => Err(error),
        }
    };
    let Err(error) = result else {
        return result;
    };
    if is_bad_cursor(&error, lookup) {
        cache.remove_pages(lookup);
    }
    let is_current = session.state().cache.is_current(lookup);
    let may_be_stale = may_use && is_current && is_failure(&error);
    match may_be_stale.then(|| cache.stale(lookup)).flatten() {
        Some(text) => {
            tracing::warn!(error = %Logged(&error), method, "using a stale cached response");
            read(&text)
        }
        None => Err(error),
    }
}

/// Makes the call once, and completes the flight.
async fn fetch(
    mut request: CallRequest,
    waiter: &Waiter<'_>,
    kind: ResponseKind,
    read: Read<'_>,
) -> Result<Fetched> {
    let answer = request.send().await?;
    let is_cacheable = matches!(answer, CallAnswer::Complete(_));
    let result = match answer {
        CallAnswer::Complete(result) | CallAnswer::Extended(result) => result,
        CallAnswer::InputRequired(input) => {
            // Other calls do not wait for a user, who may need the result of such a call.
            waiter.fail();
            request.session.state().cache.record(kind, false);
            return Ok(Fetched::InputRequired(Box::new(request), input));
        }
    };
    // A response that cannot be read is not stored.
    read(&result.json)?;
    let shared = if is_cacheable && request.session.state().cache.is_current(waiter.lookup) {
        waiter.answer(&result.json)
    } else {
        waiter.fail();
        None
    };
    request.session.state().cache.record(kind, shared.is_some());
    Ok(Fetched::Done(shared))
}

/// Makes the call, or waits for an equal one, and takes over if that one gives up.
async fn fetch_together(
    request: CallRequest,
    waiter: &Waiter<'_>,
    kind: ResponseKind,
    read: Read<'_>,
) -> Result<()> {
    let method = request.method;
    let limit = request.options.timeout.min(request.options.max_total);
    let deadline = after(Instant::now(), limit);
    let cancel = request.options.cancel.clone();
    let mut request = Some(request);
    let mut own = None;
    let lead = async {
        let Some(request) = request.take() else {
            return Ok(None);
        };
        match fetch(until(request, deadline), waiter, kind, read).await {
            Ok(fetched) => {
                let shared = fetched.shared();
                own = Some(Ok(fetched));
                Ok(shared)
            }
            // This call has timed out or was cancelled. The others may have more time, and one of them takes over.
            Err(error) if error.is_timeout() || error.is_cancelled() => Err(error),
            Err(error) => {
                waiter.fail();
                own = Some(Err(error));
                Ok(None)
            }
        }
    };
    let shared = select! {
        biased;
        shared = waiter.shared.get_or_try_init(|| lead) => shared?.clone(),
        error = waited_too_long(method, cancel.as_ref(), deadline, limit) => return Err(error),
    };
    match (own, shared, request) {
        (Some(own), _, _) => own?.finish(read).await,
        (None, Some(text), _) => read(&text),
        // The response was only for the call that made the request.
        (None, None, Some(request)) => {
            let fetched = fetch(until(request, deadline), &waiter.unshared(), kind, read).await;
            fetched?.finish(read).await
        }
        (None, None, None) => Err(cancellation(method)),
    }
}

fn until(mut request: CallRequest, deadline: Instant) -> CallRequest {
    request.options.timeout = deadline.saturating_duration_since(Instant::now());
    request
}

/// The outcome of a call that was made once.
enum Fetched {
    /// The result has been read. It holds the text of the result, if that stays fresh for a while.
    Done(Option<Arc<str>>),
    InputRequired(Box<CallRequest>, PendingInput),
}

impl Fetched {
    fn shared(&self) -> Option<Arc<str>> {
        match self {
            Self::Done(shared) => shared.clone(),
            Self::InputRequired(..) => None,
        }
    }

    /// Answers the input requests of the server, if there are any, and reads the final result.
    async fn finish(self, read: Read<'_>) -> Result<()> {
        match self {
            Self::Done(_) => Ok(()),
            Self::InputRequired(mut request, input) => {
                let result = Box::pin(request.answer_rounds(input)).await?;
                read(&result.json)
            }
        }
    }
}

/// Waits until a call that waits for an equal one is cancelled or has reached its deadline.
async fn waited_too_long(
    method: &str,
    cancel: Option<&CancellationToken>,
    deadline: Instant,
    limit: Duration,
) -> Error {
    select! {
        biased;
        () = cancelled(cancel) => cancellation(method),
        () = sleep_until(deadline) => Error::timeout(format!(
            "{method} timed out: no response within {limit:?} to an identical call; \
             set a longer timeout on the call"
        )),
    }
}

/// Whether the server no longer knows the cursor of a page.
fn is_bad_cursor(error: &Error, lookup: &CacheLookup) -> bool {
    error.is_protocol() && error.code() == ErrorCode::INVALID_PARAMS && lookup.request.has_cursor()
}

/// Whether a call has failed because of the server or the connection, and not because of the request.
fn is_failure(error: &Error) -> bool {
    let failed = error.is_protocol() && error.code() == ErrorCode::INTERNAL_ERROR;
    // Over HTTP a server can also be busy, or be down behind a proxy that responds.
    let away = matches!(error.http_status(), Some(408 | 429 | 500..=599));
    failed || away || error.is_network() || error.is_timeout() || error.is_closed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxmcp_protocol::CallToolParams;

    #[test]
    fn cache_mode_does_not_enlarge_tool_call_params() {
        assert_eq!(size_of::<Params<CallToolParams>>(), size_of::<Vec<u8>>());
    }
}
