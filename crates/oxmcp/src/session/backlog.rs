//! What arrived while too much was unsent, and waits until there is room for its answer.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::{
    json::Text,
    jsonrpc::{Envelope, Params, RequestId},
    transport::Frame,
};

/// What an entry takes beside its bytes, roughly.
const OVERHEAD: usize = 96;

/// Messages that will be answered, in the order in which they came.
///
/// It is what keeps two peers that flood each other from waiting for each other for ever: neither reads the answers of
/// the other while it reads nothing. What needs no answer is never kept here, so answers, cancellations and
/// notifications pass the requests that have to wait.
#[derive(Debug)]
pub(crate) struct Backlog {
    kept: VecDeque<Kept>,
    bytes: usize,
    limit: usize,
    /// Whether an `initialize` was let through.
    opened: bool,
}

#[derive(Debug)]
struct Kept {
    /// The id of a request.
    id: Option<RequestId>,
    /// `None` for a message that was too long.
    message: Option<Vec<u8>>,
}

impl Kept {
    fn size(&self) -> usize {
        OVERHEAD + self.message.as_ref().map_or(0, Vec::len)
    }
}

impl Backlog {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            limit,
            opened: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether nothing more should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.limit
    }

    /// Keeps a message that will be answered. `false` where it is one that can be taken at once. While the connection is
    /// `held`, what is being done decides what all else means, and only what concerns our own calls is taken.
    pub(crate) fn keep(&mut self, frame: &Frame<'_>, held: bool) -> bool {
        let bytes = match frame {
            Frame::Message(bytes) => *bytes,
            Frame::TooLong { .. } => {
                self.push(None, None);
                return true;
            }
            Frame::Failed { .. } => return false,
        };
        let mut params = Text::UNREAD;
        let id = match Envelope::parse(bytes, &mut params) {
            Ok(Envelope::Response(_)) => return false,
            Ok(Envelope::Notification(it)) if it.method == "notifications/cancelled" => {
                return self.cancel(it.params.map(|params| params.get()));
            }
            Ok(Envelope::Notification(it)) if !held || it.method == "notifications/progress" => {
                return false;
            }
            // Its answer is small, and what follows relies on it. It is sent once; a flood of it must wait like any other.
            Ok(Envelope::Request(it)) if it.method == "initialize" && !self.opened && !held => {
                self.opened = true;
                return false;
            }
            Ok(Envelope::Request(request)) => Some(request.id),
            Ok(Envelope::Notification(_)) | Err(_) => None,
        };
        self.push(id, Some(bytes.to_vec()));
        true
    }

    /// Runs `take` on the oldest.
    pub(crate) fn pop(&mut self, take: impl FnOnce(Frame<'_>)) {
        let Some(kept) = self.kept.pop_front() else {
            return;
        };
        self.bytes -= kept.size();
        take(
            kept.message
                .as_deref()
                .map_or(Frame::TooLong { beginning: b"" }, Frame::Message),
        );
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
        }
    }

    fn push(&mut self, id: Option<RequestId>, message: Option<Vec<u8>>) {
        let kept = Kept { id, message };
        self.bytes += kept.size();
        self.kept.push_back(kept);
    }

    /// Forgets a request that is cancelled before it was begun. `false` where it is not here.
    fn cancel(&mut self, params: Option<&str>) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }
        let cancelled = params.and_then(|params| serde_json::from_str::<Cancelled>(params).ok());
        let Some(Cancelled { request_id }) = cancelled else {
            return false;
        };
        let mut waiting = self.kept.iter();
        let found = waiting.position(|kept| kept.id.as_ref() == Some(&request_id));
        let removed = found.and_then(|index| self.kept.remove(index));
        self.bytes -= removed.as_ref().map_or(0, Kept::size);
        removed.is_some()
    }
}
