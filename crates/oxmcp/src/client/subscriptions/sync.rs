//! The task of a session that asks the server for all that its handlers and watchers want to hear of.

use std::{
    collections::{BTreeSet, HashSet},
    future::pending,
    mem,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    client::{
        peer::ClientPeer,
        subscriptions::{
            backoff::Backoff,
            desired::Updates,
            events::SubscriptionEnd,
            listen_request::{Asking, Finish, begin, may_help},
            listener::Listener,
        },
    },
    error::Error,
    json::Logged,
    protocol::{
        Method, Notification, ResourceUpdatedParams, SubscribeParams, SubscriptionFilter,
        method::{PromptListChanged, ResourceListChanged, Subscribe, ToolListChanged, Unsubscribe},
    },
    session::{CallOptions, Connection},
};

/// How long a subscription goes on after another has taken its place: what the server was about to say on it is still
/// heard.
const OVERLAP: Duration = Duration::from_millis(100);

/// Asks the server for what is wanted, until the session ends.
pub(crate) async fn follow(connection: Arc<Connection>, peer: Arc<ClientPeer>) {
    let _over = Over {
        connection: Arc::clone(&connection),
        peer: Arc::clone(&peer),
    };
    let follower = Follower {
        connection: Arc::clone(&connection),
        peer: Arc::clone(&peer),
    };
    let modern = peer.negotiated().is_some_and(|it| it.revision.is_modern());
    let following = async {
        if modern {
            follower.listen().await;
        } else {
            follower.subscribe().await;
        }
    };
    select! {
        biased;
        () = following => {}
        () = connection.closing() => {}
        _ = connection.ended() => {}
    }
}

/// Tells those who watch when the session is over.
struct Over {
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
}

impl Drop for Over {
    fn drop(&mut self) {
        let end = if self.connection.is_closing() {
            SubscriptionEnd::Local
        } else {
            SubscriptionEnd::Remote
        };
        self.peer.updates().finish(end);
    }
}

struct Follower {
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
}

/// A subscription that is open. Dropped, it is ended.
struct Stream {
    /// What was wanted when it was opened, without the resources that the server does not tell of: who wanted those has
    /// been told so.
    asked: SubscriptionFilter,
    agreed: SubscriptionFilter,
    listener: Arc<Listener>,
    since: Instant,
    _stop: DropGuard,
}

impl Follower {
    fn updates(&self) -> &Updates {
        self.peer.updates()
    }

    /// Keeps one subscription open for all that is wanted (2026-07-28 and later).
    async fn listen(&self) {
        let mut backoff = Backoff::new();
        let mut current: Option<Stream> = None;
        // Whether something may have been missed that is wanted.
        let mut gap = false;
        loop {
            let told = current.as_ref().map(|it| &it.asked.resource_subscriptions);
            self.updates().still_heard(told.into_iter().flatten());
            let wanted = self.updates().wanted();
            if wanted.is_empty() {
                current = None;
                gap = false;
            } else if current.as_ref().is_none_or(|it| it.asked != wanted) {
                match self.open(wanted).await {
                    Ok(stream) => {
                        let agreed = stream.agreed.clone();
                        let old = current.replace(stream);
                        // The old one may have ended before the new one was there.
                        gap |= old.as_ref().is_some_and(|it| it.listener.end().is_some());
                        if mem::take(&mut gap) {
                            self.resumed(&agreed);
                        }
                        linger(old);
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
                    self.updates().interrupted();
                    let Some(ended) = current.take() else {
                        continue;
                    };
                    if ended.agreed.is_empty() {
                        // A server that agrees to nothing has nothing to say.
                        self.updates().want_lists(SubscriptionFilter::default());
                    } else {
                        let pause = backoff.after(ended.since.elapsed());
                        tracing::debug!(?pause, "what the server says is interrupted");
                        self.pause(pause).await;
                    }
                }
                () = self.updates().changed() => {}
            }
        }
    }

    /// Opens a subscription, and waits until the server agrees.
    async fn open(&self, asked: SubscriptionFilter) -> Result<Stream, Error> {
        let listener = Listener::new(true, &self.connection.limits);
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        begin(listen_once(
            Arc::clone(&self.connection),
            Arc::clone(&self.peer),
            Arc::clone(&listener),
            asked.clone(),
            stop,
        ));
        let agreed = listener.acknowledged().await?;
        let uris: HashSet<&String> = agreed.resource_subscriptions.iter().collect();
        let mut kept = asked.clone();
        kept.resource_subscriptions.retain(|uri| uris.contains(uri));
        self.updates().heard(&asked.resource_subscriptions, &uris);
        Ok(Stream {
            agreed,
            asked: kept,
            listener,
            since: Instant::now(),
            _stop: guard,
        })
    }

    /// Tells everybody, after a gap, that all that is heard of again may have changed.
    fn resumed(&self, agreed: &SubscriptionFilter) {
        self.peer.missed(agreed);
        let lists = [
            (agreed.tools_list_changed, ToolListChanged::NAME),
            (agreed.prompts_list_changed, PromptListChanged::NAME),
            (agreed.resources_list_changed, ResourceListChanged::NAME),
        ];
        for (_, name) in lists.into_iter().filter(|(heard, _)| *heard) {
            if let Some(job) = self.peer.hook(name, None) {
                self.connection.lane().push(job, 0);
            }
        }
        for uri in &agreed.resource_subscriptions {
            self.updates().updated(&ResourceUpdatedParams::new(uri));
        }
    }

    /// After a refusal whoever wanted more than before goes without it, and where asking again cannot help all do. What
    /// is still wanted then is asked for after a pause.
    async fn refused(&self, error: &Error, current: Option<&Stream>, backoff: &mut Backoff) {
        let updates = self.updates();
        updates.refuse_new(&|| error.copy());
        if current.is_none() && !may_help(error) {
            tracing::warn!(error = %Logged(&error), "the server does not say what changes; handlers of changes are not called");
            updates.want_lists(SubscriptionFilter::default());
            for uri in updates.wanted().resource_subscriptions {
                updates.refuse(&uri, &|| error.copy());
            }
        }
        let wanted = updates.wanted();
        if !wanted.is_empty() && current.is_none_or(|it| it.asked != wanted) {
            let pause = backoff.after(Duration::ZERO);
            tracing::warn!(error = %Logged(&error), ?pause, "the server does not say what changes; it is asked again");
            self.pause(pause).await;
        }
    }

    /// Waits before the server is asked again, unless somebody wants something else.
    async fn pause(&self, pause: Duration) {
        select! {
            biased;
            () = self.updates().changed() => {}
            () = sleep(pause) => {}
        }
    }

    /// Subscribes to each resource that is wanted, and takes it back where it is wanted no more (2025-11-25 and earlier).
    async fn subscribe(&self) {
        let mut held: BTreeSet<String> = BTreeSet::new();
        loop {
            self.updates().still_heard(&held);
            let wanted = self.updates().wanted().resource_subscriptions;
            let wanted: BTreeSet<_> = wanted.into_iter().collect();
            let more: Vec<_> = wanted.difference(&held).cloned().collect();
            let less: Vec<_> = held.difference(&wanted).cloned().collect();
            if more.is_empty() && less.is_empty() {
                self.updates().changed().await;
                continue;
            }
            let dropped = join_all(less.iter().map(|uri| self.ask::<Unsubscribe>(uri)));
            for (uri, result) in less.iter().zip(dropped.await) {
                held.remove(uri);
                if let Err(error) = result {
                    tracing::debug!(error = %Logged(&error), uri, "the server did not take back a subscription");
                }
            }
            let asked = join_all(more.iter().map(|uri| self.ask::<Subscribe>(uri)));
            for (uri, result) in more.iter().zip(asked.await) {
                match result {
                    Ok(_) => {
                        self.updates().acknowledge(uri);
                        held.insert(uri.clone());
                    }
                    Err(error) => self.updates().refuse(uri, &|| error.copy()),
                }
            }
        }
    }

    async fn ask<M: Method<Params = SubscribeParams>>(&self, uri: &str) -> Result<Box<str>, Error> {
        let timeout = self.peer.client().features().timeout;
        let options = CallOptions {
            timeout,
            max_total: timeout,
            ..CallOptions::default()
        };
        self.connection
            .call(M::NAME, SubscribeParams::new(uri), options)
            .await
    }
}

/// Makes one request for a subscription, and says how it ended.
async fn listen_once(
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
    listener: Arc<Listener>,
    asked: SubscriptionFilter,
    stop: CancellationToken,
) {
    let finish = Finish(Arc::clone(&listener));
    let asking = Asking {
        connection,
        listeners: Arc::clone(peer.listeners()),
        listener,
        stop,
        patience: peer.client().features().timeout,
    };
    let over = asking.request(asked).await;
    finish.with(over);
}

/// Lets a subscription go on for a while whose place another has taken.
fn linger(old: Option<Stream>) {
    if let Some(old) = old {
        tokio::spawn(async move {
            sleep(OVERLAP).await;
            drop(old);
        });
    }
}

/// Waits until a subscription ends that is open.
async fn ended(stream: Option<&Stream>) {
    match stream {
        Some(stream) => {
            stream.listener.ended().await;
        }
        None => pending().await,
    }
}
