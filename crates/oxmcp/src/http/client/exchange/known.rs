//! What the next message will most likely share with those before it, so that it need not be read there.

use std::sync::Arc;

use crate::http::client::exchange::message::About;
use crate::{Revision, jsonrpc::RequestId};

/// How long it may be to be remembered.
const MAX_KNOWN: usize = 4 << 10;
/// Of how many tools the calls are remembered: more than most clients call in turn.
const MOST: usize = 8;
/// How each request begins that a session makes. Its id follows.
const BEGINNING: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// What messages of late had in them.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The metadata of the last request that had any. A session says the same in most requests.
    meta: String,
    modern: Option<Revision>,
    /// In the order in which they were learned.
    calls: Vec<KnownCall>,
    /// When what they have was right; see [`Mirror::changes`](crate::transport::Mirror::changes).
    as_of: u64,
}

/// The call of a tool.
#[derive(Debug)]
struct KnownCall {
    /// From behind the id to behind the name. What follows are its arguments, into which nobody needs to look.
    text: Box<[u8]>,
    about: Arc<About>,
}

impl Known {
    pub(crate) fn meta(&self) -> &str {
        &self.meta
    }

    /// The revision of a message that has this metadata.
    pub(crate) fn modern(&self) -> Option<Revision> {
        self.modern
    }

    /// Another request may say the same of itself.
    pub(crate) fn learn_meta(&mut self, meta: &str, modern: Option<Revision>) {
        self.meta.clear();
        if meta.len() <= MAX_KNOWN {
            self.meta.push_str(meta);
        }
        self.modern = modern;
    }

    /// What a message is, if it calls a tool as it was called before.
    pub(crate) fn call(&self, message: &[u8], as_of: u64) -> Option<(RequestId, Arc<About>)> {
        if self.as_of != as_of {
            return None;
        }
        let (id, rest) = behind_id(message)?;
        let known = self.calls.iter().rev();
        let known = known.into_iter().find(|it| rest.starts_with(&it.text))?;
        Some((id, Arc::clone(&known.about)))
    }

    /// Other messages that are the same up to `end`, where the name of a tool ends, are the same in all that matters here.
    pub(crate) fn learn_call(
        &mut self,
        message: &[u8],
        end: usize,
        about: &Arc<About>,
        as_of: u64,
    ) {
        if self.as_of != as_of {
            self.calls.clear();
            self.as_of = as_of;
        }
        let text = message
            .get(..end)
            .and_then(behind_id)
            .map(|(_, text)| text)
            .filter(|text| text.len() <= MAX_KNOWN);
        let Some(text) = text else {
            return;
        };
        if self.calls.len() >= MOST {
            self.calls.remove(0);
        }
        self.calls.push(KnownCall {
            text: text.into(),
            about: Arc::clone(about),
        });
    }
}

/// The id of a request, and what follows it.
fn behind_id(message: &[u8]) -> Option<(RequestId, &[u8])> {
    let rest = message.strip_prefix(BEGINNING)?;
    let end = rest.iter().position(|it| !it.is_ascii_digit())?;
    let (id, rest) = rest.split_at_checked(end)?;
    let id = str::from_utf8(id).ok()?.parse().ok()?;
    Some((RequestId::Number(id), rest))
}
