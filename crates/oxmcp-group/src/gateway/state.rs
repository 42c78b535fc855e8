//! The state that the features of a gateway's server share.

use std::sync::{Arc, OnceLock};

use oxmcp::{RequestContext, Result, WeakServer};
use tokio::sync::Semaphore;

use super::{
    links::{Link, Links},
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

    /// Whether the upstream of a URI has a session for each client.
    pub(super) fn is_for_one_client(&self, uri: &str) -> bool {
        let route = self.group.uri_route(uri);
        route.is_ok_and(|(server, _)| self.links.is_for_one_client(server))
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
            || !cx.revision().is_modern()
            || self.group.session_at(server).await?.revision().is_modern();
        match lasts {
            true => Ok((Some(self.link(cx, server).await?), is_own)),
            false => Ok((None, false)),
        }
    }
}
