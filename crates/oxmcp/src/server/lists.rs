//! Lists, a page at a time. A page that did not change is not made anew.
//! See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use data_encoding::BASE64URL_NOPAD;

use crate::{
    Error, Result, Revision,
    protocol::{Cursor, ListToolsResult, encode_result, into_text},
    server::features::Features,
};

/// So many pages are kept. A list of more pages than that is rare, and its later pages are rarely asked for.
const KEPT_PAGES: usize = 64;

/// The pages of the list of tools that have been asked for, each as the peer gets it.
#[derive(Debug, Default)]
pub(crate) struct ToolPages(Mutex<Pages>);

/// Pages, by the revision that they are made for and by what they come after.
type Pages = HashMap<(Revision, Option<String>), Arc<str>>;

impl ToolPages {
    /// The page after `cursor`.
    pub(crate) fn page(
        &self,
        features: &Features,
        revision: Revision,
        cursor: Option<&Cursor>,
    ) -> Result<Arc<str>> {
        let last = cursor
            .map(|cursor| decode(Kind::Tools, cursor))
            .transpose()?;
        let key = (revision, last);
        if let Some(page) = self.lock().get(&key) {
            return Ok(Arc::clone(page));
        }
        let page: Arc<str> = make(features, revision, key.1.as_deref())?.into();
        // Only what lists lead to is kept: a client can make up any number of cursors, of any length.
        let is_led_to = |last: &str| features.tools.get(last).is_some();
        let mut pages = self.lock();
        if pages.len() < KEPT_PAGES && key.1.as_deref().is_none_or(is_led_to) {
            pages.insert(key, Arc::clone(&page));
        }
        Ok(page)
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(features: &Features, revision: Revision, last: Option<&str>) -> Result<Box<str>> {
    let mut rest = features.tools.after(last);
    let mut result = ListToolsResult::default();
    let mut end = None;
    for (id, tool) in rest.by_ref().take(features.page_size) {
        result.tools.push(tool.definition.clone());
        end = Some(id);
    }
    if rest.next().is_some() {
        result.next_cursor = end.map(|end| encode(Kind::Tools, end));
    }
    let mut out = Vec::new();
    encode_result(&mut out, &mut result, revision, Some(&features.stamp))?;
    into_text(out)
}

/// What a cursor goes on in. A cursor of one list means nothing in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tools,
}

impl Kind {
    fn tag(self) -> &'static str {
        match self {
            Self::Tools => "tools:",
        }
    }
}

fn encode(kind: Kind, last: &str) -> Cursor {
    let text = format!("{}{last}", kind.tag());
    Cursor::from(BASE64URL_NOPAD.encode(text.as_bytes()))
}

fn decode(kind: Kind, cursor: &Cursor) -> Result<String> {
    let text = BASE64URL_NOPAD.decode(cursor.as_str().as_bytes()).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.strip_prefix(kind.tag()))
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

    #[test]
    fn r2_a_cursor_goes_on_where_the_page_ended() {
        let cursor = encode(Kind::Tools, "add");
        assert_eq!(decode(Kind::Tools, &cursor).unwrap(), "add");
    }

    #[test]
    fn r5_a_cursor_from_elsewhere_is_refused() {
        for cursor in ["", "dG9vbHM", "%%%", "cHJvbXB0czphZGQ"] {
            assert!(
                decode(Kind::Tools, &Cursor::from(cursor)).is_err(),
                "{cursor}"
            );
        }
    }
}
