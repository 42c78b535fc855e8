//! Cluster: the state that the nodes of a server share, as one trait.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_core::future::BoxFuture;

use crate::{
    error::{Error, Result},
    server::Server,
    session::shared_keys::SharedKeys,
    store::{
        AnyBus, AnyEventStore, AnySessionStore, Bus, EventStore, SessionStore, any_bus,
        any_event_store, any_session_store,
    },
    tasks::{TaskStore, Tasks, store::AnyTaskStore},
};

/// The state that the nodes of a server share, for [`StreamableHttp::cluster`](super::StreamableHttp::cluster): sessions, events of
/// streams, tasks, a bus between the nodes, and keys. Clones are handles to the same cluster.
///
/// The crates `oxmcp-redis` and `oxmcp-sqlite` each have an implementation: for many nodes, and for one node that restarts.
///
/// # Implementing a cluster
/// Each supertrait has a contract in [`testing`](crate::testing) to check the implementation against. If sessions, events, tasks
/// and the bus are in different places, a type that passes each call on to the right place is a cluster, too.
pub trait Cluster: SessionStore + EventStore + TaskStore + Bus + Clone {
    /// The keys that all nodes have, and that are never in a store which others can read. They seal data that clients hold, and are
    /// meant to seal stored data. An endpoint does not start without keys.
    fn shared_keys(&self) -> SharedKeys;

    /// The cluster for the server with this name, if several servers can share a store. By default it is this cluster.
    #[must_use]
    fn for_server(self, name: &str) -> Self {
        let _ = name;
        self
    }

    /// Publishes a setting of this node that all nodes should have in common, by its name, for a day. Returns the value that the
    /// node that last published it has given, if that value differs.
    ///
    /// # Errors
    /// If the setting cannot be published.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the setting may have been published or not.
    fn compare(
        &self,
        fact: &str,
        value: &str,
    ) -> impl Future<Output = Result<Option<String>>> + Send;
}

/// A cluster with its type erased, as endpoints hold it.
pub(super) struct AnyCluster {
    keys: SharedKeys,
    tasks: Arc<dyn AnyTaskStore>,
    compare: Compare,
    has_compared: AtomicBool,
}

type Compare =
    Box<dyn Fn(&'static str, String) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// The stores and the bus of a cluster, each with its own time-outs.
pub(super) struct Parts {
    pub(super) sessions: Arc<dyn AnySessionStore>,
    pub(super) events: Arc<dyn AnyEventStore>,
    pub(super) bus: Arc<dyn AnyBus>,
}

impl AnyCluster {
    /// Splits a cluster into its parts, for the server with this name, if the name is known.
    pub(super) fn new(cluster: impl Cluster, server: Option<&str>) -> (Arc<Self>, Parts) {
        let cluster = match server {
            Some(name) => cluster.for_server(name),
            None => cluster,
        };
        let parts = Parts {
            sessions: any_session_store(cluster.clone()),
            events: any_event_store(cluster.clone()),
            bus: any_bus(cluster.clone()),
        };
        let any = Self {
            keys: cluster.shared_keys(),
            tasks: Arc::new(cluster.clone()),
            compare: Box::new(move |fact, value| {
                let cluster = cluster.clone();
                Box::pin(async move { cluster.compare(fact, &value).await })
            }),
            has_compared: AtomicBool::new(false),
        };
        (Arc::new(any), parts)
    }

    #[cfg(feature = "auth")]
    pub(super) fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    pub(super) fn tasks(&self) -> &Arc<dyn AnyTaskStore> {
        &self.tasks
    }

    /// Gives a server the keys and the store of tasks, unless the server has its own.
    pub(super) fn join(&self, server: &Server) {
        server.share_keys(&self.keys);
        Tasks::share(server, &self.tasks);
    }

    /// # Errors
    /// If the cluster has no keys.
    pub(super) fn check(&self) -> Result<()> {
        if !self.keys.is_empty() {
            return Ok(());
        }
        Err(Error::misuse(
            "the nodes of a cluster have no keys, by which one opens what another has sealed: give the store of all of them the same, \
             `.keys([StateKey::from_base64(text)?])`, where `openssl rand -base64 32` makes the text, from where secrets are kept",
        ))
    }

    /// Whether nothing has been compared yet.
    pub(super) fn must_compare(&self) -> bool {
        !self.has_compared.load(Ordering::Relaxed)
    }

    /// Compares, once, the settings that all nodes should have in common, and logs those that differ.
    pub(super) async fn compare(&self, facts: impl IntoIterator<Item = (&'static str, String)>) {
        if self.has_compared.swap(true, Ordering::Relaxed) {
            return;
        }
        for (fact, value) in facts {
            match (self.compare)(fact, value.clone()).await {
                Ok(None) => {}
                Ok(Some(other)) => tracing::warn!(
                    fact,
                    here = %value,
                    there = %other,
                    "this node of a cluster is set up differently than one that began before"
                ),
                Err(error) => {
                    tracing::warn!(fact, %error, "this node of a cluster cannot be compared with others");
                }
            }
        }
    }
}
