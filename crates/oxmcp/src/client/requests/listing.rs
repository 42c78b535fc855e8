//! Lists of a server, read page after page.

use std::{
    collections::{HashSet, hash_map::RandomState},
    fmt,
    hash::{BuildHasher, Hasher},
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use futures_core::Stream;
use futures_util::StreamExt;
use oxmcp_protocol::{Cursor, ErrorCode, Meta, Method, PaginatedParams, lenient::Leniency};
use serde::Serialize;
use serde_json::Value;

use crate::{
    client::{
        cache::options::CacheMode,
        offers::FeatureKind,
        requests::left_out::{ListingOmission, PageLosses},
        session::ClientSession,
    },
    error::{Error, Result},
    session::task::BoxFuture,
};

/// All entries of a list, page after page: a [`Stream`] that requests the next page when the entries of the last one are
/// used up.
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
/// If the server has not [declared](ClientSession::offers) the capability, the list is empty, and no request is made for
/// it. A single page, as of [`ClientSession::list_tools`], is requested all the same, and fails with the server's error.
///
/// The list ends with the first error. It is an error if the server sends a cursor again with another page, more pages than
/// [`ClientLimits::max_pages`](crate::ClientLimits::max_pages), or more bytes than
/// [`ClientLimits::max_listing_bytes`](crate::ClientLimits::max_listing_bytes). Cached pages that are still fresh are not
/// requested again; see [`cache`](Self::cache).
/// See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).
#[must_use = "a list is read by asking it for entries"]
pub struct Listing<T> {
    session: ClientSession,
    method: &'static str,
    request: Box<RequestPage<T>>,
    /// The metadata (`_meta`) of each request.
    meta: Meta,
    /// Whether the list is empty if the server does not know the method.
    or_none: bool,
    /// The use of cached pages, if it was chosen.
    mode: Option<CacheMode>,
    /// The remaining entries of the last page.
    entries: vec::IntoIter<T>,
    /// The request for a page, while it is in flight.
    requested: Option<BoxFuture<Result<Page<T>>>>,
    /// The cursor of the next page (`None` for the first page), or the error because of which there is none; `None` after
    /// the last page.
    next: Option<Result<Option<Cursor>>>,
    seen: SeenPages,
    /// Whether the requested page begins at an empty cursor, which some servers give with their last page.
    is_at_empty: bool,
    /// The bytes of the pages so far.
    bytes: usize,
    /// The losses of the requested page.
    losses: PageLosses,
    /// The number of pages so far.
    pages: usize,
    left_out: Vec<ListingOmission>,
}

/// Only the future of a request is pinned, and it has its own box.
impl<T> Unpin for Listing<T> {}

/// The entries of a page, and the cursor of the next page.
type Page<T> = (Vec<T>, Option<Cursor>);

type RequestPage<T> = dyn Fn(&ClientSession, PaginatedParams, CacheMode, PageLosses) -> BoxFuture<Result<Page<T>>>
    + Send;

/// The maximum number of losses that are kept of one list.
const MAX_LEFT_OUT: usize = 200;

impl<T: Serialize + Send + 'static> Listing<T> {
    /// Lists by a method of this kind, if the server has declared it. `page` splits a result into its entries and the next
    /// cursor.
    ///
    /// [Clients use what was declared and nothing else](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#operation).
    pub(crate) fn new<M: Method<Params = PaginatedParams>>(
        session: &ClientSession,
        kind: Option<FeatureKind>,
        page: fn(M::Result) -> Page<T>,
    ) -> Self {
        let facts = session.known_facts();
        let is_declared =
            facts.is_none_or(|it| kind.is_none_or(|kind| kind.is_in(&it.capabilities)));
        Self {
            session: session.clone(),
            method: M::NAME,
            request: Box::new(move |session, params, mode, losses| {
                let call = session.request::<M>(params).in_mode(mode);
                let call = call.noting(losses);
                let undiscovered = kind.filter(|_| session.known_facts().is_none());
                let session = session.clone();
                Box::pin(async move {
                    if let Some(kind) = undiscovered
                        && !session.offers(kind).await?
                    {
                        return Ok((Vec::new(), None));
                    }
                    Ok(page(call.await?))
                })
            }),
            or_none: false,
            meta: Meta::default(),
            mode: None,
            entries: Vec::new().into_iter(),
            requested: None,
            next: is_declared.then(|| Ok(None)),
            seen: SeenPages::default(),
            is_at_empty: false,
            bytes: 0,
            losses: PageLosses::default(),
            pages: 0,
            left_out: Vec::new(),
        }
    }

    /// Sets how the list uses cached pages, as [`Call::cache`](crate::Call::cache) does for a call. The first choice
    /// counts; make it before the first entry is read. Lists of tasks are not cached.
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

    /// Starts at a cursor, the `next_cursor` of an earlier page, instead of at the first page.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let first = session.list_tools(Default::default()).await?;
    /// if let Some(next) = first.next_cursor {
    ///     let rest = session.tools().starting_at(next).all().await?;
    /// #   let _ = rest;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn starting_at(mut self, cursor: impl Into<Cursor>) -> Self {
        if let Some(Ok(next)) = &mut self.next {
            *next = Some(cursor.into());
        }
        self
    }

    /// Sets a key of the [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta) of each request for a page.
    /// Such pages are not cached.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key, value);
        self
    }

    /// Treats the list as empty if the server declares the capability but does not know the method
    /// ([`ErrorCode::METHOD_NOT_FOUND`](crate::ErrorCode::METHOD_NOT_FOUND)): some servers with resources do not know
    /// resource templates.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let templates = session.resource_templates().or_none().all().await?;
    /// # let _ = templates;
    /// # Ok(())
    /// # }
    /// ```
    pub fn or_none(mut self) -> Self {
        self.or_none = true;
        self
    }

    /// Returns the next entry, or `None` at the end.
    ///
    /// # Errors
    /// Those of the request for the next page.
    ///
    /// # Cancel safety
    /// Cancel safe: no entry is lost.
    pub async fn next(&mut self) -> Option<Result<T>> {
        StreamExt::next(self).await
    }

    /// Reads all remaining entries.
    ///
    /// # Errors
    /// Those of the request for a page.
    ///
    /// # Cancel safety
    /// Dropping the future discards the entries that have been read.
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(entry) = self.next().await {
            all.push(entry?);
        }
        Ok(all)
    }
}

/// The cursors that the server has given, and the pages with them.
#[derive(Default)]
struct SeenPages {
    cursors: HashSet<Cursor>,
    /// The digests of the pages.
    pages: HashSet<u64>,
    hasher: RandomState,
}

/// The entries of a page, as JSON.
struct WrittenPage {
    /// The length in bytes.
    length: usize,
    /// Whether an earlier page had the same entries.
    is_repeated: bool,
}

impl SeenPages {
    /// Notes the entries of a page.
    fn note(&mut self, entries: &impl Serialize) -> WrittenPage {
        struct Digest<H>(usize, H);
        impl<H: Hasher> io::Write for Digest<H> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.saturating_add(bytes.len());
                self.1.write(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut digest = Digest(0, self.hasher.build_hasher());
        // Entries that were read from JSON can be written as JSON.
        let _ = serde_json::to_writer(&mut digest, entries);
        let Digest(length, hasher) = digest;
        WrittenPage {
            length,
            is_repeated: !self.pages.insert(hasher.finish()),
        }
    }

    fn check(&mut self, method: &str, next: Cursor, limit: usize) -> Result<Cursor> {
        // The number of the page with this cursor is one more than the number of cursors before it.
        if self.cursors.len() + 1 >= limit {
            return Err(Error::limit(format!(
                "{method}: the list has more than {limit} pages (`ClientLimits::max_pages`)"
            )));
        }
        if !self.cursors.insert(next.clone()) {
            return Err(Error::decode(format!(
                "{method}: the server sent the same cursor twice, so its list would never end"
            )));
        }
        Ok(next)
    }
}

impl<T> Listing<T> {
    /// The entries that were left out of the pages read so far, or of which a member was left out, because the server did not follow
    /// the specification: the others are listed all the same. The first 200, and of each page at most 16. Empty if the client is
    /// [strict](crate::Client::strict): then such a list fails. Pages from the cache count like others.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let mut listing = session.tools();
    /// while let Some(tool) = listing.next().await {
    ///     println!("{}", tool?.name);
    /// }
    /// for it in listing.left_out() {
    ///     let name = it.name.as_deref().unwrap_or("without a name");
    ///     match &it.member {
    ///         None => eprintln!("tool {} ({name}) is missing: {}", it.index, it.reason),
    ///         Some(member) => eprintln!("tool {} ({name}) lacks {member}: {}", it.index, it.reason),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn left_out(&self) -> &[ListingOmission] {
        &self.left_out
    }

    fn note_losses(&mut self) {
        let losses = self.losses.take(self.pages).into_iter();
        self.left_out
            .extend(losses.take(MAX_LEFT_OUT - self.left_out.len()));
        self.pages += 1;
    }

    fn tolerates_cursor(&self) -> bool {
        let connection = self.session.connection();
        connection.tolerates(Leniency::RepeatedCursor)
    }
}

impl<T: Serialize> Stream for Listing<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let this = self.get_mut();
        loop {
            if let Some(entry) = this.entries.next() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if let Some(cursor) = this.next.take() {
                let mut params = PaginatedParams::default();
                // A wrong cursor is reported as an error after the entries of its page.
                params.cursor = cursor?;
                this.is_at_empty = params.cursor.is_some() && params.start().is_none();
                params.meta = this.meta.clone();
                let mode = this.mode.unwrap_or_default();
                this.requested = Some((this.request)(
                    &this.session,
                    params,
                    mode,
                    this.losses.clone(),
                ));
            }
            let Some(requested) = &mut this.requested else {
                return Poll::Ready(None);
            };
            let page = ready!(requested.as_mut().poll(cx));
            this.requested = None;
            this.note_losses();
            let (entries, next) = match page {
                Err(error) if this.or_none && error.code() == ErrorCode::METHOD_NOT_FOUND => {
                    return Poll::Ready(None);
                }
                Err(error)
                    if this.is_at_empty && error.is_protocol() && this.tolerates_cursor() =>
                {
                    return Poll::Ready(None);
                }
                page => page?,
            };
            let limits = &this.session.connection().limits;
            // A single page is bounded by the limit of its message.
            if next.is_some() || this.bytes > 0 {
                let written = this.seen.note(&entries);
                this.bytes = this.bytes.saturating_add(written.length);
                let is_seen = next
                    .as_ref()
                    .is_some_and(|it| this.seen.cursors.contains(it));
                if written.is_repeated && (is_seen || this.is_at_empty) && this.tolerates_cursor() {
                    return Poll::Ready(None);
                }
            }
            if this.bytes > limits.client.max_listing_bytes {
                return Poll::Ready(Some(Err(Error::limit(format!(
                    "{}: the list exceeds the limit of {} bytes (`ClientLimits::max_listing_bytes`)",
                    this.method, limits.client.max_listing_bytes
                )))));
            }
            let limit = limits.client.max_pages;
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
