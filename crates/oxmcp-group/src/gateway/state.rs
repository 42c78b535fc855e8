//! The state that the features of a gateway's server share.

use std::sync::{Arc, OnceLock};

use oxmcp::{RequestContext, Result, WeakServer};
use tokio::sync::Semaphore;

use super::{
    links::{Link, Links, lasting_session},
    parked::ParkedCalls,
    path::GatewayId,
    watches::Watches,
};
use crate::group::GroupSession;

/// The limits of what clients and upstreams can make grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatewayLimits {
    pub(super) calls: usize,
    pub(super) watches: usize,
    pub(super) sessions: usize,
}

/// The state that the features of the server share.
pub(super) struct Inner {
    pub(super) id: GatewayId,
    pub(super) group: GroupSession,
    pub(super) links: Arc<Links>,
    pub(super) parked: ParkedCalls,
    pub(super) calls: Arc<Semaphore>,
    pub(super) limits: GatewayLimits,
    /// Whether the gateway's server has tasks.
    pub(super) has_tasks: bool,
    /// Whether the user learns which upstream asks.
    pub(super) names_questions: bool,
    pub(super) watches: Watches,
    pub(super) server: OnceLock<WeakServer>,
}

impl Inner {
    /// The session with an upstream for a request of a client.
    ///
    /// # Errors
    /// If the upstream cannot be reached, or there are too many sessions.
    pub(super) async fn link(&self, cx: &RequestContext, server: usize) -> Result<Arc<Link>> {
        let own = self.group.session_at(server).await?;
        let keeps_state = !own.revision().is_modern();
        self.links.get(cx, server, keeps_state).await
    }

    /// Whether a client watches a resource together with others: modern ones do, unless they have a session with the upstream.
    ///
    /// # Errors
    /// If the upstream cannot be reached.
    pub(super) async fn shares_watch(&self, cx: &RequestContext, uri: &str) -> Result<bool> {
        let (server, _) = self.group.uri_route(uri)?;
        if !cx.revision().is_modern() || self.links.is_for_one_client(server) {
            return Ok(false);
        }
        let has_session = lasting_session(cx).is_some();
        Ok(!has_session || self.group.session_at(server).await?.revision().is_modern())
    }

    /// The session with an upstream in which a client watches a resource, and whether only it may be used. `None` for the
    /// gateway's own, if requests of the client have no session there that would last.
    ///
    /// # Errors
    /// As for [`link`](Self::link).
    pub(super) async fn link_to_watch(
        &self,
        cx: &RequestContext,
        uri: &str,
    ) -> Result<(Option<Arc<Link>>, bool)> {
        let (server, _) = self.group.uri_route(uri)?;
        let is_own = self.links.is_for_one_client(server);
        let lasts = is_own
            || lasting_session(cx).is_some()
            || self.group.session_at(server).await?.revision().is_modern();
        match lasts {
            true => Ok((Some(self.link(cx, server).await?), is_own)),
            false => Ok((None, false)),
        }
    }
}
