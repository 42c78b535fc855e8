//! Listings of features, in pages. The encoding of an unchanged page is cached.
//! See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use oxmcp_protocol::{
    CacheScope, Cursor, PaginatedParams,
    internal::{encode_result, into_text},
};

use crate::{
    error::{Error, Result},
    server::{
        dispatch::{Call, Served},
        features::{Features, Registered},
        registry::{Feature, PageKey},
        resource::RegisteredResource,
    },
    session::inbound::{
        body::{Body, Line},
        run::Work,
    },
};

/// The maximum number of cached pages of a listing. Longer listings are rare, and their later pages are rarely requested.
const MAX_PAGES: usize = 64;

/// Serves the request that lists features of one kind.
pub(crate) fn list<T: Registered>(call: &Call<'_>) -> Result<Served> {
    page_of::<T>(call, T::registry(call.features).is_restricted_for(&call.cx))
}

/// Serves a page of a list. `is_private` says that the list may depend on the caller.
fn page_of<T: Registered>(call: &Call<'_>, is_private: bool) -> Result<Served> {
    let registry = T::registry(call.features);
    if !registry.is_declared() {
        return Err(Error::method_not_found(T::LIST_METHOD));
    }
    let last = last_seen::<T>(call)?;
    let key = PageKey {
        revision: call.cx.revision(),
        is_private,
        hidden: hidden::<T>(call, last.as_deref()),
        last,
    };
    if let Some(page) = registry.pages.0.lock().get(&key) {
        return Ok(Served::Ready(Body::Shared(page.clone())));
    }
    let page: Line = encode_page::<T>(call.features, &key)?.into();
    // Cache only pages that begin after an existing feature: a client can invent any number of cursors, of any length.
    let is_led_to = |last: &str| registry.contains(last);
    let mut pages = registry.pages.0.lock();
    if pages.len() < MAX_PAGES && key.last.as_deref().is_none_or(is_led_to) {
        pages.insert(key, page.clone());
    }
    Ok(Served::Ready(Body::Shared(page)))
}

/// Serves the request that lists resources, including those listed by templates.
pub(crate) fn list_resources(call: &Call<'_>) -> Result<Served> {
    let templates = call.features.templates.after(None);
    let mut listing: Vec<_> = templates.filter(|it| it.has_list()).cloned().collect();
    if listing.is_empty() {
        return list::<RegisteredResource>(call);
    }
    listing.retain(|it| it.is_visible(&call.cx));
    let Some(first) = listing.first() else {
        // The page is private, since other callers also get the resources of these templates.
        return page_of::<RegisteredResource>(call, true);
    };
    let inline = Arc::clone(first.inline_execution());
    let last = last_seen::<RegisteredResource>(call)?;
    let resources = call.features.resources.clone();
    let (cx, page_size) = (call.cx.clone(), call.features.page_size);
    let future = Box::pin(async move {
        let mut found = BTreeMap::new();
        for resource in resources.after(last.as_deref()) {
            if resource.is_visible(&cx) {
                found.insert(resource.id().to_owned(), resource.definition().clone());
            }
        }
        for template in listing {
            let is_next = |uri: &str| last.as_deref().is_none_or(|last| uri > last);
            for resource in template.list(cx.clone()).await? {
                // A registered resource takes precedence, even if it is hidden.
                if is_next(&resource.uri) && !resources.contains(&resource.uri) {
                    found.entry(resource.uri.clone()).or_insert(resource);
                }
            }
        }
        let has_more = found.len() > page_size;
        let entries: Vec<_> = found.into_values().take(page_size).collect();
        let end = entries.last().filter(|_| has_more);
        let next = end.map(|end| encode::<RegisteredResource>(&end.uri));
        let mut hint = resources.cache;
        // The template's function gets the caller, so that its list may depend on the caller.
        hint.scope = CacheScope::Private;
        Ok(Body::of(RegisteredResource::page(entries, next, hint)))
    });
    Ok(Served::Pending(Work {
        future,
        inline: Some(inline),
    }))
}

/// The id of the feature after which the page begins, decoded from the cursor. Most requests have no cursor, and the rest of
/// their params is not read.
fn last_seen<T: Registered>(call: &Call<'_>) -> Result<Option<String>> {
    let params = call.params;
    if params.raw.is_object() && !params.has_cursor {
        return Ok(None);
    }
    let params: PaginatedParams = call.read(T::LIST_METHOD)?;
    params.start().map(decode::<T>).transpose()
}

/// The positions of the features that are hidden from the caller, among those that the page after `last` would have. Callers
/// with the same hidden features share a page, and most servers have few kinds of callers.
fn hidden<T: Registered>(call: &Call<'_>, last: Option<&str>) -> Box<[usize]> {
    let registry = T::registry(call.features);
    if !registry.is_restricted_for(&call.cx) {
        return Box::default();
    }
    let mut hidden = Vec::new();
    let mut seen = 0;
    for (place, feature) in registry.listed_after(last).enumerate() {
        if !feature.is_listed(&call.cx) {
            hidden.push(place);
        } else if seen == call.features.page_size {
            // It begins the next page; this page needs to know only that there is one.
            break;
        } else {
            seen += 1;
        }
    }
    hidden.into()
}

fn encode_page<T: Registered>(features: &Features, key: &PageKey) -> Result<Box<str>> {
    let registry = T::registry(features);
    let mut hidden = key.hidden.iter().peekable();
    let rest = registry.listed_after(key.last.as_deref()).enumerate();
    let mut rest = rest.filter(|(place, _)| hidden.next_if_eq(&place).is_none());
    let mut entries = Vec::new();
    let mut end = None;
    for (_, feature) in rest.by_ref().take(features.page_size) {
        entries.push(feature.definition().clone());
        end = Some(feature.id());
    }
    let next = end.filter(|_| rest.next().is_some()).map(encode::<T>);
    let mut hint = registry.cache;
    if key.is_private {
        hint.scope = CacheScope::Private;
    }
    let mut page = T::page(entries, next, hint);
    let mut out = Vec::new();
    encode_result(&mut out, &mut page, key.revision, Some(&features.info_json))?;
    Ok(into_text(out)?)
}

/// The cursor after `last`. It begins with the method, so that a cursor of one list is invalid for another.
fn encode<T: Registered>(last: &str) -> Cursor {
    let text = format!("{} {last}", T::LIST_METHOD);
    Cursor::from(BASE64_URL_SAFE_NO_PAD.encode(text))
}

fn decode<T: Registered>(cursor: &Cursor) -> Result<String> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(cursor.as_str()).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.strip_prefix(T::LIST_METHOD)?.strip_prefix(' '))
        .map(str::to_owned)
        .ok_or_else(|| {
            Error::invalid_params("invalid cursor; list again from the start, without a cursor")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tool::RegisteredTool;

    #[cfg(feature = "client")]
    #[tokio::test]
    async fn callers_with_equal_views_share_an_encoded_page() {
        use crate::{
            client::Client,
            server::{Server, Tool},
            testing,
        };

        let tool = |name: &str| Tool::new(name, "", || async {});
        let server = Server::new("s", "1").page_size(2).tools([
            tool("a"),
            tool("b").visible_to(|cx| cx.peer_info().is_some_and(|it| it.name == "admin")),
            tool("c"),
            tool("d"),
        ]);
        let kept = || server.features().tools.pages.0.lock().len();
        for (name, expected, pages) in [
            ("ann", ["a", "c", "d"].as_slice(), 2),
            ("bob", &["a", "c", "d"], 2),
            ("admin", &["a", "b", "c", "d"], 4),
            ("admin", &["a", "b", "c", "d"], 4),
            ("ann", &["a", "c", "d"], 4),
        ] {
            let client = Client::new(name, "1");
            let session = testing::connect(&server).client(&client).await.unwrap();
            let tools = session.tools().all().await.unwrap();
            let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
            assert_eq!((names.as_slice(), kept()), (expected, pages), "{name}");
        }
    }

    #[test]
    fn cursor_continues_where_the_page_ended() {
        let cursor = encode::<RegisteredTool>("add");
        assert_eq!(decode::<RegisteredTool>(&cursor).unwrap(), "add");
    }

    #[test]
    fn foreign_cursor_is_refused() {
        // The last cursor is of another list.
        for cursor in ["", "dG9vbHM", "%%%", "cHJvbXB0cy9saXN0IGFkZA"] {
            assert!(
                decode::<RegisteredTool>(&Cursor::from(cursor)).is_err(),
                "{cursor}"
            );
        }
    }
}
