//! The roots of a client, and the notifications of their changes.

use std::{sync::atomic::Ordering, time::Duration};

use oxmcp_protocol::{
    Notification, NotificationParams, Root,
    method::{self, RootsListChanged},
};
use tokio::time::sleep;

use crate::{
    client::{client::Client, session::ClientSession},
    error::{Error, Result},
    logged::Logged,
    session::task::{spawn, spawn_on},
};

/// The time after a change within which further changes share its notification.
const COALESCED: Duration = Duration::from_millis(10);

impl Client {
    /// Adds [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots) that servers can list. `roots([])`
    /// declares the capability without a root, for roots that are added later. The capability is declared on connecting.
    ///
    /// For an invalid root, [`connect`](Self::connect) returns an error.
    ///
    /// ```
    /// use oxmcp::{Client, protocol::Root};
    ///
    /// let client = Client::new("my-app", "1.0.0")
    ///     .roots([Root::new("file:///home/me/teahouse").with_name("Teahouse")]);
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias = "roots/list")]
    pub fn roots(self, roots: impl IntoIterator<Item = Root>) -> Self {
        if let Err(error) = self.add_roots(roots) {
            self.report(error);
        }
        self
    }

    /// Adds roots to a client that may be connected already. Each replaces one with the same URI. Legacy servers are notified
    /// that the list has changed, if roots were declared to them on connecting; modern servers ask when they need the list.
    ///
    /// # Errors
    /// If the URI of a root does not begin with `file://`. In that case no root is added.
    ///
    /// ```
    /// use oxmcp::{Client, protocol::Root};
    ///
    /// let client = Client::new("my-app", "1.0.0").roots([]);
    /// // … and later, while it is connected:
    /// client.add_roots([Root::new("file:///home/me/teahouse")])?;
    /// client.remove_roots(["file:///home/me/teahouse"]);
    ///
    /// let error = client.add_roots([Root::new("/home/me")]).unwrap_err();
    /// assert!(error.to_string().contains("file://"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    #[doc(alias = "notifications/roots/list_changed")]
    pub fn add_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<()> {
        let roots: Vec<Root> = roots.into_iter().collect();
        if let Some(root) = roots.iter().find(|root| !root.uri.starts_with("file://")) {
            let uri = &root.uri;
            return Err(Error::misuse(format!(
                "invalid root URI {uri:?}: it must begin with \"file://\""
            )));
        }
        let changed = !roots.is_empty();
        self.change(|features| {
            let all = features.roots.get_or_insert_default();
            for root in roots {
                match all.iter_mut().find(|other| other.uri == root.uri) {
                    Some(other) => *other = root,
                    None => all.push(root),
                }
            }
        });
        if changed {
            self.roots_changed();
        }
        Ok(())
    }

    /// Removes roots by URI; unknown URIs are ignored. Servers are notified if the list has changed, as by
    /// [`add_roots`](Self::add_roots).
    pub fn remove_roots<U: AsRef<str>>(&self, uris: impl IntoIterator<Item = U>) {
        let uris: Vec<_> = uris.into_iter().collect();
        let mut removed = false;
        self.change(|features| {
            let Some(all) = &mut features.roots else {
                return;
            };
            let before = all.len();
            all.retain(|root| !uris.iter().any(|uri| uri.as_ref() == root.uri));
            removed = all.len() < before;
        });
        if removed {
            self.roots_changed();
        }
    }

    /// Notifies the servers of the change, together with the changes that follow within [`COALESCED`].
    fn roots_changed(&self) {
        let Some(runtime) = self.runtime() else {
            return;
        };
        let is_pending = || self.root_change_pending().swap(true, Ordering::AcqRel);
        if self.sessions().next().is_none() || is_pending() {
            return;
        }
        let pending = PendingNotice(self.clone());
        let client = self.clone();
        spawn_on(&runtime, async move {
            sleep(COALESCED).await;
            drop(pending);
            notify_servers(&client);
        });
    }
}

/// The mark of a task that is about to notify the servers. When it is dropped, also with a runtime that ends before the
/// servers were notified, the next change begins another task.
struct PendingNotice(Client);

impl Drop for PendingNotice {
    fn drop(&mut self) {
        self.0.root_change_pending().store(false, Ordering::Release);
    }
}

/// Notifies each server in a separate task: a server that reads slowly must not hold up the others.
fn notify_servers(client: &Client) {
    for session in client.sessions().filter(expects_root_changes) {
        spawn(async move {
            let params = NotificationParams::default();
            let sent = session.connection().notify(RootsListChanged::NAME, params);
            if let Err(error) = sent.await {
                tracing::debug!(error = %Logged(&error), "could not notify a server that the roots have changed");
            }
        });
    }
}

fn expects_root_changes(session: &ClientSession) -> bool {
    let declared = session.declared().roots.as_ref();
    let table = method::NOTIFICATIONS_TO_SERVER;
    declared.is_some_and(|roots| roots.list_changed)
        && method::is_in(table, RootsListChanged::NAME, session.revision())
}
