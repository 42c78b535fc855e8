//! Detached work: what a handler goes on with when its request was answered without it.

use std::{
    any::Any,
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, OnceLock},
};

use oxmcp_protocol::InputRequest;
use serde_json::value::RawValue;

use crate::{error::Result, sync::Mutex};

/// Takes over what a handler says and asks once its request was answered without it: its progress can reach no caller by itself
/// then, nor can its questions. An extension implements it, for [`DetachableCall::detach`](crate::DetachableCall::detach).
pub trait DetachedWork: Any + Send + Sync {
    /// The handler has reported progress. This must not block.
    fn progress(&self, report: DetachedProgress);

    /// The handler asks, and waits for the result that a client would have answered the question with. It is checked against the
    /// question afterwards. The key is the handler's own.
    ///
    /// # Errors
    /// What the handler gets instead of an answer.
    fn ask(&self, key: String, question: InputRequest) -> DetachedAnswer;

    /// The handler begins a [step](crate::RequestContext::step), which runs once this is done. What it came to before is given
    /// where the handler runs again and the step was done: then it does not run. `is_idempotent` says whether it may run again
    /// where nobody knows how far it came. The key is the handler's own.
    ///
    /// # Errors
    /// What the handler gets instead, and the step does not run.
    fn step(&self, key: String, is_idempotent: bool) -> DetachedStep {
        let _ = (key, is_idempotent);
        Box::pin(ready(Ok(None)))
    }

    /// A step of the handler has ended: with this result, or with a failure, after which it may be tried again. The handler goes
    /// on when this is done.
    fn step_ended(&self, key: String, result: Option<Box<RawValue>>) -> DetachedStepEnd {
        let _ = (key, result);
        Box::pin(ready(()))
    }
}

/// The answer to a question of detached work, once it is there.
pub type DetachedAnswer = Pin<Box<dyn Future<Output = Result<Box<RawValue>>> + Send>>;

/// What a step of detached work came to before, once that is known; `None` where it is to run.
pub type DetachedStep = Pin<Box<dyn Future<Output = Result<Option<Box<RawValue>>>> + Send>>;

/// The end of a step of detached work, which is taken note of.
pub type DetachedStepEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A report of progress of detached work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DetachedProgress {
    /// How much is done.
    pub done: f64,
    /// How much there is in all, where that is known.
    pub total: Option<f64>,
    /// What is being done, for people to read.
    pub message: Option<String>,
}

/// The taker of what a context's handler says and asks, once it is detached.
#[derive(Default)]
pub(crate) struct Detached {
    work: OnceLock<Arc<dyn DetachedWork>>,
    /// The newest progress of a handler that may be detached; of no other is it kept.
    progress: Option<Box<Mutex<Option<DetachedProgress>>>>,
}

impl Detached {
    /// That of a handler that may be detached.
    #[cfg(feature = "server")]
    pub(crate) fn possible() -> Self {
        Self {
            progress: Some(Box::default()),
            ..Self::default()
        }
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn DetachedWork>> {
        self.work.get()
    }

    /// Whether the progress of the handler is worth knowing, also where its caller has not asked for it.
    pub(crate) fn wants_progress(&self) -> bool {
        self.progress.is_some() || self.work.get().is_some()
    }

    /// Keeps the newest progress of a handler that may be detached.
    pub(crate) fn note_progress(&self, report: impl FnOnce() -> DetachedProgress) {
        if let Some(progress) = &self.progress {
            *progress.lock() = Some(report());
        }
    }

    #[cfg(feature = "server")]
    pub(crate) fn progress(&self) -> Option<DetachedProgress> {
        self.progress.as_ref()?.lock().clone()
    }

    #[cfg(feature = "server")]
    pub(crate) fn set(&self, work: Arc<dyn DetachedWork>) {
        // A call is detached once: that consumes it.
        let _ = self.work.set(work);
    }
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Detached")
            .field(&self.work.get().is_some())
            .finish()
    }
}
