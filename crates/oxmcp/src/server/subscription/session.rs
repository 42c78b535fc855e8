//! Watching resources within a session: `resources/subscribe` and `resources/unsubscribe`.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Mutex as Turns, task::yield_now};

use super::{
    Topics,
    hooks::{Hooks, Subscribing},
    quota::Taken,
    seen::is_put_to_the_author,
    watches::{Ended, release},
};
use crate::{
    Error, Result,
    protocol::{EmptyResult, Method, SubscribeParams, method},
    server::{
        methods::{Call, Served},
        session::ServerSession,
    },
    session::{Body, Connection, ContextParts, Origin, Peer, RequestContext, Work},
};

/// What a session that `initialize` opened watches.
#[derive(Debug, Default)]
pub(crate) struct Subscribed {
    state: Mutex<State>,
    /// One at a time, in the order of arrival: who unsubscribes relies on having subscribed.
    turns: Turns<()>,
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<Arc<str>, Watch>,
    /// Who asked last. Whether they see something can be asked again later.
    asker: Option<Origin>,
    is_closed: bool,
}

#[derive(Debug)]
struct Watch {
    _room: Taken,
    /// Whom to tell when it ends. `None` while nobody has agreed to it yet, and where nobody asked for it.
    hooks: Option<Arc<Hooks>>,
}

impl Subscribed {
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.lock().watched.contains_key(uri)
    }

    /// All that are watched.
    #[cfg(feature = "http-server")]
    pub(crate) fn uris(&self) -> Vec<String> {
        let state = self.lock();
        state.watched.keys().map(|uri| uri.to_string()).collect()
    }

    /// Which of these are watched.
    pub(crate) fn of(&self, topics: &Topics) -> BTreeSet<Arc<str>> {
        let state = self.lock();
        let watched = topics.uris.iter();
        let watched = watched.filter(|uri| state.watched.contains_key(*uri));
        watched.cloned().collect()
    }

    /// A context in which can be asked whether the client sees something.
    pub(crate) fn context(
        &self,
        connection: &Arc<Connection>,
        peer: &Arc<Peer>,
    ) -> Option<RequestContext> {
        let asker = self.lock().asker.clone()?;
        let branch = connection.branch(asker);
        let context = ContextParts::new(&branch, None, Arc::clone(peer));
        Some(RequestContext::new(Arc::new(context)))
    }

    /// The session has ended. Returns what ends with it.
    pub(crate) fn close(&self) -> Vec<Ended> {
        let mut state = self.lock();
        state.is_closed = true;
        state.asker = None;
        let ended = state.watched.drain();
        ended
            .filter_map(|(uri, watch)| Some((watch.hooks?, uri)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches from now on, so that nothing is missed. `None` where it is watched already.
    fn begin(
        &self,
        uri: &Arc<str>,
        asker: &Origin,
        room: impl FnOnce() -> Result<Taken>,
    ) -> Result<Option<Begun<'_>>> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::closed("the session has ended"));
        }
        state.asker = Some(asker.clone());
        if state.watched.contains_key(uri) {
            return Ok(None);
        }
        let watch = Watch {
            _room: room()?,
            hooks: None,
        };
        state.watched.insert(Arc::clone(uri), watch);
        Ok(Some(Begun {
            subscribed: self,
            uri: Some(Arc::clone(uri)),
        }))
    }
}

/// A resource whose watching is to be agreed to: dropped before, it is not watched.
struct Begun<'a> {
    subscribed: &'a Subscribed,
    uri: Option<Arc<str>>,
}

impl Begun<'_> {
    /// It was agreed to. Returns what has ended meanwhile.
    fn agreed(mut self, hooks: Arc<Hooks>) -> Option<Ended> {
        let uri = self.uri.take()?;
        match self.subscribed.lock().watched.get_mut(&uri) {
            Some(watch) => {
                watch.hooks = Some(hooks);
                None
            }
            None => Some((hooks, uri)),
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(uri) = self.uri.take() {
            self.subscribed.lock().watched.remove(&uri);
        }
    }
}

/// See [subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
pub(in crate::server) fn subscribe(call: Call<'_>) -> Result<Served> {
    let name = method::Subscribe::NAME;
    let Some(Subscribing { hooks }) = call.features.subscribing.clone() else {
        return Err(Error::method_not_found(name));
    };
    let params: SubscribeParams = call.read(name)?;
    if hooks.is_some() && !is_put_to_the_author(call.features, &params.uri, &call.cx) {
        return Err(Error::resource_not_found(&params.uri));
    }
    let session = session(&call.cx)?;
    let work = begin(call.cx, session, hooks, params.uri.into());
    Ok(in_order(work))
}

async fn begin(
    cx: RequestContext,
    session: ServerSession,
    hooks: Option<Arc<Hooks>>,
    uri: Arc<str>,
) -> Result<Body> {
    let peer = session.peer();
    let _turn = peer.subscribed().turns.lock().await;
    let limits = &session.connection().limits;
    let begun = peer
        .subscribed()
        .begin(&uri, cx.parts().connection.origin(), || {
            peer.quota().take([uri.len()], limits)
        })?;
    match (begun, hooks) {
        (Some(begun), Some(hooks)) => {
            off_the_connection().await;
            (hooks.subscribe)(cx, uri.to_string()).await?;
            if let Some(ended) = begun.agreed(hooks) {
                release(&session, vec![ended]);
            }
        }
        (Some(mut begun), None) => begun.uri = None,
        (None, _) => {}
    }
    Ok(Body::of(EmptyResult::default()))
}

/// As [`subscribe`].
#[expect(
    clippy::needless_pass_by_value,
    reason = "all rows of the table have one signature"
)]
pub(in crate::server) fn unsubscribe(call: Call<'_>) -> Result<Served> {
    let name = method::Unsubscribe::NAME;
    if call.features.subscribing.is_none() {
        return Err(Error::method_not_found(name));
    }
    let params: SubscribeParams = call.read(name)?;
    let session = session(&call.cx)?;
    Ok(in_order(end(session, params.uri)))
}

async fn end(session: ServerSession, uri: String) -> Result<Body> {
    let subscribed = session.peer().subscribed();
    let _turn = subscribed.turns.lock().await;
    let ended = subscribed.lock().watched.remove(&*uri);
    if let Some(hooks) = ended.and_then(|watch| watch.hooks) {
        off_the_connection().await;
        (hooks.unsubscribe)(session.clone(), uri).await;
    }
    Ok(Body::of(EmptyResult::default()))
}

fn session(cx: &RequestContext) -> Result<ServerSession> {
    cx.server_session()
        .ok_or_else(|| Error::internal("the request came over no session"))
}

/// Work whose first poll happens at once, so that it takes its turn in the order of arrival.
fn in_order(work: impl Future<Output = Result<Body>> + Send + 'static) -> Served {
    Served::Later(Work {
        future: Box::pin(work),
        pace: None,
        begun: None,
    })
}

/// Goes on in a task of its own: what follows is a user's code, and may take its time.
pub(super) async fn off_the_connection() {
    yield_now().await;
}
