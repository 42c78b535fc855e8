//! Events that are added at once.

use bytes::Bytes;

/// Events that are added to a stream at once, by [`EventStore::append_all`](super::EventStore::append_all): one or many, whose data
/// lies in one buffer.
///
/// ```
/// use oxmcp::store::EventBatch;
///
/// let batch: EventBatch = ["{}", "[]"].into_iter().collect();
/// let data: Vec<_> = batch.iter().collect();
/// assert_eq!(data, ["{}", "[]"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventBatch {
    /// The data of all, with one byte between them.
    text: Bytes,
    /// Where the data of each ends.
    ends: Vec<usize>,
}

impl EventBatch {
    /// Lines, each of which is the data of an event, up to its newline.
    #[cfg(feature = "http-server")]
    pub(crate) fn of_lines(lines: &[u8]) -> Self {
        Self {
            ends: memchr::memchr_iter(b'\n', lines).collect(),
            text: Bytes::copy_from_slice(lines),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The data of each, in their order. It shares the memory of all of them.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        (0..self.len()).map(|position| self.get(position))
    }

    /// The data of one of them; none where there is no such event.
    pub(super) fn get(&self, position: usize) -> Bytes {
        let before = position.checked_sub(1).and_then(|it| self.ends.get(it));
        let start = before.map_or(0, |end| end + 1);
        let end = self.ends.get(position).copied().unwrap_or(start);
        self.text.slice(start..end)
    }

    /// How many bytes their data takes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl From<Bytes> for EventBatch {
    /// One event.
    fn from(data: Bytes) -> Self {
        Self {
            ends: vec![data.len()],
            text: data,
        }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for EventBatch {
    fn from_iter<I: IntoIterator<Item = T>>(events: I) -> Self {
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        for data in events {
            text.extend_from_slice(data.as_ref());
            ends.push(text.len());
            text.push(b'\n');
        }
        Self {
            text: text.into(),
            ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(batch: &EventBatch) -> Vec<Bytes> {
        batch.iter().collect()
    }

    #[test]
    fn one_event_is_not_copied() {
        let one = Bytes::from(vec![b'x'; 100]);
        let batch = EventBatch::from(one.clone());
        assert_eq!(data(&batch)[0].as_ptr(), one.as_ptr());
        assert_eq!((batch.len(), batch.bytes()), (1, 100));
        assert_eq!(data(&Bytes::new().into()), [""]);
        assert!(EventBatch::default().is_empty() && data(&EventBatch::default()).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_collected_is_there(texts in proptest::collection::vec("(?s).{0,4}", 0..5)) {
            let batch: EventBatch = texts.iter().collect();
            prop_assert_eq!(data(&batch), texts);
        }

        #[cfg(feature = "http-server")]
        #[test]
        fn lines_are_events(texts in proptest::collection::vec("[^\n]{0,4}", 0..5)) {
            let lines: String = texts.iter().map(|text| format!("{text}\n")).collect();
            prop_assert_eq!(data(&EventBatch::of_lines(lines.as_bytes())), texts);
        }
    }
}
