//! Who asked for progress: for reports that come from elsewhere than the handler of the request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{
    Error, Result,
    protocol::{Notification, ProgressParams, ProgressToken, Project, method},
    session::{Connection, ContextParts, RequestContext},
};

/// The requests of the peer that came with a token: those that are being served, and no more than as many that were.
#[derive(Debug, Default)]
pub(crate) struct ProgressWanted(Mutex<Vec<Weak<ContextParts>>>);

impl ProgressWanted {
    fn note(&self, context: &Arc<ContextParts>) {
        let mut wanted = self.lock();
        // To look at all of them each time would cost more than to keep some that are over.
        if wanted.len() == wanted.capacity() {
            wanted.retain(|it| it.upgrade().is_some_and(|it| !it.is_over()));
            let room = wanted.len().max(4);
            wanted.reserve_exact(room);
        }
        wanted.push(Arc::downgrade(context));
    }

    fn find(&self, token: &ProgressToken) -> Option<Arc<ContextParts>> {
        let wanted = self.lock();
        let mut served = wanted.iter().rev().filter_map(Weak::upgrade);
        served.find(|it| it.progress_token.as_ref() == Some(token) && !it.is_over())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<ContextParts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Remembers who asks for progress.
    pub(crate) fn note_wish(&self, context: &Arc<ContextParts>) {
        if context.progress_token.is_some() {
            self.progress_wanted().note(context);
        }
    }

    /// Reports progress to whoever gave the token, on the stream of that request and before its answer. Where nobody did, or
    /// has the answer, nothing is sent.
    pub(crate) async fn report(&self, mut params: ProgressParams) -> Result<()> {
        if self.is_cut() {
            return Err(Error::closed("the session has ended"));
        }
        let Some(request) = self.progress_wanted().find(&params.progress_token) else {
            tracing::debug!("progress that nobody asked for was not sent");
            return Ok(());
        };
        params.project(request.peer.revision);
        let context = RequestContext::new(request);
        context.tell(method::Progress::NAME, &params).await
    }
}
