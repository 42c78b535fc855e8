//! The task of a session that keeps its desired subscriptions open with the server.

use std::{collections::HashSet, future::pending, mem, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use oxmcp_protocol::{
    Method, Notification, ResourceUpdatedParams, SubscribeParams, SubscriptionFilter,
    method::{PromptListChanged, ResourceListChanged, Subscribe, ToolListChanged, Unsubscribe},
};
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    client::{
        session::SessionState,
        subscriptions::{
            desired::DesiredSubscriptions,
            events::SubscriptionEnd,
            listen_request::{Backoff, FinishGuard, ListenRequest, is_retryable},
            listener::Listener,
        },
    },
    error::Error,
    logged::Logged,
    session::{
        connection::Connection,
        outbound::options::CallOptions,
        task::{spawn, spawn_polled},
    },
};

/// The time for which a subscription stays open after another has replaced it, for notifications that the server was about
/// to send on it.
const OVERLAP: Duration = Duration::from_millis(100);

/// The maximum number of concurrent requests to a legacy server, one for each resource: a server refuses requests if too many
/// are in flight.
const MAX_ASKED: usize = 32;

/// Keeps the desired subscriptions open with the server, until the session ends.
pub(crate) async fn sync_subscriptions(connection: Arc<Connection>, state: Arc<SessionState>) {
    let modern = state.revision().is_modern();
    let sync = SubscriptionSync { connection, state };
    let syncing = async {
        if modern {
            sync.listen().await;
        } else {
            sync.subscribe().await;
        }
    };
    select! {
        biased;
        () = syncing => {}
        () = sync.connection.closing() => {}
        _ = sync.connection.ended() => {}
    }
}

/// The state of the task. Dropping it ends all watches.
struct SubscriptionSync {
    connection: Arc<Connection>,
    state: Arc<SessionState>,
}

impl Drop for SubscriptionSync {
    fn drop(&mut self) {
        let end = if self.connection.is_closing() {
            SubscriptionEnd::Local
        } else {
            SubscriptionEnd::Remote
        };
        self.state.desired.finish(end);
    }
}

/// An open `subscriptions/listen`. Dropping it ends the subscription.
struct OpenListen {
    /// The requested filter, without the resources that the server has refused.
    asked: SubscriptionFilter,
    agreed: SubscriptionFilter,
    listener: Arc<Listener>,
    since: Instant,
    _stop: DropGuard,
}

impl SubscriptionSync {
    fn desired(&self) -> &DesiredSubscriptions {
        &self.state.desired
    }

    /// Keeps one subscription open for all that is desired (2026-07-28 and later).
    async fn listen(&self) {
        let mut backoff = Backoff::new();
        let mut current: Option<OpenListen> = None;
        // Whether changes may have been missed. At first, these are the changes between the opening of the session and the first
        // acknowledgment with lists in it, of the lists that were requested in between.
        let mut gap = false;
        let mut first = true;
        loop {
            let told = current.as_ref().map(|it| &it.asked.resource_subscriptions);
            self.desired().acknowledge_new(told.into_iter().flatten());
            let wanted = self.desired().filter();
            if wanted.is_empty() {
                current = None;
                gap = false;
            } else if current.as_ref().is_none_or(|it| it.asked != wanted) {
                match self.open(wanted).await {
                    Ok(stream) => {
                        let agreed = stream.agreed.clone();
                        // Changes of watched resources are reported from the acknowledgment on.
                        let mut lists = agreed.clone();
                        lists.resource_subscriptions.clear();
                        let has_lists = !lists.is_empty();
                        let old = current.replace(stream);
                        // The old subscription may have ended before the new one was open.
                        gap |= old.as_ref().is_some_and(|it| it.listener.end().is_some());
                        if mem::take(&mut gap) {
                            self.resumed(&agreed);
                        } else if first {
                            self.state.missed(&lists);
                            self.tell(&self.desired().requested_lists(&lists));
                        }
                        first &= !has_lists;
                        close_later(old);
                    }
                    Err(error) => {
                        self.refused(&error, current.as_ref(), &mut backoff).await;
                    }
                }
                continue;
            }
            select! {
                biased;
                () = ended(current.as_ref()) => {
                    gap = true;
                    self.desired().interrupt();
                    let Some(ended) = current.take() else {
                        continue;
                    };
                    if ended.agreed.is_empty() {
                        // A server that has agreed to an empty filter sends no notifications.
                        self.desired().set_lists(SubscriptionFilter::default());
                    } else {
                        let pause = backoff.after(ended.since.elapsed());
                        tracing::debug!(?pause, "subscription interrupted; renewing it after a pause");
                        self.pause(pause).await;
                    }
                }
                () = self.desired().changed() => {}
            }
        }
    }

    /// Opens a subscription, and waits until the server agrees.
    async fn open(&self, asked: SubscriptionFilter) -> Result<OpenListen, Error> {
        let listener = Listener::new(true, &self.connection.limits);
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let finish = FinishGuard(Arc::clone(&listener));
        let request = ListenRequest::new(&self.connection, &self.state, &listener, &stop);
        let filter = asked.clone();
        spawn_polled(async move { finish.with(request.run(filter).await) });
        let agreed = listener.acknowledged().await?;
        let uris: HashSet<&String> = agreed.resource_subscriptions.iter().collect();
        let mut kept = asked.clone();
        kept.resource_subscriptions.retain(|uri| uris.contains(uri));
        self.desired().settle(&asked.resource_subscriptions, &uris);
        Ok(OpenListen {
            agreed,
            asked: kept,
            listener,
            since: Instant::now(),
            _stop: guard,
        })
    }

    /// Tells caches, handlers and watchers, after a gap, that everything that is subscribed to again may have changed.
    fn resumed(&self, agreed: &SubscriptionFilter) {
        self.state.missed(agreed);
        self.tell(agreed);
    }

    /// Calls the handlers and wakes the watchers of all that passes a filter.
    fn tell(&self, agreed: &SubscriptionFilter) {
        let lists = [
            (agreed.tools_list_changed, ToolListChanged::NAME),
            (agreed.prompts_list_changed, PromptListChanged::NAME),
            (agreed.resources_list_changed, ResourceListChanged::NAME),
        ];
        for (_, name) in lists.into_iter().filter(|(heard, _)| *heard) {
            let connection = &self.connection;
            if let Some(run) = self.state.notification_handler(connection, name, None) {
                connection.notifications().push(run, 0);
            }
        }
        for uri in &agreed.resource_subscriptions {
            self.desired().push_update(&ResourceUpdatedParams::new(uri));
        }
    }

    /// Ends the watchers that were waiting for a refused request, or all watchers if no other request can succeed. The
    /// remaining subscriptions are requested again after a pause.
    async fn refused(&self, error: &Error, current: Option<&OpenListen>, backoff: &mut Backoff) {
        let desired = self.desired();
        desired.refuse_new(&|| error.copy());
        if current.is_none() && !is_retryable(error, &self.connection) {
            tracing::warn!(error = %Logged(&error), "the server refused the subscription; change handlers will not be called");
            desired.set_lists(SubscriptionFilter::default());
            for uri in desired.filter().resource_subscriptions {
                desired.refuse(&uri, &|| error.copy());
            }
        }
        let wanted = desired.filter();
        if !wanted.is_empty() && current.is_none_or(|it| it.asked != wanted) {
            let pause = backoff.after(Duration::ZERO);
            tracing::warn!(error = %Logged(&error), ?pause, "could not subscribe to changes; retrying");
            self.pause(pause).await;
        }
    }

    /// Waits before the server is asked again, unless the desired subscriptions change.
    async fn pause(&self, pause: Duration) {
        select! {
            biased;
            () = self.desired().changed() => {}
            () = sleep(pause) => {}
        }
    }

    /// Subscribes to each desired resource, and unsubscribes when it is no longer desired (2025-11-25 and earlier).
    async fn subscribe(&self) {
        let mut held: HashSet<String> = HashSet::new();
        loop {
            self.desired().acknowledge_new(&held);
            let wanted = self.desired().filter().resource_subscriptions;
            let is_unwanted = |uri: &&String| wanted.binary_search(uri).is_err();
            let mut less: Vec<_> = held.iter().filter(is_unwanted).cloned().collect();
            less.sort_unstable();
            let more = wanted.iter().filter(|uri| !held.contains(*uri));
            let more: Vec<_> = more.cloned().collect();
            if more.is_empty() && less.is_empty() {
                self.desired().changed().await;
                continue;
            }
            let dropped = ask_for_each(&self.connection, &self.state, Unsubscribe::NAME, &less);
            for (uri, result) in less.iter().zip(dropped.await) {
                held.remove(uri);
                self.state.requested.unsubscribed(uri);
                if let Err(error) = result {
                    tracing::debug!(error = %Logged(&error), uri, "could not unsubscribe from a resource");
                }
            }
            let asked = ask_for_each(&self.connection, &self.state, Subscribe::NAME, &more);
            for (uri, result) in more.iter().zip(asked.await) {
                match result {
                    Ok(_) => {
                        self.desired().acknowledge(uri);
                        held.insert(uri.clone());
                    }
                    Err(error) => self.desired().refuse(uri, &|| error.copy()),
                }
            }
        }
    }
}

/// Makes a request for each of the resources, a few at a time.
pub(crate) async fn ask_for_each(
    connection: &Arc<Connection>,
    state: &SessionState,
    method: &'static str,
    uris: &[String],
) -> Vec<Result<Box<str>, Error>> {
    let timeout = state.client.features().timeout;
    let mut asked = Vec::with_capacity(uris.len());
    for uri in uris {
        let options = CallOptions {
            timeout,
            max_total: timeout,
            ..CallOptions::default()
        };
        asked.push(async move {
            let params = SubscribeParams::new(uri);
            connection.call(method, &params, options).await
        });
    }
    stream::iter(asked).buffered(MAX_ASKED).collect().await
}

/// Closes a subscription that another has replaced, after [`OVERLAP`].
fn close_later(old: Option<OpenListen>) {
    if let Some(old) = old {
        spawn(async move {
            sleep(OVERLAP).await;
            drop(old);
        });
    }
}

/// Waits until the open subscription ends.
async fn ended(stream: Option<&OpenListen>) {
    match stream {
        Some(stream) => {
            stream.listener.ended().await;
        }
        None => pending().await,
    }
}
