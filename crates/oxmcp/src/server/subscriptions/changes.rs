//! List changes and resource updates: notifying all clients, by their kind of subscription.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{
    Meta, Notification, NotificationParams, ResourceUpdatedParams, method::ResourceUpdated,
};
use tokio::{task::consume_budget, time::sleep};

use super::{
    Topics,
    open_subscriptions::log_unsent,
    topics::{DueSender, LISTS},
    written_changes::{Message, WrittenChanges, send},
};
use crate::{
    server::{dispatch::ServerRole, server::Server, session::ServerSession},
    session::{
        connection::Connection,
        task::{spawn, spawn_on},
    },
};

/// The time for which further changes are collected after the first one, to send them together.
pub(crate) const COALESCED: Duration = Duration::from_millis(10);

impl Server {
    /// Soon notifies the clients that have subscribed to these topics, including those of other nodes.
    pub(crate) fn changed(&self, topics: impl Into<Topics>) {
        let topics = topics.into();
        #[cfg(feature = "http-server")]
        let topics = self.share(topics);
        self.tell(topics);
    }

    /// Soon notifies the clients of this node that have subscribed to these topics.
    pub(crate) fn tell(&self, topics: Topics) {
        let Some(runtime) = self.changes().runtime() else {
            return;
        };
        if self.open_subscriptions().is_empty() && self.connections().is_empty() {
            return;
        }
        if !self.changes().due.add(topics) {
            return;
        }
        let sender = DueSender::new(Arc::clone(&self.changes().due));
        let server = self.clone();
        spawn_on(&runtime, async move {
            sleep(COALESCED).await;
            notify_all(&server, &sender.finish()).await;
        });
    }
}

/// Notifies each client: immediately if possible, and otherwise in a separate task, since a slow client must not delay the
/// others. Yields to other tasks if there are many clients.
async fn notify_all(server: &Server, changed: &Topics) {
    let changes = WrittenChanges::new(changed);
    let is_visible = server.features().are_visible(&changed.uris);
    server.open_subscriptions().add(&changes, is_visible).await;
    for session in server.sessions() {
        consume_budget().await;
        let role = session.role();
        role.open_subscriptions.add(&changes, is_visible).await;
        if is_visible {
            let messages = concerning(role, &changes);
            if messages.is_empty() || send(&messages, session.connection(), None) {
                continue;
            }
        }
        let topics = role.topics(session.connection(), changed);
        if !topics.is_empty() {
            notify_session(session, topics);
        }
    }
}

/// The messages for a session that sees all changed resources. Empty before the session is initialized.
fn concerning<'c>(role: &ServerRole, changes: &'c WrittenChanges<'_>) -> Vec<&'c Message> {
    let lists = role.legacy_session().announced_lists();
    lists.map_or_else(Vec::new, |lists| {
        changes.of_watched(lists, |uri| role.watched.contains(uri))
    })
}

pub(crate) fn notify_session(session: ServerSession, topics: Topics) {
    if !session.role().due.add(topics) {
        return;
    }
    spawn(async move {
        let mut sender = DueSender::new(&session.role().due);
        while let Some(due) = sender.next() {
            notify(session.connection(), &due, &Meta::default()).await;
        }
    });
}

/// Notifies one client, with backpressure.
pub(crate) async fn notify(connection: &Arc<Connection>, changed: &Topics, meta: &Meta) {
    let meta = |topic: &str| {
        let mut meta = meta.clone();
        if connection.is_shared()
            && let Some(changes) = changed.changes_of(topic)
        {
            meta.insert(Meta::CHANGES, changes);
        }
        meta
    };
    for (name, _) in LISTS.into_iter().filter(|(_, has)| has(&changed.lists)) {
        let mut params = NotificationParams::default();
        params.meta = meta(name);
        log_unsent(connection.notify(name, params).await);
    }
    for uri in &changed.uris {
        let mut params = ResourceUpdatedParams::new(&**uri);
        params.meta = meta(uri);
        log_unsent(connection.notify(ResourceUpdated::NAME, params).await);
    }
}
