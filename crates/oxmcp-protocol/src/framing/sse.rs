//! Server-sent events: a decoder from chunks to events of bounded length, and an encoder.

use std::{fmt, mem, time::Duration};

use crate::framing::BYTE_ORDER_MARK;

/// The length of the longest field name with its separator, in bytes.
const LONGEST_FIELD: usize = b"data: ".len();
/// The capacity in bytes above which a buffer is freed as soon as it is empty; a smaller one serves the next event as
/// well.
const KEPT_CAPACITY: usize = 64 << 10;

/// Decodes an event stream by the
/// [standard](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation).
///
/// The caller passes each chunk to [`next`](Self::next) until nothing is left of it. An event that is incomplete at the
/// end of the stream is dropped. Data is returned as it was received; the caller must refuse data that is not UTF-8.
#[derive(Debug)]
pub struct EventDecoder {
    /// The beginning of an incomplete line, if chunks have split it.
    line: Vec<u8>,
    /// The data of the current event so far.
    data: Vec<u8>,
    /// Whether the current event has data, which may be empty.
    has_data: bool,
    name: String,
    /// The last id of the stream, as of the last complete event.
    id: String,
    /// The id in the current event, which takes effect only when the event is complete.
    next_id: String,
    has_id: bool,
    /// The maximum length of the data of an event, in bytes.
    limit: usize,
    place: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// In the first line of the stream.
    Beginning,
    /// In a later line.
    Within,
    /// After a `\r`; a `\n` that follows belongs to the same line ending.
    BehindReturn,
    /// After an event that was handed out; its buffers are cleared at the next call.
    BehindEvent { after_return: bool },
    /// After a line or an event beyond the limit.
    Broken,
}

/// An item of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum StreamItem<'a> {
    /// A complete event.
    Event(Event<'a>),
    /// An ID without data. It is not an event, but resumption starts after this ID from now on.
    Id(&'a str),
    /// The reconnection time: how long a client waits before it connects again.
    Retry(Duration),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the standard that it follows is final"
)]
pub struct Event<'a> {
    /// The type of the event: `message` if the stream names none.
    pub name: &'a str,
    /// The last id of the stream, set by this event or by an earlier one. Empty if there was none, or if the stream has
    /// reset it.
    pub id: &'a str,
    /// The data of the event. It is empty if the event has only an ID.
    pub data: &'a [u8],
}

/// A line or an event of the stream is longer than the limit. Nothing more can be read from the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the standard that it follows is final"
)]
pub struct EventTooLong {
    /// The maximum length of an event, in bytes.
    pub limit: usize,
}

impl fmt::Display for EventTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        write!(f, "stream event exceeds the limit of {limit} bytes")
    }
}

impl std::error::Error for EventTooLong {}

impl EventDecoder {
    /// Creates a decoder for events of at most `limit` bytes of data.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: String::new(),
            id: String::new(),
            next_id: String::new(),
            has_id: false,
            limit,
            place: Position::Beginning,
        }
    }

    /// Sets the last ID, for a stream that resumes an interrupted one.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// The last ID that the stream has set, with or without an event. Empty if there was none.
    #[cfg(test)]
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Takes the next item of the chunk, and removes the bytes read from the front of the chunk. `None` if all of the
    /// chunk was read.
    ///
    /// # Errors
    /// [`EventTooLong`]; then all later calls return it, too.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Result<Option<StreamItem<'_>>, EventTooLong> {
        self.forget_event();
        let broken = EventTooLong { limit: self.limit };
        if self.place == Position::Broken {
            return Err(broken);
        }
        let found = loop {
            match self.next_line(chunk) {
                Ok(None) => return Ok(None),
                Ok(Some(LineMeaning::Nothing)) => {}
                Ok(Some(found)) => break found,
                Err(TooLong) => {
                    self.place = Position::Broken;
                    return Err(broken);
                }
            }
        };
        Ok(Some(match found {
            LineMeaning::Retry(millis) => StreamItem::Retry(Duration::from_millis(millis)),
            LineMeaning::End if self.has_data => StreamItem::Event(self.event()),
            _ => StreamItem::Id(&self.id),
        }))
    }

    fn event(&self) -> Event<'_> {
        Event {
            name: if self.name.is_empty() {
                "message"
            } else {
                &self.name
            },
            id: &self.id,
            data: &self.data,
        }
    }

    /// Reads one line, if the chunk completes one.
    fn next_line(&mut self, chunk: &mut &[u8]) -> Result<Option<LineMeaning>, TooLong> {
        if self.place == Position::BehindReturn && !chunk.is_empty() {
            *chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            self.place = Position::Within;
        }
        let Some(end) = memchr::memchr2(b'\r', b'\n', chunk) else {
            self.keep(chunk)?;
            *chunk = &[];
            return Ok(None);
        };
        let (line, rest) = chunk.split_at(end);
        let is_return = rest.first() == Some(&b'\r');
        *chunk = rest.get(1..).unwrap_or_default();
        let found = if self.line.is_empty() {
            self.check(line)?;
            self.take(line)
        } else {
            self.keep(line)?;
            // The buffer is taken out while the line is read, and put back for the next one, so that it is allocated
            // only once.
            let mut line = mem::take(&mut self.line);
            let found = self.take(&line);
            line.clear();
            if line.capacity() <= KEPT_CAPACITY {
                self.line = line;
            }
            found
        }?;
        self.place = match found {
            LineMeaning::End => Position::BehindEvent {
                after_return: is_return,
            },
            _ if is_return => Position::BehindReturn,
            _ => Position::Within,
        };
        Ok(Some(found))
    }

    /// Keeps the beginning of a line that the next chunk continues.
    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        self.check(part)?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Checks that the line, with the part that is to be added, is within the limit.
    fn check(&self, part: &[u8]) -> Result<(), TooLong> {
        let mark = if self.place == Position::Beginning {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        let longest = self.limit.saturating_add(LONGEST_FIELD + mark);
        if self.line.len() + part.len() > longest {
            return Err(TooLong);
        }
        Ok(())
    }

    /// Interprets a complete line.
    fn take(&mut self, mut line: &[u8]) -> Result<LineMeaning, TooLong> {
        if self.place == Position::Beginning {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        self.field(field, value)
    }

    fn field(&mut self, field: &[u8], value: &[u8]) -> Result<LineMeaning, TooLong> {
        match field {
            b"data" => self.say(value)?,
            b"event" => set(&mut self.name, value),
            b"id" if memchr::memchr(0, value).is_none() => {
                set(&mut self.next_id, value);
                self.has_id = true;
            }
            b"retry" => return Ok(digits(value).map_or(LineMeaning::Nothing, LineMeaning::Retry)),
            // Unknown fields and comments (whose field name is empty) are ignored.
            _ => {}
        }
        Ok(LineMeaning::Nothing)
    }

    fn say(&mut self, value: &[u8]) -> Result<(), TooLong> {
        let newline = usize::from(self.has_data);
        if self.data.len() + newline + value.len() > self.limit {
            return Err(TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        Ok(())
    }

    /// Handles an empty line, which ends the event if there is one.
    fn end_event(&mut self) -> LineMeaning {
        if self.has_id {
            mem::swap(&mut self.id, &mut self.next_id);
        }
        if self.has_data || self.has_id {
            return LineMeaning::End;
        }
        self.name.clear();
        LineMeaning::Nothing
    }

    /// Clears the event that was handed out.
    fn forget_event(&mut self) {
        let Position::BehindEvent { after_return } = self.place else {
            return;
        };
        self.place = if after_return {
            Position::BehindReturn
        } else {
            Position::Within
        };
        if self.data.capacity() > KEPT_CAPACITY {
            self.data = Vec::new();
        }
        self.data.clear();
        self.name.clear();
        (self.has_data, self.has_id) = (false, false);
    }
}

/// The effect of a line.
enum LineMeaning {
    Nothing,
    Retry(u64),
    /// The end of an event, or of a block that only sets the id.
    End,
}

struct TooLong;

fn set(text: &mut String, value: &[u8]) {
    text.clear();
    text.push_str(&String::from_utf8_lossy(value));
}

/// Parses a number, saturating at the maximum. `None` if the value is empty or has other characters than digits.
fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    Some(digits.fold(0, |number, digit| {
        number.saturating_mul(10).saturating_add(digit)
    }))
}

/// An event to be written.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the standard that it follows is final"
)]
pub struct OutgoingEvent<'a> {
    /// The id that a client sends after a lost connection to resume after this event.
    pub id: Option<&'a str>,
    /// The type of the event; `message` if it is `None`.
    pub name: Option<&'a str>,
    /// The reconnection time: how long a client waits after a lost connection before it connects again.
    pub retry: Option<Duration>,
    /// The data of the event, without the newline that ends each of our messages. Line breaks in it arrive as `\n`,
    /// whichever kind they are. It may be empty: an event with only an ID is written with empty data.
    pub data: &'a [u8],
}

impl OutgoingEvent<'_> {
    /// The capacity reserved for the fields around the data, in bytes.
    pub const ROOM: usize = 64;

    /// Appends the event. Data without line breaks, such as a message, takes one line.
    pub fn write(&self, out: &mut Vec<u8>) {
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

/// Appends a comment, which clients ignore: it keeps the stream alive.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

/// Appends a field without the bytes of its value that would end the line or make clients ignore the field.
fn write_field(out: &mut Vec<u8>, name: &[u8], value: &str) {
    out.extend_from_slice(name);
    let bytes = value.bytes();
    out.extend(bytes.filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
    out.push(b'\n');
}

/// Appends one line for each line of `text`, each with the prefix `beginning`.
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
