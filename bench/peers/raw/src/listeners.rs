//! The streams that are notified of updates.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// The number of updates that may wait for a slow listener, before the listener is dropped.
const WAITING: usize = 16;

/// All listeners.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Listener>>);

struct Listener {
    /// The subscription that the update belongs to, in the modern era.
    subscription: Option<Box<RawValue>>,
    events: mpsc::Sender<Bytes>,
}

impl Listeners {
    /// Adds a listener, and returns the receiver of its updates.
    pub(crate) fn listen(&self, subscription: Option<Box<RawValue>>) -> mpsc::Receiver<Bytes> {
        let (events, heard) = mpsc::channel(WAITING);
        self.with(|listeners| {
            listeners.push(Listener {
                subscription,
                events,
            });
        });
        heard
    }

    /// Notifies all listeners that the resource has changed.
    pub(crate) fn update(&self, uri: &str) {
        let start = format!(
            r#"data: {{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}""#
        );
        let legacy = Bytes::from([&start, "}}\n\n"].concat());
        self.with(|listeners| {
            listeners.retain(|listener| {
                let event = match &listener.subscription {
                    None => legacy.clone(),
                    Some(id) => modern(&start, id.get()),
                };
                listener.events.try_send(event).is_ok()
            });
        });
    }

    fn with(&self, what: impl FnOnce(&mut Vec<Listener>)) {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn modern(start: &str, id: &str) -> Bytes {
    let meta = r#","_meta":{"io.modelcontextprotocol/subscriptionId":"#;
    [start, meta, id, "}}}\n\n"].concat().into()
}
