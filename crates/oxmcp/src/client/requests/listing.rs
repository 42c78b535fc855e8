//! Lists of a server, read page after page.

use std::{
    collections::HashSet,
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::{StreamExt, TryStreamExt, stream};
use oxmcp_protocol::{Cursor, Method, PaginatedParams};

use crate::{
    client::{cache::options::CacheMode, session::ClientSession},
    error::{Error, Result},
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
    entries: Pin<Box<dyn Stream<Item = Result<T>> + Send>>,
    /// The use of cached pages, where it was chosen.
    mode: Arc<OnceLock<CacheMode>>,
}

/// The entries of a page, and where the next one begins.
type Page<T> = (Vec<T>, Option<Cursor>);

impl<T: Send + 'static> Listing<T> {
    /// Lists by a method. `declared` says whether the server serves it at all, and `page` takes a result apart.
    ///
    /// [Clients use what was declared and nothing else](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#operation).
    pub(crate) fn new<M: Method<Params = PaginatedParams>>(
        session: &ClientSession,
        declared: bool,
        page: fn(M::Result) -> Page<T>,
    ) -> Self {
        let session = session.clone();
        let first = declared.then(|| (Ok(None), SeenCursors::default()));
        let mode = Arc::new(OnceLock::new());
        let chosen = Arc::clone(&mode);
        let pages = stream::try_unfold(first, move |state| {
            let session = session.clone();
            let mode = chosen.get().copied().unwrap_or_default();
            async move {
                let Some((cursor, mut seen)) = state else {
                    return Ok(None);
                };
                let mut params = PaginatedParams::default();
                // A wrong cursor is an error after the entries of the page that it came with.
                params.cursor = cursor?;
                let (entries, next) = page(session.request::<M>(params).in_mode(mode).await?);
                let limit = session.connection().limits.max_pages;
                let next = next.map(|next| (seen.check(M::NAME, next, limit).map(Some), seen));
                Ok::<_, Error>(Some((entries, next)))
            }
        });
        let entries = pages.map_ok(|entries| stream::iter(entries.into_iter().map(Ok)));
        Self {
            entries: Box::pin(entries.try_flatten()),
            mode,
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
    pub fn cache(self, mode: CacheMode) -> Self {
        // The first choice counts.
        let _ = self.mode.set(mode);
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
        StreamExt::next(&mut self.entries).await
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

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.entries.as_mut().poll_next(cx)
    }
}

impl<T> fmt::Debug for Listing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listing")
    }
}
