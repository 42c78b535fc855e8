//! Changes at other nodes: a server notifies the nodes of its changes, and its clients of theirs.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::SubscriptionFilter;
use serde_json::Value;
use tokio::{task::consume_budget, time::sleep};

use super::{
    Topics,
    change_bus::{BusMember, ChangeBus, Heard, News, Published},
    changes::{COALESCED, notify_session},
    open_subscriptions::Event,
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

/// The pause before sending a failed message to other nodes again.
const RETRY: Duration = Duration::from_secs(1);

impl Server {
    /// Sets the bus over which the nodes of this server notify each other of changes.
    ///
    /// Servers with the same name on the same bus are nodes of one server. Only the first bus counts. A server that is served by
    /// a [`StreamableHttp`](crate::http::StreamableHttp) does not need this method: use its
    /// [`bus`](crate::http::StreamableHttp::bus).
    ///
    /// A change reported at one node ([`resource_updated`](Self::resource_updated), or a change of its lists) is sent to the
    /// clients of all nodes, once. The bus carries only notifications: all nodes need the same tools, and access to the same
    /// resources. Events that an extension [publishes](Self::publish) reach other nodes if the extension [republishes
    /// them](crate::Extension::republishes). If messages may have been lost, the clients of a node are notified that all lists,
    /// and all resources that they watch, have changed.
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

    /// Shares changes with the nodes on a bus, unless the server has already joined a bus.
    pub(crate) fn join(&self, bus: &Arc<ChangeBus>) {
        let member = self.bus_member();
        if member.get().is_none() && member.set(BusMember::new(bus)).is_ok() {
            self.changes().connected();
            if let Some(runtime) = self.changes().runtime() {
                bus.subscribe(&runtime);
            }
        }
    }

    /// Starts receiving changes at other nodes, once there are clients to notify.
    pub(crate) fn hear_nodes(&self) {
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

    /// Soon notifies other nodes that these topics have changed. Returns the topics with the change that identifies them at
    /// other nodes.
    pub(crate) fn share(&self, topics: Topics) -> Topics {
        let change = self.tell_nodes(|news, number| news.add(&topics, number));
        topics.due_to(change)
    }

    /// Soon notifies other nodes of a change; `add` adds it to the news under its number. `None` if the server has no bus or no
    /// runtime.
    pub(crate) fn tell_nodes(&self, add: impl FnOnce(&mut News, u64)) -> Option<Change> {
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

    /// Whether a subscription at this node matches the event.
    fn is_listened_to(&self, (key, value): &Published) -> bool {
        let Ok(value) = serde_json::from_str(value) else {
            return false;
        };
        let open_subscriptions = |it: &super::OpenSubscriptions| it.listen_to(key, &value);
        open_subscriptions(self.open_subscriptions())
            || self
                .sessions()
                .any(|it| open_subscriptions(&it.role().open_subscriptions))
    }

    /// Notifies the subscriptions at this node of events that extensions have published at other nodes.
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
                self.publish_to_subscriptions((key, value), &event);
            }
            Ok(None) => {}
            Err(panic) => {
                tracing::error!(panic = %Logged(panic.text()), "the republish handler of an extension panicked");
            }
        }
    }
}

/// Sends news to the other nodes. Returns true if they were sent, or if the server is gone.
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
        tracing::warn!(error = %Logged(error), "could not notify other nodes of a change; retrying");
    })
    .is_ok()
}

/// Notifies all clients of all their topics, since this change may concern anything.
async fn tell_everything(server: &Server, change: Change) {
    let mut published = server.open_subscriptions().add_all().await;
    for session in server.sessions() {
        consume_budget().await;
        let role = session.role();
        published.extend(role.open_subscriptions.add_all().await);
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
