//! Writing event streams.

use std::time::Duration;

/// An event on its way out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing<'a> {
    /// What a reader that lost its connection names, to go on after this event.
    pub(crate) id: Option<&'a str>,
    /// What kind of event it is; `message` where none is named.
    pub(crate) name: Option<&'a str>,
    /// How long a reader that lost its connection waits before it opens another.
    pub(crate) retry: Option<Duration>,
    /// What it says, without the newline that our messages end with. Where line breaks are in it they arrive as `\n`, whatever
    /// they were. It may be empty: an event that only brings an id is written so.
    pub(crate) data: &'a [u8],
}

impl Outgoing<'_> {
    /// How much room is made for what is around the data.
    pub(crate) const ROOM: usize = 64;

    /// Appends the event. One without line breaks in its data, as every message is, takes one line of data.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.data.len() + Self::ROOM);
        if let Some(name) = self.name {
            write_field(out, b"event: ", name);
        }
        if let Some(id) = self.id {
            write_field(out, b"id: ", id);
        }
        if let Some(retry) = self.retry {
            let millis = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
            write_field(out, b"retry: ", itoa::Buffer::new().format(millis));
        }
        write_lines(out, b"data: ", self.data);
        out.push(b'\n');
    }
}

/// Appends a comment, which readers pass over: it shows that the stream is alive.
pub(crate) fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

/// Appends a line whose value has none of what would end it, or make readers ignore it.
fn write_field(out: &mut Vec<u8>, name: &[u8], value: &str) {
    out.extend_from_slice(name);
    let bytes = value.bytes();
    out.extend(bytes.filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
    out.push(b'\n');
}

/// Appends a line for each line of `text`, all with the same beginning.
fn write_lines(out: &mut Vec<u8>, beginning: &[u8], mut text: &[u8]) {
    loop {
        out.extend_from_slice(beginning);
        let end = memchr::memchr2(b'\r', b'\n', text);
        let (line, rest) = text.split_at(end.unwrap_or(text.len()));
        out.extend_from_slice(line);
        out.push(b'\n');
        text = match rest {
            [] => return,
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
        };
    }
}
