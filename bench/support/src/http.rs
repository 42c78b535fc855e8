//! HTTP/1.1 for the driver: a writer of requests and a parser of responses.

use std::ops::Range;

use crate::{Call, Era};

/// A writer of requests for one host, era and session.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The `Host` header, with the port.
    pub host: String,
    /// The era in which requests are written.
    pub era: Era,
    /// The `Mcp-Session-Id` header, once there is a session.
    pub session: Option<String>,
    /// The `Authorization` header.
    pub authorization: Option<&'static str>,
}

impl Requests {
    /// A writer of requests, before there is a session.
    #[must_use]
    pub fn new(host: impl Into<String>, era: Era) -> Self {
        Self {
            host: host.into(),
            era,
            session: None,
            authorization: None,
        }
    }

    /// Appends a POST with the call whose message is `body`.
    pub fn call(&self, call: &Call, body: &[u8], out: &mut Vec<u8>) {
        self.post(call.method(), call.name(), body, out);
    }

    /// Appends a POST with a message. `method` and `name` are those of the message.
    pub fn post(&self, method: &str, name: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        let body = body.trim_ascii_end();
        self.start("POST", "application/json, text/event-stream", out);
        if self.era == Era::Modern {
            put(out, &["Mcp-Method: ", method, "\r\n"]);
            if let Some(name) = name {
                put(out, &["Mcp-Name: ", name, "\r\n"]);
            }
        }
        let length = body.len().to_string();
        put(out, &["Content-Type: application/json\r\n"]);
        put(out, &["Content-Length: ", &length, "\r\n\r\n"]);
        out.extend_from_slice(body);
    }

    /// Appends a request without a body: `GET` or `DELETE`.
    pub fn bare(&self, verb: &str, out: &mut Vec<u8>) {
        self.start(verb, "text/event-stream", out);
        put(out, &["\r\n"]);
    }

    fn start(&self, verb: &str, accept: &str, out: &mut Vec<u8>) {
        put(out, &[verb, " /mcp HTTP/1.1\r\nHost: ", &self.host, "\r\n"]);
        put(out, &["Accept: ", accept, "\r\n"]);
        if let Some(authorization) = self.authorization {
            put(out, &["Authorization: ", authorization, "\r\n"]);
        }
        if let Some(session) = &self.session {
            put(out, &["Mcp-Session-Id: ", session, "\r\n"]);
        }
        if self.session.is_some() || self.era == Era::Modern {
            put(
                out,
                &["MCP-Protocol-Version: ", self.era.revision(), "\r\n"],
            );
        }
    }
}

fn put(out: &mut Vec<u8>, words: &[&str]) {
    for word in words {
        out.extend_from_slice(word.as_bytes());
    }
}

/// A parser of the responses of a connection, which is fed with bytes as they arrive.
#[derive(Debug, Default)]
pub struct Responses {
    buffer: Vec<u8>,
    /// The bytes of `buffer` before this index are consumed.
    start: usize,
    current: Option<Response>,
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The head, in lower case.
    head: String,
    body: Vec<u8>,
    /// The remaining length of the body; `None` for a chunked body.
    length: Option<usize>,
}

impl Responses {
    /// The buffer to which received bytes are appended.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.start = 0;
        &mut self.buffer
    }

    /// The next response, once it is complete.
    ///
    /// # Errors
    /// If the bytes are not HTTP.
    pub fn next_response(&mut self) -> Result<Option<Response>, String> {
        if !self.has_head()? {
            return Ok(None);
        }
        let Some(mut response) = self.current.take() else {
            return Ok(None);
        };
        let whole = match response.length {
            Some(length) => self.take(length).map(|body| {
                response.body = self.bytes(body).to_vec();
            }),
            None => self.chunks(&mut response.body)?,
        };
        if whole.is_some() {
            return Ok(Some(response));
        }
        self.current = Some(response);
        Ok(None)
    }

    /// Whether the head of the next response is complete, even if its body is not.
    ///
    /// # Errors
    /// If the bytes are not HTTP.
    pub fn has_head(&mut self) -> Result<bool, String> {
        if self.current.is_some() {
            return Ok(true);
        }
        let fresh = self.bytes(self.start..self.buffer.len());
        let Some(end) = memchr::memmem::find(fresh, b"\r\n\r\n") else {
            return Ok(false);
        };
        let head = String::from_utf8_lossy(fresh.get(..end).unwrap_or_default()).to_lowercase();
        self.start += end + 4;
        self.current = Some(Response::new(head)?);
        Ok(true)
    }

    /// The response whose head is complete, and the bytes of the body that have arrived.
    #[must_use]
    pub fn so_far(&self) -> Option<(&Response, &[u8])> {
        let rest = self.bytes(self.start..self.buffer.len());
        self.current.as_ref().map(|response| (response, rest))
    }

    /// Drops the bytes of the body that have arrived.
    pub fn forget(&mut self) {
        self.start = self.buffer.len();
    }

    /// Takes `length` bytes, if they are there.
    fn take(&mut self, length: usize) -> Option<Range<usize>> {
        let end = self.start + length;
        (end <= self.buffer.len()).then(|| std::mem::replace(&mut self.start, end)..end)
    }

    /// Takes complete chunks; `None` until the last chunk was taken.
    fn chunks(&mut self, body: &mut Vec<u8>) -> Result<Option<()>, String> {
        loop {
            let fresh = self.bytes(self.start..self.buffer.len());
            let Some(line) = memchr::memmem::find(fresh, b"\r\n") else {
                return Ok(None);
            };
            let size = String::from_utf8_lossy(fresh.get(..line).unwrap_or_default()).into_owned();
            let size =
                usize::from_str_radix(size.trim(), 16).map_err(|e| format!("{size}: {e}"))?;
            let Some(chunk) = self.take(line + 2 + size + 2) else {
                return Ok(None);
            };
            if size == 0 {
                return Ok(Some(()));
            }
            let data = chunk.start + line + 2;
            body.extend_from_slice(self.bytes(data..data + size));
        }
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }
}

impl Response {
    fn new(head: String) -> Result<Self, String> {
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut response = Self {
            status: status.ok_or_else(|| format!("no status in {head}"))?,
            head,
            body: Vec::new(),
            length: None,
        };
        if response.header("transfer-encoding") != Some("chunked") {
            let length = response.header("content-length").unwrap_or("0");
            response.length = Some(length.parse().map_err(|e| format!("{length}: {e}"))?);
        }
        Ok(response)
    }

    /// The value of a header, in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (header, value) = line.split_once(':')?;
            (header == name).then(|| value.trim())
        })
    }

    /// The messages in the body: one, or one for each event.
    ///
    /// # Errors
    /// If the status is not one of success.
    pub fn messages(&self) -> Result<Vec<&[u8]>, String> {
        if !(200..300).contains(&self.status) {
            let body = String::from_utf8_lossy(&self.body);
            return Err(format!("status {}: {body:.300}", self.status));
        }
        let is_stream = self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        if !is_stream {
            let whole = self.body.trim_ascii();
            return Ok((!whole.is_empty()).then_some(whole).into_iter().collect());
        }
        let data = self
            .body
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"data:"));
        Ok(data
            .map(<[u8]>::trim_ascii)
            .filter(|data| !data.is_empty())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}\
        HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
        e\r\nid: 1\ndata: \n\n\r\n13\r\ndata: {\"a\":1}\n\ndata\r\n9\r\n: {\"b\":2}\r\n2\r\n\n\n\r\n0\r\n\r\n";

    #[test]
    fn responses_are_whole_for_any_chunking() {
        for size in 1..TWO.len() {
            let (mut responses, mut seen) = (Responses::default(), Vec::new());
            for piece in TWO.as_bytes().chunks(size) {
                responses.room().extend_from_slice(piece);
                while let Some(response) = responses.next_response().unwrap() {
                    let messages = response.messages().unwrap();
                    seen.extend(
                        messages
                            .iter()
                            .map(|it| String::from_utf8_lossy(it).into_owned()),
                    );
                }
            }
            assert_eq!(
                seen,
                ["{}", r#"{"a":1}"#, r#"{"b":2}"#],
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn refused_request_yields_no_message() {
        let mut responses = Responses::default();
        responses
            .room()
            .extend_from_slice(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
        let refused = responses.next_response().unwrap().unwrap().messages().err();
        assert_eq!(refused.unwrap(), "status 503: busy");
    }
}
