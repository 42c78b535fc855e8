//! Watching resources by `subscriptions/listen`.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{
    hooks::{Hooks, Subscribing},
    quota::Taken,
    session::off_the_connection,
};
use crate::{
    Result,
    json::Logged,
    protocol::SubscriptionFilter,
    server::{features::Features, session::ServerSession},
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
    /// Leaves out of the filter what its sender may not watch, then asks the server's author to agree to the rest.
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
        let mut wanted = std::mem::take(&mut filter.resource_subscriptions);
        // Each is held against the templates, so this comes when it is known that they are not too many.
        {
            let features = session.server().features();
            wanted.retain(|uri| !is_hidden(&features, uri, cx));
        }
        let mut watches = Self {
            _room: room,
            session,
            agreed: Vec::new(),
        };
        let Some(hooks) = subscribing.and_then(|subscribing| subscribing.hooks) else {
            filter.resource_subscriptions = wanted;
            return Ok(watches);
        };
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

/// Whether there is such a resource, and it is not for this caller.
pub(crate) fn is_hidden(features: &Features, uri: &str, cx: &RequestContext) -> bool {
    let resources = &features.resources;
    if resources.contains(uri) {
        return resources.get(uri, cx).is_none();
    }
    features.templates.is_restricted() && features.routes.hides(uri, cx)
}
