//! The settings of the services over HTTP, and what `StreamableHttp` and `LegacySse` do alike with them.

use std::sync::Arc;

use http::request::Parts;
#[cfg(feature = "auth")]
use oxmcp_auth::{Secret, server::Refusal};

use crate::{
    error::Result,
    http::server::{
        cluster::{AnyCluster, NAME, SharedSetting},
        validation::Policy,
    },
    limits::Limits,
    server::Server,
    store::{AnyBus, AnyEventStore, AnySessionStore},
};
#[cfg(feature = "auth")]
use crate::{
    http::protection::{ProtectedResource, Protection, TokenAuthentication},
    transport::principal::Principal,
};

/// Chooses the server of a request.
pub(crate) type Choose = Arc<dyn Fn(&Parts) -> Option<Server> + Send + Sync>;

/// The settings of an endpoint or of the service for 2024-11-05, which do not change after the first request.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) choose: Choose,
    /// The server that is always chosen, if it is known.
    pub(crate) server: Option<Server>,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) events: Option<Arc<dyn AnyEventStore>>,
    pub(crate) sessions: Option<Arc<dyn AnySessionStore>>,
    pub(crate) bus: Option<Arc<dyn AnyBus>>,
    /// The cluster that the endpoint belongs to.
    pub(crate) cluster: Option<Arc<AnyCluster>>,
    /// The function that makes session IDs; `None` if they are random.
    pub(crate) session_ids: Option<SessionIds>,
    /// Whether each response is one JSON message, without streams.
    pub(crate) json_only: bool,
    /// Whether legacy requests are served without sessions, each by itself.
    pub(crate) stateless: bool,
    /// The paths of the health checks.
    pub(crate) liveness_path: Option<String>,
    pub(crate) readiness_path: Option<String>,
    /// Whether the endpoint is not ready while a store fails.
    pub(crate) strict_readiness: bool,
    /// The token authentication that requests need.
    #[cfg(feature = "auth")]
    pub(crate) protection: Option<Protection>,
}

pub(crate) type SessionIds = Arc<dyn Fn(&Parts) -> String + Send + Sync>;

impl Settings {
    /// The default settings, without stores.
    pub(crate) fn new<S: Into<Option<Server>>>(
        choose: impl Fn(&Parts) -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            choose: Arc::new(move |parts| choose(parts).into()),
            server: None,
            policy: Policy::default(),
            limits: Limits::default(),
            events: None,
            sessions: None,
            bus: None,
            cluster: None,
            session_ids: None,
            json_only: false,
            stateless: false,
            liveness_path: None,
            readiness_path: None,
            strict_readiness: false,
            #[cfg(feature = "auth")]
            protection: None,
        }
    }

    /// Checks what can be checked before the first request.
    ///
    /// # Errors
    /// The first mistake in the settings or in the server.
    pub(crate) fn check(&self) -> Result<()> {
        self.policy.check()?;
        #[cfg(feature = "auth")]
        self.protection.as_ref().map_or(Ok(()), Protection::check)?;
        self.server.as_ref().map_or(Ok(()), Server::check_built)
    }

    /// Notes that the server is served from now on, if it is known.
    pub(crate) fn begin_serving(&self) {
        let Some(server) = &self.server else { return };
        #[cfg(feature = "auth")]
        Protection::warn_of_scopes(self.protection.as_ref(), &server.features());
        if let Some(cluster) = &self.cluster {
            cluster.join(server);
        }
        server.begin_serving();
    }

    /// Requires access tokens.
    #[cfg(feature = "auth")]
    pub(crate) fn protect(&mut self, resource: ProtectedResource) {
        Protection::Resource(resource).set(&mut self.protection);
        self.share_nonces();
    }

    /// Requires bearer tokens of the program's own.
    #[cfg(feature = "auth")]
    pub(crate) fn authenticate<F, Fut>(&mut self, authenticate: F)
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Principal, Refusal>> + Send + 'static,
    {
        Protection::Tokens(TokenAuthentication::new(authenticate)).set(&mut self.protection);
    }

    /// Makes DPoP nonces with the cluster's keys, if the endpoint is protected and in a cluster.
    #[cfg(feature = "auth")]
    pub(crate) fn share_nonces(&self) {
        let resource = self.protection.as_ref().and_then(Protection::resource);
        if let (Some(resource), Some(cluster)) = (resource, &self.cluster) {
            resource.share_nonces(cluster.keys());
        }
    }

    /// The settings that all nodes should have in common. `chosen` is the chosen server if the endpoint has several.
    pub(crate) fn facts(&self, chosen: Option<&Server>) -> Vec<SharedSetting> {
        let mut facts = Vec::new();
        if let Some(server) = self.server.as_ref().or(chosen) {
            facts.push((NAME, server.features().info.name.clone()));
        }
        #[cfg(feature = "auth")]
        if let Some(resource) = self.protection.as_ref().and_then(Protection::resource) {
            let audiences: Vec<_> = resource.audiences().collect();
            facts.push((
                "URL and audiences (a hash)",
                crate::store::hashed(&audiences.join("\n")),
            ));
        }
        facts
    }
}
