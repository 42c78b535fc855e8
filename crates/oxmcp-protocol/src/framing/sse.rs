//! Event streams: a decoder from chunks to events, and an encoder, within a bound.

use std::{fmt, mem, time::Duration};

/// What a stream may begin with, without any meaning.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// How much longer than its value a line can be.
const LONGEST_FIELD: usize = b"data: ".len();
/// A buffer beyond this is freed as soon as it is empty; a smaller one serves the next event as well.
const KEPT_CAPACITY: usize = 64 << 10;

/// Reads an event stream, exactly as the
/// [standard](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation) says.
///
/// The caller hands each chunk to [`next`](Self::next) until there is nothing more in it. An event that is not whole at the
/// end of the stream is no event. What is read is kept as it came; text that is no UTF-8 is the reader's to refuse.
#[derive(Debug)]
pub struct EventDecoder {
    /// The line that is not yet whole, where chunks have cut it.
    line: Vec<u8>,
    /// What the event says so far.
    data: Vec<u8>,
    /// Whether the event says anything; it may be the empty text.
    has_data: bool,
    name: String,
    /// The last id that the stream has named with a whole event.
    id: String,
    /// The id that stands in this event, which may break off yet.
    next_id: String,
    has_id: bool,
    /// How many bytes an event may say.
    limit: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the first line.
    Beginning,
    /// In another.
    Within,
    /// Behind a `\r`, with which a `\n` would be one line ending.
    BehindReturn,
    /// The last event was handed out; what it was made of goes when the caller asks for more.
    BehindEvent { after_return: bool },
    /// Behind a line or an event beyond the limit.
    Broken,
}

/// What a stream has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum StreamItem<'a> {
    /// An event, whole.
    Event(Event<'a>),
    /// An id without data: nothing has happened, but this is from where to go on.
    Id(&'a str),
    /// How long to wait before opening another connection.
    Retry(Duration),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the standard that it follows is final"
)]
pub struct Event<'a> {
    /// What kind of event it is: `message` where the stream does not say.
    pub name: &'a str,
    /// The last id that the stream has named, with this event or before it. Empty where there was none, or where the
    /// stream took it back.
    pub id: &'a str,
    /// What it says. It is empty where all that it brings is an id.
    pub data: &'a [u8],
}

/// The stream has a line or an event that is longer than allowed. Nothing more can be read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the standard that it follows is final"
)]
pub struct EventTooLong {
    /// How many bytes an event may have.
    pub limit: usize,
}

impl fmt::Display for EventTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        write!(
            f,
            "an event of the stream is longer than {limit} bytes, which is the limit"
        )
    }
}

impl std::error::Error for EventTooLong {}

impl EventDecoder {
    /// Reads events of at most `limit` bytes of data.
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
            place: Place::Beginning,
        }
    }

    /// Goes on reading, for a stream that goes on after one that broke off: its last id.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// The last id that the stream has named with an event, or by itself. Empty where there was none.
    #[cfg(test)]
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Takes the next thing that the chunk holds, and what was read off its front. `None` where all of the chunk was read.
    ///
    /// # Errors
    /// [`EventTooLong`], from then on for ever.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Result<Option<StreamItem<'_>>, EventTooLong> {
        self.forget_event();
        let broken = EventTooLong { limit: self.limit };
        if self.place == Place::Broken {
            return Err(broken);
        }
        let found = loop {
            match self.next_line(chunk) {
                Ok(None) => return Ok(None),
                Ok(Some(LineMeaning::Nothing)) => {}
                Ok(Some(found)) => break found,
                Err(TooLong) => {
                    self.place = Place::Broken;
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

    /// Reads one line, where the chunk ends one.
    fn next_line(&mut self, chunk: &mut &[u8]) -> Result<Option<LineMeaning>, TooLong> {
        if self.place == Place::BehindReturn && !chunk.is_empty() {
            *chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            self.place = Place::Within;
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
            // Taken out while it is read, and put back for the next one: the room is allocated once.
            let mut line = mem::take(&mut self.line);
            let found = self.take(&line);
            line.clear();
            if line.capacity() <= KEPT_CAPACITY {
                self.line = line;
            }
            found
        }?;
        self.place = match found {
            LineMeaning::End => Place::BehindEvent {
                after_return: is_return,
            },
            _ if is_return => Place::BehindReturn,
            _ => Place::Within,
        };
        Ok(Some(found))
    }

    /// Keeps the part of a line that the next chunk goes on with.
    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        self.check(part)?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Whether the line, with this part of it, is within the bound.
    fn check(&self, part: &[u8]) -> Result<(), TooLong> {
        let mark = if self.place == Place::Beginning {
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

    /// Takes a whole line.
    fn take(&mut self, mut line: &[u8]) -> Result<LineMeaning, TooLong> {
        if self.place == Place::Beginning {
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
            // Unknown fields, and comments, which have no name.
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

    /// An empty line ends the event, if there is one.
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

    /// Lets go of the event that was handed out.
    fn forget_event(&mut self) {
        let Place::BehindEvent { after_return } = self.place else {
            return;
        };
        self.place = if after_return {
            Place::BehindReturn
        } else {
            Place::Within
        };
        if self.data.capacity() > KEPT_CAPACITY {
            self.data = Vec::new();
        }
        self.data.clear();
        self.name.clear();
        (self.has_data, self.has_id) = (false, false);
    }
}

/// What a line was good for.
enum LineMeaning {
    Nothing,
    Retry(u64),
    /// The end of an event, or of what brings an id.
    End,
}

struct TooLong;

fn set(text: &mut String, value: &[u8]) {
    text.clear();
    text.push_str(&String::from_utf8_lossy(value));
}

/// The number that is written here, or the largest that there is. `None` where anything but digits is in it.
fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    Some(digits.fold(0, |number, digit| {
        number.saturating_mul(10).saturating_add(digit)
    }))
}

/// An event on its way out.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the standard that it follows is final"
)]
pub struct OutgoingEvent<'a> {
    /// What a reader that lost its connection names, to go on after this event.
    pub id: Option<&'a str>,
    /// What kind of event it is; `message` where none is named.
    pub name: Option<&'a str>,
    /// How long a reader that lost its connection waits before it opens another.
    pub retry: Option<Duration>,
    /// What it says, without the newline that our messages end with. Where line breaks are in it they arrive as `\n`, whatever
    /// they were. It may be empty: an event that only brings an id is written so.
    pub data: &'a [u8],
}

impl OutgoingEvent<'_> {
    /// How much room is made for what is around the data.
    pub const ROOM: usize = 64;

    /// Appends the event. One without line breaks in its data, as every message is, takes one line of data.
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

/// Appends a comment, which readers pass over: it shows that the stream is alive.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
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
