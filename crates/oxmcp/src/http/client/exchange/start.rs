//! How the exchange of a message begins, and what comes before it.

use std::{sync::Arc, time::Duration};

use futures_util::future::{AbortHandle, Abortable};
use tokio::{sync::oneshot, time::timeout};

use crate::http::client::exchange::engine::Event;
use crate::http::client::exchange::message::Outgoing;
use crate::http::client::exchange::shared::{Link, Running};
use crate::{json::Logged, jsonrpc::RequestId};

/// How long a server may take to accept what it does not answer.
const ACCEPTANCE: Duration = Duration::from_secs(60);
/// How long the first call waits for the stream on which the server says what belongs to no request: what it says
/// meanwhile would be lost.
const LISTENING: Duration = Duration::from_millis(250);

impl Link {
    /// Begins the exchange of a message. Waits only where too much is on its way.
    pub(crate) async fn begin(self: &Arc<Self>, message: Outgoing) {
        if let Some(id) = message.cancels() {
            let cancelled = self.state().calls.remove(&id);
            if let Some(running) = &cancelled {
                running.abort.abort();
            }
            let modern = cancelled.map_or_else(|| !self.is_legacy(), |running| running.modern);
            if modern {
                // The end of the exchange says it.
                return;
            }
        }
        match &message.id {
            Some(id) => self.begin_call(id.clone(), message),
            None => self.begin_telling(message).await,
        }
    }

    fn begin_call(self: &Arc<Self>, id: RequestId, message: Outgoing) {
        let link = Arc::clone(self);
        let message_revision = message.modern();
        let modern = message_revision.is_some();
        let name = id.clone();
        let call = async move {
            let outcome = link.exchange(&message).await;
            link.state().calls.remove(&id);
            if let Err(error) = outcome {
                link.inlet.tell(Event::Failed(id, error)).await;
            }
        };
        let (abort, registration) = AbortHandle::new_pair();
        let mut state = self.state();
        state.modern = message_revision.or(state.modern);
        state.calls.insert(name, Running { abort, modern });
        drop(state);
        self.inlet.begin(async move {
            let _ = Abortable::new(call, registration).await;
        });
    }

    async fn begin_telling(self: &Arc<Self>, message: Outgoing) {
        let Ok(place) = Arc::clone(&self.untaken).acquire_owned().await else {
            return;
        };
        let link = Arc::clone(self);
        // What follows it on the wire must not come before it.
        let first = message
            .is("notifications/initialized")
            .then(|| self.gate.close());
        self.inlet.begin(async move {
            let told = timeout(ACCEPTANCE, link.exchange(&message)).await;
            drop(place);
            match told {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = %Logged(&error), "the server did not take a message");
                }
                Err(_) => tracing::warn!("the server did not take a message in time"),
            }
            if first.is_some() {
                link.opened(&message).await;
            }
        });
    }

    /// A legacy session is open: listens to what the server says beside its answers.
    async fn opened(self: &Arc<Self>, initialized: &Outgoing) {
        let generation = {
            let mut state = self.state();
            state.restore.agreed(initialized);
            if state.messages_2024.is_some() || state.session.revision.is_none() {
                return;
            }
            state.session.generation
        };
        let (listening, heard) = oneshot::channel();
        self.listen(generation, listening);
        let _ = timeout(LISTENING, heard).await;
    }

    fn is_legacy(&self) -> bool {
        let state = self.state();
        state.session.revision.is_some() || state.messages_2024.is_some()
    }
}
