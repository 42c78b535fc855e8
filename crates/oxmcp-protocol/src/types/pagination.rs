//! Pagination of lists.
//!
//! See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{meta::object::Meta, values::open_enum::setters};

/// The position at which a page begins. Only the server that made a cursor can interpret it. An empty cursor is followed like any
/// other; sent by a client, it means the first page.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// Returns the text of the cursor, as it is sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Cursor {
    fn from(cursor: String) -> Self {
        Self(cursor)
    }
}

impl From<&str> for Cursor {
    fn from(cursor: &str) -> Self {
        Self(cursor.into())
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The params of the requests that return a list in pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PaginatedParams {
    /// The cursor of the page: the `next_cursor` of the previous page, or `None` for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Metadata of the protocol and of extensions (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_absent")]
    pub meta: Meta,
}

impl PaginatedParams {
    /// Creates the params for the page that begins at a cursor.
    #[must_use]
    pub fn at(cursor: impl Into<Cursor>) -> Self {
        Self {
            cursor: Some(cursor.into()),
            ..Self::default()
        }
    }

    /// Returns the cursor of the page. `None` for the first page, also if the cursor is empty, as some clients send it.
    #[doc(hidden)]
    #[must_use]
    pub fn start(&self) -> Option<&Cursor> {
        self.cursor.as_ref().filter(|cursor| !cursor.0.is_empty())
    }
}

setters!(PaginatedParams {
    /// Sets the cursor of the page.
    with_cursor => cursor: Cursor,
});

/// Defines the result of a request that returns a list in pages.
macro_rules! page {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(#[$doc:meta])*
            pub $items:ident: Vec<$item:ty>,
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $(#[$doc])*
            #[serde(deserialize_with = "crate::lenient::list")]
            pub $items: Vec<$item>,
            /// The cursor of the next page, if there is one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<$crate::types::Cursor>,
            /// How long the page stays fresh, in milliseconds (2026-07-28 and later).
            #[serde(
                default,
                skip_serializing_if = "Option::is_none",
                deserialize_with = "crate::types::caching::ttl"
            )]
            pub ttl_ms: Option<u64>,
            /// The scope in which a cached copy may be shared (2026-07-28 and later).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cache_scope: Option<$crate::types::CacheScope>,
            /// Metadata of the protocol and of extensions (`_meta`).
            #[serde(
                rename = "_meta",
                default,
                skip_serializing_if = "crate::meta::object::Meta::is_absent"
            )]
            pub meta: $crate::types::Meta,
        }
    };
}

pub(crate) use page;
