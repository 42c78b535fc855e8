//! Lists of a server, read page after page.

use std::{
    collections::HashSet,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use futures_core::Stream;
use futures_util::StreamExt;
use oxmcp_protocol::{Cursor, Method, PaginatedParams};

use crate::{
    client::{cache::options::CacheMode, session::ClientSession},
    error::{Error, Result},
    session::task::BoxFuture,
};

/// All entries of a list, page after page: a [`Stream`] that asks for the next page when the last one is used up.
///
/// ```
/// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
/// let mut tools = session.tools();
/// while let Some(tool) = tools.next().await {
///     println!("{}", tool?.name);
/// }
/// let all = session.tools().all().await?;
/// # let _ = all;
/// # Ok(())
/// # }
/// ```
///
/// Without the capability in what the server has [declared](ClientSession::server_capabilities) the list is empty, and no
/// request is made. A single page, as of [`ClientSession::list_tools`], is requested all the same, which gives the server's error.
///
/// It ends with the first error. A server that gives the same page again, or more pages than
/// [`Limits::max_pages`](crate::Limits::max_pages), is an error. Pages that the client has kept and that are still fresh
/// are not asked for again, see [`cache`](Self::cache).
/// See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).
#[must_use = "a list is read by asking it for entries"]
pub struct Listing<T> {
    session: ClientSession,
    method: &'static str,
    request: Box<RequestPage<T>>,
    /// The use of cached pages, where it was chosen.
    mode: Option<CacheMode>,
    /// The entries of the last page that are left.
    entries: vec::IntoIter<T>,
    /// The request for a page, while it is under way.
    requested: Option<BoxFuture<Result<Page<T>>>>,
    /// Where the next page begins, or why there is none; `None` after the last page.
    next: Option<Result<Option<Cursor>>>,
    seen: SeenCursors,
}

/// Nothing in it is pinned but what has a box of its own.
impl<T> Unpin for Listing<T> {}

/// The entries of a page, and where the next one begins.
type Page<T> = (Vec<T>, Option<Cursor>);

type RequestPage<T> =
    dyn Fn(&ClientSession, PaginatedParams, CacheMode) -> BoxFuture<Result<Page<T>>> + Send;

impl<T: Send + 'static> Listing<T> {
    /// Lists by a method. `declared` says whether the server serves it at all, and `page` takes a result apart.
    ///
    /// [Clients use what was declared and nothing else](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#operation).
    pub(crate) fn new<M: Method<Params = PaginatedParams>>(
        session: &ClientSession,
        declared: bool,
        page: fn(M::Result) -> Page<T>,
    ) -> Self {
        Self {
            session: session.clone(),
            method: M::NAME,
            request: Box::new(move |session, params, mode| {
                let call = session.request::<M>(params).in_mode(mode);
                Box::pin(async move { Ok(page(call.await?)) })
            }),
            mode: None,
            entries: Vec::new().into_iter(),
            requested: None,
            next: declared.then(|| Ok(None)),
            seen: SeenCursors::default(),
        }
    }

    /// How the list uses cached pages, as [`Call::cache`](crate::Call::cache) does for a call. The first choice counts, made
    /// before the first entry is read. Lists of tasks are not cached.
    ///
    /// ```
    /// use oxmcp::CacheMode;
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let tools = session.tools().cache(CacheMode::Refresh).all().await?;
    /// # let _ = tools;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cache(mut self, mode: CacheMode) -> Self {
        self.mode.get_or_insert(mode);
        self
    }

    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    /// Those of asking for the next page.
    ///
    /// # Cancel safety
    /// Cancel safe: no entry is lost.
    pub async fn next(&mut self) -> Option<Result<T>> {
        StreamExt::next(self).await
    }

    /// All that is left.
    ///
    /// # Errors
    /// Those of asking for a page.
    ///
    /// # Cancel safety
    /// Dropping the future gives up what has been read.
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(entry) = self.next().await {
            all.push(entry?);
        }
        Ok(all)
    }
}

/// The cursors that the server has given.
#[derive(Default)]
struct SeenCursors(HashSet<Cursor>);

impl SeenCursors {
    fn check(&mut self, method: &str, next: Cursor, limit: usize) -> Result<Cursor> {
        // The page that this cursor came with is one more than there are cursors before it.
        if self.0.len() + 1 >= limit {
            return Err(Error::limit(format!(
                "{method}: the list has more than {limit} pages"
            )));
        }
        if !self.0.insert(next.clone()) {
            return Err(Error::decode(format!(
                "{method}: the server gave the same cursor twice; its list would never end"
            )));
        }
        Ok(next)
    }
}

impl<T> Stream for Listing<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let this = self.get_mut();
        loop {
            if let Some(entry) = this.entries.next() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if let Some(cursor) = this.next.take() {
                let mut params = PaginatedParams::default();
                // A wrong cursor is an error after the entries of the page that it came with.
                params.cursor = cursor?;
                let mode = this.mode.unwrap_or_default();
                this.requested = Some((this.request)(&this.session, params, mode));
            }
            let Some(requested) = &mut this.requested else {
                return Poll::Ready(None);
            };
            let page = ready!(requested.as_mut().poll(cx));
            this.requested = None;
            let (entries, next) = page?;
            let limit = this.session.connection().limits.max_pages;
            this.next = next.map(|next| this.seen.check(this.method, next, limit).map(Some));
            this.entries = entries.into_iter();
        }
    }
}

impl<T> fmt::Debug for Listing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listing")
    }
}
