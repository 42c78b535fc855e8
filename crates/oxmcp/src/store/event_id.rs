//! The ids of events, as they are on the wire.

use std::fmt;

/// The longest name of a stream.
const MAX_STREAM: usize = 64;

/// The id of an event: which stream of the session it is from, and its index there. On the wire it is
/// `<stream>_<index>`, in the `id` of an event and in `Last-Event-ID`.
///
/// It says nothing of the session: an id of another session names a stream that is not there.
///
/// ```
/// use oxmcp::store::EventId;
///
/// let id = EventId::parse("get_17").unwrap();
/// assert_eq!((id.stream(), id.index()), ("get", 17));
/// assert_eq!(id.to_string(), "get_17");
/// assert!(EventId::parse("get_017").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId<'a> {
    stream: &'a str,
    index: u64,
}

impl<'a> EventId<'a> {
    /// The id of an event. `None` where no id can be made: streams are named by letters, digits and hyphens, 64 at most,
    /// and the index of the first event is 1.
    #[must_use]
    pub fn new(stream: &'a str, index: u64) -> Option<Self> {
        (is_name(stream) && index > 0).then_some(Self { stream, index })
    }

    /// Reads an id. `None` for all that [`Display`](fmt::Display) never writes.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (stream, digits) = text.split_once('_')?;
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_plain || digits.starts_with('0') {
            return None;
        }
        Self::new(stream, digits.parse().ok()?)
    }

    /// Appends it, as it is on the wire.
    #[cfg(feature = "http-server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.stream.as_bytes());
        out.push(b'_');
        out.extend_from_slice(itoa::Buffer::new().format(self.index).as_bytes());
    }

    /// The name of the stream.
    #[must_use]
    pub fn stream(&self) -> &'a str {
        self.stream
    }

    /// The index of the event in the stream, from 1.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }
}

impl fmt::Display for EventId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.stream, self.index)
    }
}

fn is_name(stream: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=MAX_STREAM).contains(&stream.len()) && stream.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attack_16_only_what_is_written_is_read() {
        let long = format!("{}_1", "a".repeat(MAX_STREAM + 1));
        let wrong = [
            "",
            "_",
            "get",
            "get_",
            "_1",
            "get_0",
            "get_01",
            "get_+1",
            "get_-1",
            "get_1_1",
            "get_1 ",
            " get_1",
            "get_١",
            "gët_1",
            "get_18446744073709551616",
            "g\0t_1",
            "get.x_1",
            &long,
        ];
        for text in wrong {
            assert_eq!(EventId::parse(text), None, "{text:?}");
        }
        let last = EventId::parse("7f-A_18446744073709551615").unwrap();
        assert_eq!((last.stream(), last.index()), ("7f-A", u64::MAX));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(stream in "[A-Za-z0-9-]{1,64}", index in 1..u64::MAX) {
            let id = EventId::new(&stream, index).unwrap();
            let text = id.to_string();
            prop_assert_eq!(EventId::parse(&text), Some(id));
        }

        #[cfg(feature = "http-server")]
        #[test]
        fn both_ways_to_write_an_id_agree(stream in "[A-Za-z0-9-]{1,64}", index in 1..u64::MAX) {
            let id = EventId::new(&stream, index).unwrap();
            let mut written = Vec::new();
            id.write(&mut written);
            prop_assert_eq!(written, id.to_string().into_bytes());
        }

        #[test]
        fn what_is_read_is_written_the_same(text in "[a-c_0-3]{0,8}") {
            if let Some(id) = EventId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
