//! Changes at other nodes: a server tells them what changes here, and notifies its clients of what changes there.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::SubscriptionFilter;
use serde_json::Value;
use tokio::{task::consume_budget, time::sleep};

use super::{
    Topics,
    change_bus::{BusMember, ChangeBus, Heard, News, Published},
    changes::{COALESCED, notify_session},
    listens::Event,
    topics::Change,
};
use crate::{
    logged::Logged,
    server::server::{Server, WeakServer},
    session::{
        panics,
        task::{spawn, spawn_on},
    },
    store::{Bus, any_bus},
};

/// The pause before nodes are told again that could not be.
const RETRY: Duration = Duration::from_secs(1);

impl Server {
    /// What the nodes of this server tell each other changes by, for one that is not served by a
    /// [`StreamableHttp`](crate::http::StreamableHttp), whose [`bus`](crate::http::StreamableHttp::bus) does the same. All that have a
    /// bus in common and the same name are nodes of one server; the first bus counts.
    ///
    /// What is told at one node ([`resource_updated`](Self::resource_updated), changes of its lists) the clients of all are notified of,
    /// once. Nothing but that is told: each node must be given the same tools, and must be able to read the same resources.
    /// What an extension [publishes](Self::publish) reaches other nodes where it says
    /// [how](crate::Extension::republishes). Where messages may have been lost, the clients of a node are told that all lists have
    /// changed, and all that they watch.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use oxmcp::{Server, store::MemoryBus};
    ///
    /// let bus = Arc::new(MemoryBus::new());
    /// let nodes = [1, 2].map(|_| Server::new("shop", "1.0.0").subscriptions().bus(Arc::clone(&bus)));
    /// # let _ = nodes;
    /// ```
    #[must_use]
    pub fn bus(self, bus: impl Bus) -> Self {
        self.join(&ChangeBus::new(any_bus(bus)));
        self
    }

    /// Shares changes with the nodes at a bus, unless the server does with others.
    pub(crate) fn join(&self, bus: &Arc<ChangeBus>) {
        let member = self.bus_member();
        if member.get().is_none() && member.set(BusMember::new(bus)).is_ok() {
            self.changes().connected();
            if let Some(runtime) = self.changes().runtime() {
                bus.subscribe(&runtime);
            }
        }
    }

    /// Hears from here on what changes at other nodes: there are clients to be notified.
    pub(in crate::server) fn hear_nodes(&self) {
        let (Some(member), Some(runtime)) = (self.bus_member().get(), self.changes().runtime())
        else {
            return;
        };
        member.hear(&self.features().info.name, || {
            let server = self.downgrade();
            move |heard| {
                if let Some(server) = server.upgrade() {
                    server.hear(heard);
                }
            }
        });
        member.bus.subscribe(&runtime);
    }

    /// Tells other nodes that these have changed, soon. Returns them with the change that others hear of.
    pub(super) fn share(&self, topics: Topics) -> Topics {
        let change = self.tell_nodes(|news, number| news.add(&topics, number));
        topics.due_to(change)
    }

    /// Tells other nodes of a change, soon, to which `add` gives its number. `None` where there are no others.
    pub(super) fn tell_nodes(&self, add: impl FnOnce(&mut News, u64)) -> Option<Change> {
        let member = self.bus_member().get()?;
        let runtime = self.changes().runtime()?;
        let change = member.next_change();
        let duty = member.untold.add(|news| add(news, change.number));
        let Some(mut duty) = duty else {
            return Some(change);
        };
        let server = self.downgrade();
        spawn_on(&runtime, async move {
            sleep(COALESCED).await;
            while let Some(news) = duty.next() {
                if !tell(&server, &news).await {
                    duty.put_back(|later| later.merge(news));
                    sleep(RETRY).await;
                }
            }
        });
        Some(change)
    }

    fn hear(self, heard: Heard) {
        match heard {
            Heard::Gap => {
                if let Some(change) = self.bus_member().get().map(BusMember::next_change) {
                    spawn(async move { tell_everything(&self, change).await });
                }
            }
            Heard::News { node, news } if news.all => {
                let number = news.last;
                spawn(async move { tell_everything(&self, Change { node, number }).await });
            }
            Heard::News { node, mut news } => {
                let published = std::mem::take(&mut news.published);
                let published = published.into_iter().filter(|it| self.is_listened_to(it));
                self.republish(published.collect());
                self.tell(news.topics(node));
            }
        }
    }

    /// Whether a subscription here is to be notified of it.
    fn is_listened_to(&self, (key, value): &Published) -> bool {
        let Ok(value) = serde_json::from_str(value) else {
            return false;
        };
        let listens = |it: &super::Listens| it.listen_to(key, &value);
        listens(self.listens()) || self.sessions().any(|it| listens(&it.role().listens))
    }

    /// Notifies subscriptions here of what extensions have published elsewhere.
    fn republish(&self, published: Vec<Published>) {
        let Some(member) = self.bus_member().get() else {
            return;
        };
        let Some(mut duty) = member.unpublished.add(|all| all.extend(published)) else {
            return;
        };
        let server = self.downgrade();
        spawn(async move {
            while let Some(all) = duty.next() {
                for (key, value) in all {
                    let Some(server) = server.upgrade() else {
                        return;
                    };
                    if let Ok(value) = serde_json::from_str(&value) {
                        server.publish_again(&key, &value).await;
                    }
                }
            }
        });
    }

    async fn publish_again(&self, key: &str, value: &Value) {
        let features = self.features().clone();
        let Some(republished) = features.extensions.republished(key) else {
            return;
        };
        let params = Box::pin(republished.params(value.clone()));
        match panics::catch(params).await {
            Ok(Some(params)) => {
                let event = Event::new(republished.name, params);
                self.publish_to_listens((key, value), &event);
            }
            Ok(None) => {}
            Err(panic) => {
                tracing::error!(panic = %Logged(panic.text()), "an extension panicked that was to publish again");
            }
        }
    }
}

/// Tells other nodes. Returns whether that was done, or nobody is left to do it.
async fn tell(server: &WeakServer, news: &News) -> bool {
    let Some(server) = server.upgrade() else {
        return true;
    };
    let Some(member) = server.bus_member().get() else {
        return true;
    };
    let name = server.features().info.name.clone();
    let told = member.tell(&name, news.clone()).await;
    told.inspect_err(|error| {
        tracing::warn!(error = %Logged(error), "other nodes are not told of a change yet");
    })
    .is_ok()
}

/// Notifies all clients of all that they are to be notified of: anything may have changed, by this.
async fn tell_everything(server: &Server, change: Change) {
    let mut published = server.listens().add_all().await;
    for session in server.sessions() {
        consume_budget().await;
        let role = session.role();
        published.extend(role.listens.add_all().await);
        let lists = SubscriptionFilter::default()
            .with_tools_list_changed(true)
            .with_prompts_list_changed(true)
            .with_resources_list_changed(true);
        let all = Topics::new(lists, role.watched.uris()).due_to(change);
        let topics = role.topics(session.connection(), &all);
        if !topics.is_empty() {
            notify_session(session, topics);
        }
    }
    server.republish(published);
}
