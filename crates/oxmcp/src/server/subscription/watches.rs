//! Watching resources by `subscriptions/listen`.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{
    hooks::{Hooks, Subscribing},
    quota::Taken,
    seen::is_put_to_the_author,
    session::off_the_connection,
};
use crate::{
    Result,
    json::Logged,
    protocol::SubscriptionFilter,
    server::session::ServerSession,
    session::{RequestContext, panics},
};

/// What nobody watches any more, and who wants to know.
pub(crate) type Ended = (Arc<Hooks>, Arc<str>);

/// The resources that a subscription watches, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Watches {
    session: ServerSession,
    agreed: Vec<Ended>,
    _room: Taken,
}

impl Watches {
    /// Leaves out of the filter what the server's author does not agree to, or cannot be asked about.
    ///
    /// # Errors
    /// Where it is too much.
    pub(crate) async fn begin(
        cx: &RequestContext,
        session: ServerSession,
        subscribing: Option<Subscribing>,
        filter: &mut SubscriptionFilter,
    ) -> Result<Self> {
        let limits = &session.connection().limits;
        let room = session.peer().quota().take_all(filter, cx, limits)?;
        let mut watches = Self {
            _room: room,
            session,
            agreed: Vec::new(),
        };
        let Some(hooks) = subscribing.and_then(|subscribing| subscribing.hooks) else {
            return Ok(watches);
        };
        let mut wanted = std::mem::take(&mut filter.resource_subscriptions);
        // Each is held against the templates, so this comes when it is known that they are not too many.
        {
            let server = watches.session.server();
            let features = server.features();
            wanted.retain(|uri| is_put_to_the_author(&features, uri, cx));
        }
        if !wanted.is_empty() {
            off_the_connection().await;
        }
        for uri in wanted {
            match (hooks.subscribe)(cx.clone(), uri.clone()).await {
                Ok(()) => {
                    watches
                        .agreed
                        .push((Arc::clone(&hooks), uri.as_str().into()));
                    filter.resource_subscriptions.push(uri);
                }
                Err(error) => {
                    tracing::debug!(error = %Logged(&error), uri, "a resource is not watched");
                }
            }
        }
        Ok(watches)
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        release(&self.session, std::mem::take(&mut self.agreed));
    }
}

/// Tells the server's author what nobody watches any more.
pub(crate) fn release(session: &ServerSession, ended: Vec<Ended>) {
    // Where the runtime has ended, nobody is left who could do it.
    let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) else {
        return;
    };
    let session = session.clone();
    runtime.spawn(async move {
        for (hooks, uri) in ended {
            let unsubscribe = async { (hooks.unsubscribe)(session.clone(), uri.to_string()).await };
            if let Err(panic) = panics::catch(Box::pin(unsubscribe)).await {
                tracing::error!(panic = %Logged(panic.text()), "a handler of the end of a subscription panicked");
            }
        }
    });
}
