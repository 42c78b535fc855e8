//! The state of a legacy session on the server that this side has requested, and that must be requested again in a new
//! session.

use std::{collections::BTreeMap, sync::Arc};

use oxmcp_protocol::{
    LoggingLevel, Method, SetLevelParams, SubscribeParams,
    method::{SetLevel, Subscribe, Unsubscribe},
};
use serde::de::DeserializeOwned;

use crate::{client::subscriptions::listener::Listener, sync::Mutex};

/// The subscriptions that the server has granted, and the log level.
#[derive(Debug, Default)]
pub(crate) struct RequestedState(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    uris: BTreeMap<String, Subscribers>,
    level: Option<LoggingLevel>,
}

/// The subscribers of a resource.
#[derive(Debug, Default)]
struct Subscribers {
    /// Whether the user has subscribed, by a call.
    called: bool,
    /// The watches that are still held; they may have ended.
    watches: Vec<Arc<Listener>>,
}

impl RequestedState {
    /// Records a request with these `params`, once the server has granted it.
    pub(crate) fn note_granted<M: Method>(&self, params: &[u8]) {
        // The compiler evaluates all but one of these comparisons.
        if M::NAME == Subscribe::NAME {
            self.note_uri(params, Self::subscribed);
        } else if M::NAME == Unsubscribe::NAME {
            self.note_uri(params, Self::unsubscribed);
        } else if M::NAME == SetLevel::NAME {
            let params: Option<SetLevelParams> = read(params);
            if let Some(params) = params {
                self.set_level(params.level);
            }
        }
    }

    fn note_uri(&self, params: &[u8], note: fn(&Self, &str)) {
        let params: Option<SubscribeParams> = read(params);
        if let Some(params) = params {
            note(self, &params.uri);
        }
    }

    fn subscribed(&self, uri: &str) {
        let mut state = self.0.lock();
        state.uris.entry(uri.to_owned()).or_default().called = true;
    }

    pub(crate) fn watched(&self, uri: &str, watch: &Arc<Listener>) {
        let mut state = self.0.lock();
        let subscribers = state.uris.entry(uri.to_owned()).or_default();
        subscribers.watches.push(Arc::clone(watch));
    }

    /// Removes a watch that was dropped, if it was recorded.
    pub(crate) fn unwatched(&self, uri: &str, watch: &Arc<Listener>) {
        let mut state = self.0.lock();
        if let Some(subscribers) = state.uris.get_mut(uri) {
            subscribers.watches.retain(|it| !Arc::ptr_eq(it, watch));
            if subscribers.watches.is_empty() && !subscribers.called {
                state.uris.remove(uri);
            }
        }
    }

    pub(crate) fn unsubscribed(&self, uri: &str) {
        self.0.lock().uris.remove(uri);
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        self.0.lock().level = Some(level);
    }

    /// The URIs of the subscribed resources, in order.
    pub(crate) fn uris(&self) -> Vec<String> {
        let state = self.0.lock();
        state.uris.keys().cloned().collect()
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        self.0.lock().level
    }
}

/// Reads params that this side has written.
fn read<T: DeserializeOwned>(params: &[u8]) -> Option<T> {
    serde_json::from_slice(params).ok()
}
