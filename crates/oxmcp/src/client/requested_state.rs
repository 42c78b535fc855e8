//! The state of a legacy session on the server's side that this side has asked for: it has to be asked for again in another session.

use std::collections::BTreeSet;

use oxmcp_protocol::{
    LoggingLevel, Method, SetLevelParams, SubscribeParams,
    method::{SetLevel, Subscribe, Unsubscribe},
};
use serde::de::DeserializeOwned;

use crate::sync::Mutex;

/// The subscriptions that the server has agreed to, and the log level.
#[derive(Debug, Default)]
pub(crate) struct RequestedState(Mutex<State>);

#[derive(Clone, Debug, Default)]
struct State {
    uris: BTreeSet<String>,
    level: Option<LoggingLevel>,
}

impl RequestedState {
    /// Notes a request, of which `params` are the params, once the server has granted it.
    pub(crate) fn note_granted<M: Method>(&self, params: &[u8]) {
        // All but one of these comparisons are made by the compiler.
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

    pub(crate) fn subscribed(&self, uri: &str) {
        self.0.lock().uris.insert(uri.to_owned());
    }

    pub(crate) fn unsubscribed(&self, uri: &str) {
        self.0.lock().uris.remove(uri);
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        self.0.lock().level = Some(level);
    }

    /// The resources that are subscribed to, in order.
    pub(crate) fn uris(&self) -> Vec<String> {
        let state = self.0.lock();
        state.uris.iter().cloned().collect()
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        self.0.lock().level
    }
}

/// Params that this side has written.
fn read<T: DeserializeOwned>(params: &[u8]) -> Option<T> {
    serde_json::from_slice(params).ok()
}
