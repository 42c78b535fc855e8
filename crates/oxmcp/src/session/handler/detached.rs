//! Detached work: a handler that continues after its request was answered without it.

use std::{
    any::Any,
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, OnceLock},
};

use oxmcp_protocol::InputRequest;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::{error::Result, sync::Mutex};

/// Receives a handler's progress and questions after its request was answered without it, when they can no longer reach the
/// caller directly. An extension implements it, for [`DetachableCall::detach`](crate::DetachableCall::detach).
pub trait DetachedWork: Any + Send + Sync {
    /// Receives a progress report of the handler. This must not block.
    fn progress(&self, report: DetachedProgress);

    /// Asks a question of the handler, which waits for the result that a client would give. The result is checked against the
    /// question afterwards. The key is the handler's.
    ///
    /// # Errors
    /// The error that the handler gets instead of an answer.
    fn ask(&self, key: String, question: InputRequest) -> DetachedAnswer;

    /// Begins a [step](crate::RequestContext::step) of the handler, which runs when this is done. If the handler runs again and
    /// the step was done before, returns its earlier result; then the step does not run. `is_idempotent` tells whether the step
    /// may run again if it was interrupted. The key is the handler's.
    ///
    /// # Errors
    /// The error that the handler gets; the step does not run then.
    fn step(&self, key: String, is_idempotent: bool) -> DetachedStep {
        let _ = (key, is_idempotent);
        Box::pin(ready(Ok(None)))
    }

    /// Ends a step of the handler, with this result, or with `None` after a failure, so that the step may be retried. The
    /// handler continues when this is done.
    fn step_ended(&self, key: String, result: Option<Box<RawValue>>) -> DetachedStepEnd {
        let _ = (key, result);
        Box::pin(ready(()))
    }
}

/// The future answer to a question of detached work.
pub type DetachedAnswer = Pin<Box<dyn Future<Output = Result<Box<RawValue>>> + Send>>;

/// The future of the earlier result of a step of detached work; `None` if the step must run.
pub type DetachedStep = Pin<Box<dyn Future<Output = Result<Option<Box<RawValue>>>> + Send>>;

/// The future that records the end of a step of detached work.
pub type DetachedStepEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A progress report of detached work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DetachedProgress {
    /// The amount of work that is done.
    pub done: f64,
    /// The total amount of work, if it is known.
    pub total: Option<f64>,
    /// A description of the current work, for people to read.
    pub message: Option<String>,
}

/// The [`DetachedWork`] of a context's handler, once it is detached.
#[derive(Default)]
pub(crate) struct Detached {
    work: OnceLock<Arc<dyn DetachedWork>>,
    /// The state that is kept only for a handler that may be detached.
    possible: Option<Box<Possible>>,
}

#[derive(Default)]
struct Possible {
    /// The newest progress.
    progress: Mutex<Option<DetachedProgress>>,
    /// Notified when the handler asks to be detached.
    requested: Arc<Notify>,
}

impl Detached {
    /// The state of a handler that may be detached.
    #[cfg(feature = "server")]
    pub(crate) fn possible() -> Self {
        Self {
            possible: Some(Box::default()),
            ..Self::default()
        }
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn DetachedWork>> {
        self.work.get()
    }

    /// Whether the handler's progress is wanted, even if its caller has not asked for it.
    pub(crate) fn wants_progress(&self) -> bool {
        self.possible.is_some() || self.work.get().is_some()
    }

    /// Keeps the newest progress of a handler that may be detached.
    pub(crate) fn note_progress(&self, report: impl FnOnce() -> DetachedProgress) {
        if let Some(possible) = &self.possible {
            *possible.progress.lock() = Some(report());
        }
    }

    #[cfg(feature = "server")]
    pub(crate) fn progress(&self) -> Option<DetachedProgress> {
        self.possible.as_ref()?.progress.lock().clone()
    }

    /// Asks whoever runs the handler to detach it.
    #[cfg(feature = "server")]
    pub(crate) fn request(&self) {
        if let Some(possible) = &self.possible {
            possible.requested.notify_one();
        }
    }

    /// Notified when the handler asks to be detached. `None` for a handler that cannot be.
    #[cfg(feature = "server")]
    pub(crate) fn requested(&self) -> Option<Arc<Notify>> {
        let possible = self.possible.as_ref()?;
        Some(Arc::clone(&possible.requested))
    }

    #[cfg(feature = "server")]
    pub(crate) fn set(&self, work: Arc<dyn DetachedWork>) {
        // A call is detached once, since that consumes it.
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
