//! The caller of a request, and the head of its HTTP request, which handlers can read.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{
    Extensions, HeaderName, HeaderValue, Method, Request, Uri, Version, header::HeaderMap,
    request::Parts,
};
use memchr::memchr;
use oxmcp_protocol::TraceContext;

use crate::session::{
    connection::{Caller, RequestContext, RequestHead},
    driver::budget::{Budget, Charge},
    trace::propagator,
};

impl RequestContext {
    /// Returns the HTTP request that carried this request: its headers, and its extensions with data from middleware in front of
    /// the endpoint. Returns `None` over other transports. Over the 2024-11-05 transport it is the request that opened the stream,
    /// but [`principal`](Self::principal) is the caller who posted the message.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// let tool = Tool::new("browser", "Name the calling program", |cx: RequestContext| async move {
    ///     let agent = cx.http_request().and_then(|request| request.headers.get("user-agent"));
    ///     agent.and_then(|agent| agent.to_str().ok()).unwrap_or("unknown").to_owned()
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn http_request(&self) -> Option<&Parts> {
        let request = self.parts().connection.caller().request.as_ref()?;
        Some(request.parts())
    }

    /// Ends the response stream of this request before the response is ready, and tells the client when to reconnect for it. For
    /// handlers that run for minutes, on platforms where connections are costly or short-lived. The handler continues, and its
    /// messages are stored for the client.
    ///
    /// This works in sessions of revision 2025-11-25 over HTTP if the endpoint has an event store. Otherwise it does nothing, so
    /// handlers may call it anywhere. See
    /// [polling](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// let tool = Tool::new("report", "Write the report", |cx: RequestContext| async move {
    ///     cx.close_stream(Duration::from_secs(5));
    ///     // … work for an hour …
    ///     "done"
    /// });
    /// # let _ = tool;
    /// ```
    pub fn close_stream(&self, retry: Duration) {
        let parts = self.parts();
        let connection = &parts.connection;
        if connection.caller().request.is_some() && parts.peer.revision.has_polling() {
            connection.outbox.part(retry);
        }
    }
}

/// The caller of a request.
pub(crate) fn caller(parts: Arc<Parts>) -> Caller {
    Caller {
        principal: parts.extensions.get().cloned(),
        trace: trace_context(&parts),
        is_alone: parts.version < Version::HTTP_2,
        request: Some(parts),
    }
}

/// The caller of a request that starts a subscription or another lasting operation. The operation keeps the caller, so it counts
/// against the budget.
pub(crate) fn lasting_caller(parts: &Parts, budget: &Arc<Budget>) -> Caller {
    Caller {
        principal: parts.extensions.get().cloned(),
        trace: trace_context(parts),
        is_alone: parts.version < Version::HTTP_2,
        request: Some(Arc::new(DetachedHead::new(parts, budget))),
    }
}

/// The trace context of the HTTP request. Repeated headers are joined into one list. `traceparent` is not a list, so a repeated one
/// is invalid.
fn trace_context(parts: &Parts) -> Option<Box<TraceContext>> {
    if !propagator::is_set() {
        return None;
    }
    let context = TraceContext::read(|name| {
        let values = parts.headers.get_all(name).iter();
        let values: Result<Vec<_>, _> = values.map(HeaderValue::to_str).collect();
        let values = values.ok().filter(|values| !values.is_empty())?;
        Some(values.join(",").into())
    });
    (!context.is_empty()).then(|| Box::new(context))
}

/// A compact copy of a request's head, for lasting operations such as subscriptions. The head from hyper shares a buffer with
/// everything that was read together, and would keep that buffer alive. Few handlers ask for the head again.
pub(crate) struct DetachedHead {
    method: Method,
    version: Version,
    extensions: Extensions,
    /// The URI and the headers, as lines. None of them can contain a newline.
    lines: Box<[u8]>,
    /// The restored head, once a handler has asked for it.
    parts: OnceLock<Box<Parts>>,
    _charge: Charge,
}

impl RequestHead for Parts {
    fn parts(&self) -> &Parts {
        self
    }
}

impl RequestHead for DetachedHead {
    fn parts(&self) -> &Parts {
        self.parts.get_or_init(|| Box::new(self.restore()))
    }
}

/// The first byte of a header line: whether the header is sensitive.
const PLAIN: u8 = b'-';
const SENSITIVE: u8 = b'!';

impl DetachedHead {
    fn new(parts: &Parts, budget: &Arc<Budget>) -> Self {
        let uri = parts.uri.to_string();
        let headers = parts.headers.iter();
        // Each header also has its kind, its colon and its newline.
        let length = headers.map(|(name, value)| name.as_str().len() + value.len() + 3);
        let mut lines = Vec::with_capacity(uri.len() + 1 + length.sum::<usize>());
        lines.extend_from_slice(uri.as_bytes());
        lines.push(b'\n');
        for (name, value) in &parts.headers {
            let kind = if value.is_sensitive() {
                SENSITIVE
            } else {
                PLAIN
            };
            lines.push(kind);
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.push(b':');
            lines.extend_from_slice(value.as_bytes());
            lines.push(b'\n');
        }
        Self {
            method: parts.method.clone(),
            version: parts.version,
            extensions: parts.extensions.clone(),
            // Counted twice: for the lines, and for the head that handlers read.
            _charge: budget.charge(lines.len() * 2),
            lines: lines.into(),
            parts: OnceLock::new(),
        }
    }

    fn restore(&self) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        let mut lines = self.lines.split(|byte| *byte == b'\n');
        let uri = lines.next().and_then(|uri| Uri::try_from(uri).ok());
        parts.uri = uri.unwrap_or_default();
        let headers = lines.filter_map(header);
        parts.headers = headers.fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        });
        parts.method = self.method.clone();
        parts.version = self.version;
        parts.extensions = self.extensions.clone();
        parts
    }
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (kind, line) = line.split_first()?;
    let (name, value) = line.split_at(memchr(b':', line)?);
    let name = HeaderName::from_bytes(name).ok()?;
    let mut value = HeaderValue::from_bytes(value.get(1..)?).ok()?;
    value.set_sensitive(*kind == SENSITIVE);
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn detached_head_is_equal_and_shares_no_memory() {
        let read = Bytes::from(b"/mcp?x=1 value".to_vec());
        let mut value = HeaderValue::from_maybe_shared(read.slice(9..)).unwrap();
        value.set_sensitive(true);
        let uri = Uri::from_maybe_shared(read.slice(..8)).unwrap();
        let request = Request::post(uri)
            .version(Version::HTTP_10)
            .header("a", value)
            .header("b", HeaderValue::from_bytes(b":\xff: ").unwrap())
            .header("b", "")
            .extension(7);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert!(!read.is_unique());
        let budget = Budget::new(1000);
        let detached = DetachedHead::new(&parts, &budget);
        assert_eq!(budget.used(), detached.lines.len() * 2);
        let headers = parts.headers.clone();
        drop(parts);
        let there = detached.parts();
        assert_eq!(there.headers, headers);
        drop(headers);
        assert!(read.is_unique());
        assert_eq!(there.uri, "/mcp?x=1");
        assert!(there.headers["a"].is_sensitive() && !there.headers["b"].is_sensitive());
        assert_eq!(
            (&there.method, there.version),
            (&Method::POST, Version::HTTP_10)
        );
        assert_eq!(there.extensions.get(), Some(&7));
    }
}
