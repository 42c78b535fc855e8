//! Lists of features, a page at a time. A page that did not change is encoded once.
//! See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).

use data_encoding::BASE64URL_NOPAD;
use oxmcp_protocol::{
    CacheScope, Cursor, PaginatedParams, Revision,
    internal::{encode_result, into_text},
};

use crate::{
    error::{Error, Result},
    server::{
        dispatch::{Call, Served},
        features::{Features, Registered},
    },
    session::{
        connection::RequestContext,
        inbound::body::{Body, Line},
    },
};

/// The pages of a list that are kept. A list of more pages is rare, and its later pages are rarely asked for.
const MAX_PAGES: usize = 64;

/// Serves the request that lists features of one kind.
pub(in crate::server) fn list<T: Registered>(call: &Call<'_>) -> Result<Served> {
    let registry = T::registry(call.features);
    if !registry.is_declared() {
        return Err(Error::method_not_found(T::LIST_METHOD));
    }
    let params: PaginatedParams = call.read(T::LIST_METHOD)?;
    let last = params.cursor.as_ref().map(decode::<T>).transpose()?;
    let revision = call.cx.revision();
    if registry.is_restricted() {
        let page = encode_page::<T>(call.features, revision, last.as_deref(), Some(&call.cx))?;
        return Ok(Served::Ready(Body::Json(page)));
    }
    let key = (revision, last);
    if let Some(page) = registry.pages.0.lock().get(&key) {
        return Ok(Served::Ready(Body::Shared(page.clone())));
    }
    let page: Line = encode_page::<T>(call.features, revision, key.1.as_deref(), None)?.into();
    // Only pages that the list itself leads to are kept: a client can make up any number of cursors, of any length.
    let is_led_to = |last: &str| registry.contains(last);
    let mut pages = registry.pages.0.lock();
    if pages.len() < MAX_PAGES && key.1.as_deref().is_none_or(is_led_to) {
        pages.insert(key, page.clone());
    }
    Ok(Served::Ready(Body::Shared(page)))
}

/// Encodes the page after `last`, of what `viewer` sees or of all.
fn encode_page<T: Registered>(
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
    let mut page = T::page(entries, next, hint);
    let mut out = Vec::new();
    encode_result(&mut out, &mut page, revision, Some(&features.info_json))?;
    Ok(into_text(out)?)
}

/// The cursor after `last`. It begins with the method: a cursor of one list means nothing in another.
fn encode<T: Registered>(last: &str) -> Cursor {
    let text = format!("{} {last}", T::LIST_METHOD);
    Cursor::from(BASE64URL_NOPAD.encode(text.as_bytes()))
}

fn decode<T: Registered>(cursor: &Cursor) -> Result<String> {
    let text = BASE64URL_NOPAD.decode(cursor.as_str().as_bytes()).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.strip_prefix(T::LIST_METHOD)?.strip_prefix(' '))
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
