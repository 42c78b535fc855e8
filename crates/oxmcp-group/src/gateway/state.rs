//! The state that the features of a gateway's server share.

use std::sync::{Arc, OnceLock};

use oxmcp::WeakServer;
use tokio::sync::Semaphore;

use super::{links::Links, parked::ParkedCalls, path::GatewayId, watches::Watches};
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
    /// Whether the user learns which upstream asks.
    pub(super) names_questions: bool,
    pub(super) watches: Watches,
    pub(super) server: OnceLock<WeakServer>,
}
