//! Batches of messages, only in revision 2025-03-26, and the responses to them.

use std::{fmt, mem};

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::sync::Mutex;

/// The responses to a batch, which are sent together as one array.
/// See [batching](https://modelcontextprotocol.io/specification/2025-03-26/basic#batching).
#[derive(Debug)]
pub(crate) struct Batch(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The number of answers that are still missing.
    missing: usize,
    /// The responses so far, without their line breaks, as the beginning of the array.
    answers: Vec<u8>,
}

impl Batch {
    pub(crate) fn new(requests: usize) -> Self {
        Self(Mutex::new(State {
            missing: requests,
            answers: Vec::new(),
        }))
    }

    /// Adds a response, or records with `None` that a request gets none. Returns the whole array after the last one, or an
    /// empty `Vec` if there are no responses.
    pub(crate) fn answered(&self, answer: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut state = self.0.lock();
        if let Some(answer) = answer {
            let separator = if state.answers.is_empty() { b'[' } else { b',' };
            state.answers.push(separator);
            state
                .answers
                .extend_from_slice(answer.strip_suffix(b"\n").unwrap_or(answer));
        }
        state.missing = state.missing.saturating_sub(1);
        if state.missing > 0 {
            return None;
        }
        let mut whole = mem::take(&mut state.answers);
        if !whole.is_empty() {
            whole.extend_from_slice(b"]\n");
        }
        Some(whole)
    }
}

/// Parses the elements of a batch, and keeps at most `limit + 1` of them.
pub(crate) fn parse_batch(bytes: &[u8], limit: usize) -> serde_json::Result<Vec<&RawValue>> {
    struct Elements(usize);

    impl<'de> Visitor<'de> for Elements {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a batch (an array)")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while elements.len() <= self.0
                && let Some(element) = seq.next_element()?
            {
                elements.push(element);
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(elements)
        }
    }

    let mut json = serde_json::Deserializer::from_slice(bytes);
    let elements = json.deserialize_seq(Elements(limit))?;
    json.end()?;
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_answers_are_sent_together() {
        let batch = Batch::new(3);
        assert_eq!(batch.answered(Some(b"{\"id\":1}\n")), None);
        assert_eq!(batch.answered(None), None);
        let whole = batch.answered(Some(b"{\"id\":3}\n")).unwrap();
        assert_eq!(whole, b"[{\"id\":1},{\"id\":3}]\n");
    }

    #[test]
    fn fully_cancelled_batch_has_no_answer() {
        assert_eq!(Batch::new(1).answered(None), Some(Vec::new()));
    }
}
