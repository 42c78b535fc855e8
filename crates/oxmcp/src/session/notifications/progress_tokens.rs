//! The progress tokens of the peer's requests, for reports that do not come from the request's handler.

use std::sync::{Arc, Weak};

use oxmcp_protocol::{ProgressParams, ProgressToken};

use crate::{error::Result, session::task::BoxFuture, sync::Mutex};

/// A request whose sender asks for progress.
pub(crate) trait ProgressRequest: Send + Sync {
    fn token(&self) -> Option<&ProgressToken>;

    /// Whether it was answered or cancelled.
    fn is_over(&self) -> bool;

    /// Reports progress to the sender, on the stream of the request.
    fn report(self: Arc<Self>, params: ProgressParams) -> BoxFuture<Result<()>>;
}

/// The requests with a token: those that are being served, and at most as many that have ended.
#[derive(Debug, Default)]
pub(crate) struct ProgressTokens(Mutex<Vec<Weak<dyn ProgressRequest>>>);

impl ProgressTokens {
    /// Adds a request, and removes those that are over when the list must grow.
    pub(crate) fn add(&self, request: Weak<dyn ProgressRequest>) {
        let mut requests = self.0.lock();
        // Checking all of them each time would cost more than keeping some that have ended.
        if requests.len() == requests.capacity() {
            requests.retain(|it| it.upgrade().is_some_and(|it| !it.is_over()));
            let more = requests.len().max(4);
            requests.reserve_exact(more);
        }
        requests.push(request);
    }

    /// The newest request with this token that is not over.
    pub(crate) fn find(&self, token: &ProgressToken) -> Option<Arc<dyn ProgressRequest>> {
        let requests = self.0.lock();
        let mut requests = requests.iter().rev().filter_map(Weak::upgrade);
        requests.find(|it| it.token() == Some(token) && !it.is_over())
    }
}
