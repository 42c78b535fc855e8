//! Lists, a page at a time. A page that did not change is not made anew.
//! See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use data_encoding::BASE64URL_NOPAD;

use crate::{
    Error, Result, Revision,
    protocol::{
        CacheHint, CacheScope, Cursor, HasMeta, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, Method, Project, encode_result, into_text, method,
    },
    server::{features::Features, registry::Feature},
    session::{Body, Line, RequestContext},
};

/// So many pages are kept. A list of more pages than that is rare, and its later pages are rarely asked for.
const KEPT_PAGES: usize = 64;

/// The result of a request that lists things.
pub(crate) trait ListPage<Definition>: Project + HasMeta + Default {
    /// The request.
    type Method: Method;

    fn fill(&mut self, entries: Vec<Definition>, next: Option<Cursor>, hint: CacheHint);
}

macro_rules! list_page {
    ($($page:ident { $items:ident: $definition:ty } by $method:ident;)+) => {$(
        impl ListPage<$definition> for $page {
            type Method = method::$method;

            fn fill(&mut self, entries: Vec<$definition>, next: Option<Cursor>, hint: CacheHint) {
                self.$items = entries;
                self.next_cursor = next;
                self.ttl_ms = Some(hint.ttl_ms());
                self.cache_scope = Some(hint.scope);
            }
        }
    )+};
}

list_page! {
    ListToolsResult { tools: crate::protocol::Tool } by ListTools;
    ListResourcesResult { resources: crate::protocol::Resource } by ListResources;
    ListResourceTemplatesResult { resource_templates: crate::protocol::ResourceTemplate } by ListResourceTemplates;
    ListPromptsResult { prompts: crate::protocol::Prompt } by ListPrompts;
}

/// The pages of a list that have been asked for, each as the peer gets it.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Kept>);

/// Pages, by the revision that they are made for and by what they come after.
type Kept = HashMap<(Revision, Option<String>), Line>;

impl Pages {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The page of a list that begins at `cursor`, for whoever asks.
pub(super) fn page<T: Feature>(
    features: &Features,
    cx: &RequestContext,
    cursor: Option<&Cursor>,
) -> Result<Body> {
    let registry = T::registry(features);
    let last = cursor.map(|cursor| decode::<T>(cursor)).transpose()?;
    if registry.is_restricted() {
        let page = make::<T>(features, cx.revision(), last.as_deref(), Some(cx))?;
        return Ok(Body::Json(page));
    }
    let key = (cx.revision(), last);
    if let Some(page) = registry.pages.lock().get(&key) {
        return Ok(Body::Shared(page.clone()));
    }
    let page: Line = make::<T>(features, key.0, key.1.as_deref(), None)?.into();
    // Only what lists lead to is kept: a client can make up any number of cursors, of any length.
    let is_led_to = |last: &str| registry.contains(last);
    let mut pages = registry.pages.lock();
    if pages.len() < KEPT_PAGES && key.1.as_deref().is_none_or(is_led_to) {
        pages.insert(key, page.clone());
    }
    Ok(Body::Shared(page))
}

/// Makes a page, of what `viewer` sees or of all.
fn make<T: Feature>(
    features: &Features,
    revision: Revision,
    last: Option<&str>,
    viewer: Option<&RequestContext>,
) -> Result<Box<str>> {
    let registry = T::registry(features);
    let rest = registry.after(last);
    let mut rest = rest.filter(|it| viewer.is_none_or(|cx| it.is_visible(cx)));
    let mut entries = Vec::new();
    let mut end = None;
    for feature in rest.by_ref().take(features.page_size) {
        entries.push(feature.definition().clone());
        end = Some(feature.id());
    }
    let next = end.filter(|_| rest.next().is_some()).map(encode::<T>);
    let mut hint = registry.cache;
    if viewer.is_some() {
        hint.scope = CacheScope::Private;
    }
    let mut page = T::Page::default();
    page.fill(entries, next, hint);
    let mut out = Vec::new();
    encode_result(&mut out, &mut page, revision, Some(&features.stamp))?;
    into_text(out)
}

/// What a list's cursors begin with: a cursor of one list means nothing in another.
fn tag<T: Feature>() -> &'static str {
    <T::Page as ListPage<T::Definition>>::Method::NAME
}

fn encode<T: Feature>(last: &str) -> Cursor {
    let text = format!("{} {last}", tag::<T>());
    Cursor::from(BASE64URL_NOPAD.encode(text.as_bytes()))
}

fn decode<T: Feature>(cursor: &Cursor) -> Result<String> {
    let text = BASE64URL_NOPAD.decode(cursor.as_str().as_bytes()).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.strip_prefix(tag::<T>())?.strip_prefix(' '))
        .map(str::to_owned)
        .ok_or_else(|| {
            Error::invalid_params(
                "the cursor is not one that this list gave; begin again without one",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tool::RegisteredTool;

    #[test]
    fn r2_a_cursor_goes_on_where_the_page_ended() {
        let cursor = encode::<RegisteredTool>("add");
        assert_eq!(decode::<RegisteredTool>(&cursor).unwrap(), "add");
    }

    #[test]
    fn r5_a_cursor_from_elsewhere_is_refused() {
        // The last is one of another list.
        for cursor in ["", "dG9vbHM", "%%%", "cHJvbXB0cy9saXN0IGFkZA"] {
            assert!(
                decode::<RegisteredTool>(&Cursor::from(cursor)).is_err(),
                "{cursor}"
            );
        }
    }
}
