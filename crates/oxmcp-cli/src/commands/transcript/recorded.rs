//! A recorded session by its exchanges: each request of the client, with what the server sent because of it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    format::{Line, Side},
    redact::Redactor,
};

/// A message of the client, and the messages that the server sent because of it.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) method: String,
    /// The parameters that a request must have to get these answers.
    key: Value,
    pub(super) id: Option<Value>,
    pub(super) progress_token: Option<Value>,
    pub(super) begun: u64,
    pub(super) sent: Vec<Sent>,
}

/// A message that the server sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) t: u64,
    pub(super) message: Value,
}

/// All exchanges of a session.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) exchanges: Vec<Exchange>,
    /// The exchanges by the text of their progress tokens.
    of_token: HashMap<String, usize>,
}

impl Recorded {
    pub(super) fn new(lines: Vec<Line>) -> Self {
        let mut recorded = Self::default();
        // The exchanges without a response, by the text of their IDs.
        let mut open: HashMap<String, usize> = HashMap::new();
        for line in lines {
            let Ok(message) = serde_json::from_str::<Value>(line.message.get()) else {
                continue;
            };
            let id = message.get("id").filter(|it| !it.is_null()).cloned();
            let method = message.get("method").and_then(Value::as_str);
            match (line.from, method) {
                (Side::Client, Some(method)) => {
                    if let Some(id) = &id {
                        open.insert(id.to_string(), recorded.exchanges.len());
                    }
                    let progress_token = message.pointer("/params/_meta/progressToken").cloned();
                    if let Some(token) = &progress_token {
                        let index = recorded.exchanges.len();
                        recorded.of_token.insert(token.to_string(), index);
                    }
                    recorded.exchanges.push(Exchange {
                        method: method.to_owned(),
                        key: key(method, &message),
                        id,
                        progress_token,
                        begun: line.t,
                        sent: Vec::new(),
                    });
                }
                // The answer to a question of the server, which the client of the replay answers itself.
                (Side::Client, None) => {}
                (Side::Server, Some(_)) => {
                    let owner = recorded.owner(&message, &open);
                    recorded.push(owner, line.t, message);
                }
                (Side::Server, None) => {
                    let owner = id.and_then(|it| open.remove(&it.to_string()));
                    recorded.push(owner, line.t, message);
                }
            }
        }
        recorded
    }

    fn push(&mut self, owner: Option<usize>, t: u64, message: Value) {
        if let Some(exchange) = owner.and_then(|it| self.exchanges.get_mut(it)) {
            exchange.sent.push(Sent { t, message });
        }
    }

    /// The exchange that a notification or a request of the server belongs to.
    fn owner(&self, message: &Value, open: &HashMap<String, usize>) -> Option<usize> {
        let token = message.pointer("/params/progressToken");
        let of_token = token.and_then(|it| self.of_token.get(&it.to_string()));
        if let Some(found) = of_token {
            return Some(*found);
        }
        let subscription = message.pointer("/params/_meta/io.modelcontextprotocol~1subscriptionId");
        if let Some(found) = subscription.and_then(|it| open.get(&it.to_string())) {
            return Some(*found);
        }
        let is_listening = |it: usize| {
            let exchange = self.exchanges.get(it);
            exchange.is_some_and(|it| it.method == "subscriptions/listen")
        };
        let latest = open.values().copied().filter(|it| !is_listening(*it)).max();
        latest.or_else(|| self.exchanges.len().checked_sub(1))
    }

    /// Finds the exchange for a message of a client: the first that was not used yet, else the last that fits.
    pub(super) fn find(&self, message: &Value, used: &[bool]) -> Option<usize> {
        let method = message.get("method").and_then(Value::as_str)?;
        let key = key(method, message);
        let fits_exactly = |it: &Exchange| it.method == method && it.key == key;
        let relaxed = without_answers(&key);
        let fits_but_for_answers =
            |it: &Exchange| it.method == method && without_answers(&it.key) == relaxed;
        let fits_method = |it: &Exchange| it.method == method && is_handshake(method);
        self.first(&fits_exactly, used)
            .or_else(|| self.first(&fits_but_for_answers, used))
            .or_else(|| self.first(&fits_method, used))
    }

    fn first(&self, fits: &dyn Fn(&Exchange) -> bool, used: &[bool]) -> Option<usize> {
        let is_unused = |index: usize| used.get(index).is_some_and(|it| !it);
        let mut all = self.exchanges.iter().enumerate();
        all.find(|(index, it)| is_unused(*index) && fits(it))
            .map(|(index, _)| index)
            .or_else(|| self.exchanges.iter().rposition(fits))
    }
}

fn is_handshake(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover")
}

/// The parameters of a message, without what differs from client to client.
fn key(method: &str, message: &Value) -> Value {
    let mut params = message.get("params").cloned().unwrap_or_else(|| json!({}));
    if let Some(params) = params.as_object_mut() {
        params.remove("_meta");
        if is_handshake(method) {
            params.remove("capabilities");
            params.remove("clientInfo");
        }
        if method == "tools/call" {
            params.entry("arguments").or_insert_with(|| json!({}));
        }
    }
    // The secrets of the recorded request were replaced.
    Redactor::default().redact(&mut params);
    params
}

/// The parameters without the answers of the user.
fn without_answers(key: &Value) -> Value {
    let mut key = key.clone();
    if let Some(params) = key.as_object_mut() {
        params.remove("inputResponses");
    }
    key
}
