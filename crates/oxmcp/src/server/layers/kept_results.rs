//! [`KeptResults`], results that were too long for a response, as resources.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use oxmcp_protocol::{ContentBlock, Resource, ResourceContents};
use tokio::time::Instant;

use super::counted::session_of;
use crate::{
    debug::opaque_debug, server::resource::ResourceTemplate, session::connection::RequestContext,
    sync::Mutex,
};

/// The beginning of the URI of each kept result.
const PREFIX: &str = "kept-result:///";
/// The default number of bytes that are kept.
const MAX_BYTES: usize = 64 << 20;
/// The default time for which a result is kept.
const MAX_AGE: Duration = Duration::from_secs(600);
/// The size of the bookkeeping for a result, approximately, so that small results are bounded, too.
const ENTRY: usize = 256;

/// Results that were too long for a response, which their callers can read as resources; see
/// [`ResultLimit::keep`](super::ResultLimit::keep). Clones share the results.
///
/// A result can be read only by its principal; without authentication, only in its session; and over HTTP with neither, by
/// anyone who knows its URI, which cannot be guessed. It is kept in the memory of this process: behind a load balancer, another node
/// does not have it.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::{Server, layers::{KeptResults, ResultLimit}};
///
/// let kept = KeptResults::new().max_bytes(16 << 20).max_age(Duration::from_secs(300));
/// let server = Server::new("logs", "1.0.0")
///     .layer(ResultLimit::new(50_000).keep(&kept))
///     .resource_template(kept.template());
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct KeptResults {
    max_bytes: usize,
    max_age: Duration,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    /// The oldest first.
    results: VecDeque<KeptResult>,
    bytes: usize,
}

struct KeptResult {
    id: String,
    owner: Owner,
    text: Arc<str>,
    is_json: bool,
    since: Instant,
}

#[derive(PartialEq, Eq)]
struct Owner {
    principal: Option<Arc<str>>,
    session: Option<usize>,
}

impl Owner {
    fn of(cx: &RequestContext) -> Self {
        let principal = cx.principal().map(|it| Arc::from(it.as_str()));
        Self {
            session: session_of(cx).filter(|_| principal.is_none()),
            principal,
        }
    }
}

impl Default for KeptResults {
    fn default() -> Self {
        Self::new()
    }
}

impl KeptResults {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_bytes: MAX_BYTES,
            max_age: MAX_AGE,
            kept: Arc::default(),
        }
    }

    /// Sets the maximum total number of bytes that are kept. Default: 64 MiB. The oldest results make room for new ones, and a result
    /// that is longer is not kept.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the time for which a result can be read. Default: 10 minutes.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Returns the template of the resources, to be added to the server.
    #[must_use]
    pub fn template(&self) -> ResourceTemplate {
        let results = self.clone();
        let uri = format!("{PREFIX}{{id}}");
        ResourceTemplate::dynamic(uri, "kept_result", move |cx, variables| {
            let found = variables.get("id").and_then(|id| results.read(id, &cx));
            let uri = variables.uri().to_owned();
            async move {
                found.map(|(text, is_json)| {
                    let contents = ResourceContents::text(uri, &*text);
                    contents.with_mime_type(mime_type(is_json))
                })
            }
        })
        .description("A tool result that was too long for its response")
    }

    /// Keeps a result for its caller. Returns the link to it; `None` if it is too long, or the system has no random bytes.
    pub(crate) fn keep(&self, cx: &RequestContext, text: &str, is_json: bool) -> Option<Link> {
        let bytes = text.len().saturating_add(ENTRY);
        if bytes > self.max_bytes {
            return None;
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = BASE64_URL_SAFE_NO_PAD.encode(random);
        let uri = format!("{PREFIX}{id}");
        let now = Instant::now();
        let mut kept = self.kept.lock();
        kept.results.push_back(KeptResult {
            id,
            owner: Owner::of(cx),
            text: text.into(),
            is_json,
            since: now,
        });
        kept.bytes += bytes;
        let is_old = |it: &KeptResult| now.duration_since(it.since) > self.max_age;
        while kept.bytes > self.max_bytes || kept.results.front().is_some_and(is_old) {
            let Some(oldest) = kept.results.pop_front() else {
                break;
            };
            kept.bytes -= oldest.text.len() + ENTRY;
        }
        Some(Link {
            uri,
            bytes: text.len(),
            is_json,
        })
    }

    fn read(&self, id: &str, cx: &RequestContext) -> Option<(Arc<str>, bool)> {
        let kept = self.kept.lock();
        let found = kept.results.iter().find(|it| it.id == id)?;
        let is_readable = found.owner == Owner::of(cx) && found.since.elapsed() <= self.max_age;
        is_readable.then(|| (Arc::clone(&found.text), found.is_json))
    }
}

/// The link to a kept result.
pub(crate) struct Link {
    pub(crate) uri: String,
    bytes: usize,
    is_json: bool,
}

impl Link {
    pub(crate) fn into_block(self) -> ContentBlock {
        let mut resource = Resource::new(self.uri, "kept_result");
        resource.mime_type = Some(mime_type(self.is_json).to_owned());
        resource.size = u64::try_from(self.bytes).ok();
        resource.description = Some("The whole result".to_owned());
        ContentBlock::resource_link(resource)
    }
}

fn mime_type(is_json: bool) -> &'static str {
    if is_json {
        "application/json"
    } else {
        "text/plain"
    }
}

opaque_debug!(KeptResults, |it| { max_bytes: it.max_bytes, max_age: it.max_age });
