//! List changes and resource updates: notifying all clients, in whichever way they have subscribed.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{
    Meta, Notification, NotificationParams, ResourceUpdatedParams,
    method::{PromptListChanged, ResourceListChanged, ResourceUpdated, ToolListChanged},
};
use tokio::time::sleep;

use super::{Topics, listens::log_unsent, topics::DueSender};
use crate::{
    server::{server::Server, session::ServerSession},
    session::{
        connection::Connection,
        task::{spawn, spawn_on},
    },
};

/// Changes that come this soon after the first are sent together with it.
const COALESCED: Duration = Duration::from_millis(10);

impl Server {
    /// Notifies the clients that have subscribed to these topics, soon.
    pub(in crate::server) fn changed(&self, topics: impl Into<Topics>) {
        let Some(runtime) = self.changes().runtime() else {
            return;
        };
        if self.listens().is_empty() && self.connections().is_empty() {
            return;
        }
        if !self.changes().due.add(topics.into()) {
            return;
        }
        let sender = DueSender::new(Arc::clone(&self.changes().due));
        let server = self.clone();
        spawn_on(&runtime, async move {
            sleep(COALESCED).await;
            notify_all(&server, &sender.finish());
        });
    }
}

/// Notifies each session in a task of its own: a client that reads slowly must not hold up the others.
fn notify_all(server: &Server, changed: &Topics) {
    server.listens().add(changed);
    for session in server.sessions() {
        session.role().listens.add(changed);
        let topics = session.role().topics(session.connection(), changed);
        if !topics.is_empty() {
            notify_session(session, topics);
        }
    }
}

fn notify_session(session: ServerSession, topics: Topics) {
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

/// Notifies one client.
pub(super) async fn notify(connection: &Arc<Connection>, changed: &Topics, meta: &Meta) {
    let Topics { lists, uris } = changed;
    let lists = [
        (lists.tools_list_changed, ToolListChanged::NAME),
        (lists.prompts_list_changed, PromptListChanged::NAME),
        (lists.resources_list_changed, ResourceListChanged::NAME),
    ];
    for (_, name) in lists.into_iter().filter(|(is_changed, _)| *is_changed) {
        let mut params = NotificationParams::default();
        params.meta = meta.clone();
        log_unsent(connection.notify(name, params).await);
    }
    for uri in uris {
        let mut params = ResourceUpdatedParams::new(&**uri);
        params.meta = meta.clone();
        log_unsent(connection.notify(ResourceUpdated::NAME, params).await);
    }
}
