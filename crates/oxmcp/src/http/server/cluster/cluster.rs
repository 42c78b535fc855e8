//! The state that the nodes of a server share, as one trait.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_core::future::BoxFuture;
use tokio::time::sleep;

use crate::{
    error::{Error, Result},
    server::Server,
    session::{shared_keys::SharedKeys, task::spawn},
    store::{
        AnyBus, AnyEventStore, AnySessionStore, Bus, EventStore, SessionStore, any_bus,
        any_event_store, any_session_store,
    },
    sync::Mutex,
    tasks::{TaskStore, Tasks, store::AnyTaskStore},
};

/// The state that the nodes of a server share: sessions, events of streams, tasks, a bus between the nodes, and keys. For
/// [`StreamableHttp::cluster`](crate::http::StreamableHttp::cluster). Clones are handles to the same cluster.
///
/// The crate `oxmcp-redis` implements it for many nodes, and `oxmcp-sqlite` for one node whose state survives restarts.
///
/// # Implementing a cluster
/// Each supertrait has a contract in [`testing`](crate::testing) to check the implementation against. If sessions, events, tasks
/// and the bus are in different places, write a type that forwards each call to the right place.
pub trait Cluster: SessionStore + EventStore + TaskStore + Bus + Clone {
    /// Returns the keys that all nodes share. Never keep them in a store that others can read. They seal data that clients hold,
    /// and are meant to seal stored data. An endpoint does not start without keys.
    fn shared_keys(&self) -> SharedKeys;

    /// Returns the cluster for the server with this name, if several servers can share a store. The default is this cluster.
    #[must_use]
    fn for_server(self, name: &str) -> Self {
        let _ = name;
        self
    }

    /// Publishes a setting that should be the same on all nodes, for a minute, unless another value is already published. Returns
    /// that other value. Nodes repeat this three times a minute.
    ///
    /// # Errors
    /// If the setting cannot be published.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the setting may or may not have been published.
    fn compare(
        &self,
        fact: &str,
        value: &str,
    ) -> impl Future<Output = Result<Option<String>>> + Send;
}

/// A type-erased cluster, as endpoints hold it.
pub(crate) struct AnyCluster {
    keys: SharedKeys,
    tasks: Arc<dyn AnyTaskStore>,
    compare: Compare,
    has_compared: AtomicBool,
    /// Whether the endpoint serves one server. If it chooses among several, there is no name to compare.
    has_one_server: bool,
    /// The name of another server that uses the cluster.
    other_name: Mutex<Option<String>>,
}

/// A setting that should be the same on all nodes: its name and value.
pub(crate) type SharedSetting = (&'static str, String);

/// The name of the setting with the server's name.
pub(crate) const NAME: &str = "name of the server";

/// The interval at which nodes publish their settings.
const COMPARED: Duration = Duration::from_secs(20);

type Compare =
    Box<dyn Fn(&'static str, String) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// The stores and the bus of a cluster, each with its own timeouts.
pub(crate) struct Parts {
    pub(crate) sessions: Arc<dyn AnySessionStore>,
    pub(crate) events: Arc<dyn AnyEventStore>,
    pub(crate) bus: Arc<dyn AnyBus>,
}

impl AnyCluster {
    /// Splits a cluster into its parts, for the server with this name, if the name is known.
    pub(crate) fn new(cluster: impl Cluster, server: Option<&str>) -> (Arc<Self>, Parts) {
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
            has_one_server: server.is_some(),
            other_name: Mutex::default(),
        };
        (Arc::new(any), parts)
    }

    #[cfg(feature = "auth")]
    pub(crate) fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    pub(crate) fn tasks(&self) -> &Arc<dyn AnyTaskStore> {
        &self.tasks
    }

    /// Gives a server the keys and the task store, unless the server has its own.
    pub(crate) fn join(&self, server: &Server) {
        server.share_keys(&self.keys);
        Tasks::share(server, &self.tasks);
    }

    /// # Errors
    /// If the cluster has no keys, or a server with another name uses it.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.keys.is_empty() {
            return self.check_name();
        }
        Err(Error::misuse(
            "cluster has no keys: set the same `.keys([StateKey::from_base64(text)?])` on the store of every node; make the text \
             with `openssl rand -base64 32` and keep it with your secrets",
        ))
    }

    /// Whether nothing has been compared yet.
    pub(crate) fn must_compare(&self) -> bool {
        !self.has_compared.load(Ordering::Relaxed)
    }

    /// Compares the settings that should be the same on all nodes: once now, and then regularly as long as this node exists.
    /// Differences are logged.
    ///
    /// # Errors
    /// If a server with another name uses the cluster: each would serve the sessions of the other.
    pub(crate) async fn compare(self: &Arc<Self>, facts: Vec<SharedSetting>) -> Result<()> {
        if self.has_compared.swap(true, Ordering::Relaxed) {
            return self.check_name();
        }
        self.compare_once(&facts, true).await;
        let weak = Arc::downgrade(self);
        spawn(async move {
            loop {
                sleep(COMPARED).await;
                let Some(cluster) = weak.upgrade() else {
                    return;
                };
                cluster.compare_once(&facts, false).await;
            }
        });
        self.check_name()
    }

    async fn compare_once(&self, facts: &[SharedSetting], is_first: bool) {
        for (fact, here) in facts {
            let found = (self.compare)(fact, here.clone()).await;
            if self.has_one_server
                && *fact == NAME
                && let Ok(there) = &found
            {
                *self.other_name.lock() = there.clone();
            }
            match found {
                Ok(Some(there)) if is_first => tracing::warn!(
                    fact, %here, %there, "node is configured differently from another node of its cluster"
                ),
                Err(error) if is_first => {
                    tracing::warn!(fact, %error, "could not compare this node with others of its cluster");
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn check_name(&self) -> Result<()> {
        match &*self.other_name.lock() {
            None => Ok(()),
            Some(name) => Err(Error::misuse(format!(
                "store, prefix and keys are already in use by the server {name:?}: give each server its own prefix; after \
                 renaming a server, wait a minute after its last node has stopped"
            ))),
        }
    }
}
