//! The options of a call: timeouts, progress, cancellation, metadata.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp_protocol::{InputRequest, InputResponse, Meta, ProgressParams};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    session::task::BoxFuture,
};

/// The default time that a call waits for a response, or for a sign of life.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The default total time that a call waits, however much progress is reported.
const MAX_TOTAL: Duration = Duration::from_secs(600);

/// A callback for progress.
pub(crate) type OnProgress = Box<dyn FnMut(ProgressParams) + Send>;

/// A function that answers the questions of a server during one call.
pub(crate) type OnQuestion =
    Arc<dyn Fn(InputRequest) -> BoxFuture<Result<InputResponse>> + Send + Sync>;

/// A callback that receives the ID of a call before the call is sent.
pub(crate) type OnBegin = Box<dyn FnOnce(i64) + Send>;

/// The options of a call.
pub(crate) struct CallOptions {
    /// The start of the call's deadline. `None` if it starts when the call is sent.
    pub(crate) start: Option<Instant>,
    pub(crate) timeout: Duration,
    pub(crate) max_total: Duration,
    pub(crate) on_begin: Option<OnBegin>,
    pub(crate) on_progress: Option<OnProgress>,
    /// Answers the questions in results, in place of the client's handlers.
    pub(crate) on_question: Option<OnQuestion>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) meta: Meta,
    /// Whether the call continues an earlier one: then it can be made even while the session is closing.
    pub(crate) is_continuation: bool,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self::within(TIMEOUT)
    }
}

impl CallOptions {
    /// The default options with another timeout.
    #[inline]
    pub(crate) fn within(timeout: Duration) -> Self {
        Self {
            start: None,
            timeout,
            max_total: MAX_TOTAL.max(timeout),
            on_begin: None,
            on_progress: None,
            on_question: None,
            cancel: None,
            meta: Meta::default(),
            is_continuation: false,
        }
    }

    /// Whether the call was cancelled before it was made.
    pub(crate) fn is_cancelled(&self) -> bool {
        let cancel = self.cancel.as_ref();
        cancel.is_some_and(CancellationToken::is_cancelled)
    }

    /// Rejects metadata that callers must not set: keys that the session itself sets must not occur twice, and other keys must
    /// follow the rules, unless an extension has declared them.
    pub(crate) fn check_meta(
        &self,
        is_modern: bool,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<()> {
        const ENVELOPE: [&str; 3] = [
            Meta::PROTOCOL_VERSION,
            Meta::CLIENT_INFO,
            Meta::CLIENT_CAPABILITIES,
        ];
        if self.meta.is_empty() {
            return Ok(());
        }
        let envelope = ENVELOPE.into_iter().filter(|_| is_modern);
        let progress = self.on_progress.is_some();
        let mut own = envelope.chain(progress.then_some(Meta::PROGRESS_TOKEN));
        match own.find(|key| self.meta.get(key).is_some()) {
            Some(key) => Err(Error::misuse(format!(
                "cannot set the `_meta` key {key:?}: the session sets it"
            ))),
            None => self.meta.check_keys(is_known).map_err(Error::misuse),
        }
    }

    /// Returns the same options for middleware, which consumes them: both share the callback for progress. The deadline starts
    /// when the call is sent, which middleware may delay.
    pub(crate) fn lend(&mut self) -> Self {
        let shared = self.on_progress.take().map(|it| Arc::new(Mutex::new(it)));
        self.on_progress = shared.clone().map(shared_progress);
        Self {
            start: None,
            timeout: self.timeout,
            max_total: self.max_total,
            on_begin: self.on_begin.take(),
            on_progress: shared.map(shared_progress),
            // Questions are answered between the requests.
            on_question: None,
            cancel: self.cancel.clone(),
            meta: self.meta.clone(),
            is_continuation: self.is_continuation,
        }
    }
}

/// A callback for the progress of several requests, one after another.
pub(crate) fn shared_progress(shared: Arc<Mutex<OnProgress>>) -> OnProgress {
    Box::new(move |update| {
        // A callback that has panicked is not called again.
        if let Ok(mut on_progress) = shared.lock() {
            on_progress(update);
        }
    })
}

opaque_debug!(CallOptions, |it| { timeout: it.timeout, max_total: it.max_total });
