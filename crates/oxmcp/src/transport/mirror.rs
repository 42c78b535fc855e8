//! The headers that repeat parts of requests, for transports that have headers.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    mem::size_of,
    sync::Arc,
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ErrorCode, Method, Tool,
    http_headers::{
        ParamHeaders, encode,
        names::{MCP_METHOD, MCP_NAME},
    },
    internal::{Envelope, Params, RequestParams},
    lenient::Leniency,
    method::CallTool,
};

use crate::{
    error::{Error, Result},
    sync::Mutex,
};

/// The parts of modern requests that a transport repeats in headers, for proxies that route requests without reading them: the
/// method, the name or URI in the params, and the tool arguments that the server wants mirrored.
///
/// A transport with headers creates a mirror, returns it from [`Transport::mirror`](super::Transport::mirror), and asks it for
/// the headers of each request. The client that connects fills it. Clones share their state.
///
/// ```
/// use oxmcp::transport::HeaderMirror;
///
/// let mirror = HeaderMirror::new();
/// let request = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
/// let headers = mirror.headers(request)?;
/// assert_eq!(headers[0], ("mcp-method".to_owned(), "tools/call".to_owned()));
/// assert_eq!(headers[1], ("mcp-name".to_owned(), "add".to_owned()));
/// # Ok::<(), oxmcp::Error>(())
/// ```
///
/// See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).
#[derive(Clone, Default)]
pub struct HeaderMirror(Arc<Mutex<State>>);

/// Tells whether a deviation is tolerated, and takes note of it. The flag says whether it is logged elsewhere.
pub(crate) type ToleratesFn = dyn Fn(Leniency, bool) -> bool + Send + Sync;

/// The known headers of one server.
#[derive(Default)]
struct State {
    /// The headers that extensions add.
    extensions: Vec<ExtensionHeader>,
    /// The tools that want arguments repeated, and those with invalid declarations.
    tools: HashMap<Arc<str>, Entry>,
    /// The names of the tools, in the order in which they were learned.
    order: BTreeMap<u64, Arc<str>>,
    /// The bytes that all entries take; `max_bytes` is their limit.
    bytes: usize,
    max_bytes: usize,
    /// The number of entries that were learned.
    learned: u64,
    /// The tolerance of the client that connects.
    tolerance: Option<Arc<ToleratesFn>>,
}

struct ExtensionHeader {
    method: &'static str,
    member: String,
    header: String,
}

/// The bytes of an entry without headers, including the unused space of maps.
const ENTRY: usize = 2 * (size_of::<Entry>() + 3 * size_of::<Arc<str>>());

struct Entry {
    /// `None` if the declaration of the tool is invalid.
    headers: Option<Arc<ParamHeaders>>,
    /// The number of the entry, in the order of learning.
    learned: u64,
    size: usize,
}

/// The reason why a tool must not be listed.
pub(crate) struct Unsound {
    pub(crate) why: String,
    /// Whether the tool was not reported as unsound before.
    pub(crate) is_new: bool,
}

impl HeaderMirror {
    /// Creates a mirror that knows no tools yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the headers of a modern request, as names in lower case and values that are ready to send. Other messages have
    /// no headers, and neither do messages to legacy servers: the transport must know whether its server is legacy.
    ///
    /// # Errors
    /// If an argument cannot be mirrored, because it is an integer beyond 2^53-1: no server would accept the request. Also if
    /// `message` is not a message.
    pub fn headers(&self, message: &[u8]) -> Result<Vec<(String, String)>> {
        let mut headers = Vec::new();
        let mut params = RequestParams::UNREAD;
        match Envelope::parse(message, &mut params) {
            Ok(Envelope::Request(request)) => {
                let add = |name: &str, value: &str| headers.push((name.into(), value.into()));
                self.each_header(&request.method, request.params, add)?;
            }
            Ok(_) => {}
            Err(malformed) => return Err(malformed.error.into()),
        }
        Ok(headers)
    }

    /// Passes the name and value of each header to `add`, for a request that has been read.
    pub(crate) fn each_header(
        &self,
        method: &str,
        params: Option<&RequestParams<'_>>,
        mut add: impl FnMut(&str, &str),
    ) -> Result<()> {
        add(MCP_METHOD, &encode(method));
        let Some(params) = params else {
            return Ok(());
        };
        let named = match method {
            "tools/call" | "prompts/get" => params.name,
            "resources/read" => params.first_member("uri"),
            _ => None,
        };
        let named = named.and_then(Text::as_str);
        if let Some(name) = &named {
            add(MCP_NAME, &encode(name));
        }
        let state = self.0.lock();
        if method != CallTool::NAME {
            state.each_member(method, params, add);
            return Ok(());
        }
        let tool = named.and_then(|name| state.tools.get(&*name));
        let wanted = tool.and_then(|tool| tool.headers.clone());
        drop(state);
        let (Some(wanted), Some(arguments)) = (wanted, params.arguments) else {
            return Ok(());
        };
        let headers = wanted
            .for_arguments(arguments)
            .map_err(|mismatch| Error::protocol(ErrorCode::INVALID_PARAMS, mismatch.to_string()))?;
        for (name, value) in headers {
            add(name, &value);
        }
        Ok(())
    }

    /// Takes the tolerance of the client that connects.
    pub(crate) fn set_tolerance(&self, tolerance: Arc<ToleratesFn>) {
        self.0.lock().tolerance = Some(tolerance);
    }

    /// Whether the client tolerates a deviation that the transport has found. It is recorded, and logged unless that
    /// `is_logged` elsewhere.
    #[cfg(feature = "http-client")]
    pub(crate) fn tolerates(&self, leniency: Leniency, is_logged: bool) -> bool {
        let tolerance = self.0.lock().tolerance.clone();
        tolerance.is_none_or(|tolerates| tolerates(leniency, is_logged))
    }

    /// Resets the mirror for a new session: with at most `max_bytes` for the headers of tools, and with the headers that
    /// extensions add, each with its method, the member of the params that it repeats, and its name.
    pub(crate) fn begin(&self, max_bytes: usize, extensions: Vec<(&'static str, String, String)>) {
        let extensions = extensions.into_iter();
        let extensions = extensions.map(|(method, member, header)| ExtensionHeader {
            method,
            member,
            header: header.to_ascii_lowercase(),
        });
        let extensions = extensions.collect();
        let mut state = self.0.lock();
        *state = State {
            extensions,
            max_bytes,
            tolerance: state.tolerance.take(),
            ..State::default()
        };
    }

    /// Learns which arguments a tool wants repeated, in place of its earlier declaration.
    ///
    /// # Errors
    /// If the declaration is invalid: the tool must not be listed.
    pub(crate) fn learn(&self, tool: &Tool) -> Result<(), Unsound> {
        let max_bytes = self.0.lock().max_bytes;
        let bare = ENTRY + tool.name.len();
        let headers = ParamHeaders::of(Text::from(&*tool.input_schema), max_bytes);
        let size = bare + headers.as_ref().map_or(0, ParamHeaders::size);
        let headers = headers.and_then(|headers| {
            if size > max_bytes && !headers.is_empty() {
                return Err(ParamHeaders::TOO_MUCH.to_owned());
            }
            Ok(headers)
        });
        let mut state = self.0.lock();
        let before = state.remove(&tool.name);
        match headers {
            Ok(headers) if headers.is_empty() => Ok(()),
            Ok(headers) => {
                state.insert(&tool.name, Some(headers), size);
                Ok(())
            }
            Err(why) => {
                state.insert(&tool.name, None, bare);
                let is_new = before.is_none_or(|entry| entry.headers.is_some());
                Err(Unsound { why, is_new })
            }
        }
    }

    /// Whether it is known that a tool wants arguments repeated.
    pub(crate) fn knows(&self, tool: &str) -> bool {
        let state = self.0.lock();
        state.tools.get(tool).is_some_and(|it| it.headers.is_some())
    }
}

impl State {
    /// Passes the headers that extensions add to a request to `add`.
    fn each_member(
        &self,
        method: &str,
        params: &RequestParams<'_>,
        mut add: impl FnMut(&str, &str),
    ) {
        for row in self.extensions.iter().filter(|row| row.method == method) {
            let value = params.first_member(&row.member).and_then(scalar);
            if let Some(value) = value {
                add(&row.header, &encode(&value));
            }
        }
    }

    fn insert(&mut self, tool: &str, headers: Option<ParamHeaders>, size: usize) {
        if size > self.max_bytes {
            // An entry that is larger than the limit evicts no others.
            return;
        }
        while self.bytes + size > self.max_bytes {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.remove(&oldest);
        }
        let tool: Arc<str> = tool.into();
        self.learned += 1;
        self.bytes += size;
        let entry = Entry {
            headers: headers.map(Arc::new),
            learned: self.learned,
            size,
        };
        self.order.insert(self.learned, Arc::clone(&tool));
        self.tools.insert(tool, entry);
    }

    fn remove(&mut self, tool: &str) -> Option<Entry> {
        let entry = self.tools.remove(tool)?;
        self.order.remove(&entry.learned);
        self.bytes -= entry.size;
        Some(entry)
    }
}

/// A string, a number or a boolean as text.
fn scalar(value: Text<'_>) -> Option<Cow<'_, str>> {
    match value.get().as_bytes().first() {
        Some(b'"') => value.as_str(),
        Some(b'{' | b'[' | b'n') | None => None,
        Some(_) => Some(value.get().into()),
    }
}

impl fmt::Debug for HeaderMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.0.lock().tools.len();
        f.debug_struct("HeaderMirror")
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn mirror(max_bytes: usize) -> HeaderMirror {
        let mirror = HeaderMirror::new();
        mirror.begin(max_bytes, Vec::new());
        mirror
    }

    fn tool(name: &str, schema: &serde_json::Value) -> Tool {
        let raw = to_raw_value(&json!({"name": name, "inputSchema": schema})).unwrap();
        serde_json::from_str(raw.get()).unwrap()
    }

    /// A look at all entries for each new one would take far too long.
    #[test]
    fn invalid_tools_are_evicted_one_at_a_time() {
        let mirror = mirror(16 << 20);
        let mut tool = tool("", &json!({"x-mcp-header": ""}));
        for index in 0..250_000 {
            tool.name = index.to_string();
            assert!(mirror.learn(&tool).is_err());
        }
        let state = mirror.0.lock();
        let sizes = state.tools.values().map(|entry| entry.size);
        assert_eq!(state.bytes, sizes.sum::<usize>());
        assert!(state.bytes <= state.max_bytes);
        assert_eq!(state.order.len(), state.tools.len());
        // A name takes more than its letters.
        assert!(state.tools.len() < 16 << 20 >> 6);
        assert!(state.tools.contains_key("249999") && !state.tools.contains_key("0"));
    }

    #[test]
    fn oversized_tool_evicts_no_other() {
        let mirror = mirror(1000);
        let repeats = json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
        assert!(mirror.learn(&tool("kept", &repeats)).is_ok());
        assert!(mirror.learn(&tool(&"n".repeat(2000), &repeats)).is_err());
        assert!(mirror.knows("kept"));
    }
}
