//! Calls through the cache.

use std::sync::Arc;

use oxmcp_protocol::{ErrorCode, Method, Payload, internal::into_text, method::Cacheable};

use crate::{
    client::{
        cache::{
            key::{CacheLookup, CacheRequest, ResponseKind},
            options::CacheMode,
        },
        requests::{
            call::Call,
            call_answer::CallAnswer,
            call_request::{CallRequest, Params},
            results::read_text,
        },
    },
    error::{Error, Result},
    logged::Logged,
    session::outbound::call::written,
};

impl<M: Cacheable> Call<M> {
    /// Sets how the call uses the client's cache. By default, a fresh response in the cache is used without a request.
    ///
    /// A call with its own metadata, a progress handler, or input for the server always makes a request, and its response is not
    /// cached. So does a call after
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
    let client = session.client();
    let result = fetch(request, lookup, read).await;
    let Err(error) = result else {
        return result;
    };
    let cache = client.response_cache();
    if is_bad_cursor(&error, lookup) {
        cache.remove_pages(lookup);
    }
    let is_current = session.state().cache.is_current(lookup);
    let may_be_stale = mode == CacheMode::Use && is_current && is_failure(&error);
    match may_be_stale.then(|| cache.stale(lookup)).flatten() {
        Some(text) => {
            tracing::warn!(error = %Logged(&error), method, "using a stale cached response");
            read(&text)
        }
        None => Err(error),
    }
}

/// Makes the call, and stores its response.
async fn fetch(mut request: CallRequest, lookup: &Arc<CacheLookup>, read: Read<'_>) -> Result<()> {
    let session = request.session.clone();
    let client = session.client();
    let cacheable = client.response_cache().begin(lookup);
    match request.send().await? {
        CallAnswer::Complete(result) => {
            // A response that cannot be read is not stored.
            read(&result.json)?;
            if session.state().cache.is_current(lookup) {
                cacheable.store(&result.json);
            }
            Ok(())
        }
        CallAnswer::Extended(result) => read(&result.json),
        CallAnswer::InputRequired(input) => {
            // The result depends on the input, and is only for this call.
            drop(cacheable);
            let result = Box::pin(request.answer_rounds(input)).await?;
            read(&result.json)
        }
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
