//! Options common to tools, prompts, resources and templates, as methods of their definitions.

use oxmcp_protocol::Icon;

use crate::{
    error::{Error, Result},
    server::registry::{Access, Feature},
};

/// Implements the options of a type that has the fields `definition`, whose id is `$id`, and `access`. The last argument is the
/// documentation of `visible_to`.
macro_rules! options {
    ($type:ident by $id:ident: $noun:literal, $(#[$visible_to:meta])+ visible_to) => {
        impl $type {
            /// Sets the title: the name displayed to people.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: oxmcp_protocol::Icon) -> Self {
                self.definition.icons.push(icon);
                self
            }

            #[doc = concat!(
                "Sets a key of the ", $noun,
                "'s [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta)."
            )]
            #[must_use]
            pub fn meta(
                mut self,
                key: impl Into<String>,
                value: impl Into<serde_json::Value>,
            ) -> Self {
                self.definition.meta.insert(key, value);
                self
            }

            #[doc = concat!(
                "Sets the scopes that an access token needs for this ", $noun, ", separated by spaces, in addition to those of its \
                 endpoint.\n\nOver HTTP, a request whose token lacks them fails with 403 and a list of the needed scopes, so that \
                 the client can request them. Listings show the ", $noun, " anyway, unless the endpoint hides features that a token \
                 does not permit (`ProtectedResource::hide_unpermitted`). An endpoint learns the scopes of a caller from \
                 `StreamableHttp::protect` or `authenticate`, or from `Principal::scopes`, set by middleware. Other endpoints \
                 refuse all such requests. Over stdio there are no tokens, and scopes have no effect.\n\nSee \
                 [scopes](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#runtime-insufficient-scope-errors)."
            )]
            #[cfg(feature = "auth")]
            #[must_use]
            pub fn scopes(mut self, scopes: &str) -> Self {
                self.access.set_scopes(scopes);
                self
            }

            $(#[$visible_to])+
            ///
            /// If several functions are set, all must return true.
            #[must_use]
            pub fn visible_to(
                mut self,
                sees: impl Fn(&crate::session::connection::RequestContext) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.access.see(sees);
                self
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    .field(stringify!($id), &self.definition.$id)
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Implements `entry` of a type that has the field `definition`, whose id is `$id` and stays as it is.
macro_rules! entry {
    ($type:ident of $definition:ident by $id:ident: $noun:literal) => {
        impl $type {
            #[doc = concat!(
                "Changes the ", $noun, "'s entry in the listing, for example to that of another server. `", stringify!($id), "` \
                 stays as it is."
            )]
            #[must_use]
            pub fn entry(mut self, change: impl FnOnce(&mut $definition)) -> Self {
                let id = self.definition.$id.clone();
                change(&mut self.definition);
                self.definition.$id = id;
                self
            }
        }
    };
}

/// Implements the options of [`Resource`](crate::Resource) and [`ResourceTemplate`](crate::ResourceTemplate), which also have
/// the field `cache`.
macro_rules! resource_options {
    ($type:ident by $id:ident: $noun:literal) => {
        crate::server::definitions::options::options! {
            $type by $id: $noun,
            /// Sets a function that decides which callers can list and read it. For the others, it does not exist: they can
            /// subscribe to it, as to any resource that does not exist, but are not notified of its updates. The function is
            /// called for each request and before each update, and must be quick.
            visible_to
        }

        impl $type {
            /// Sets the description of the contents. A model decides by it whether to read them.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// Sets the default MIME type of the contents.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.definition.mime_type = Some(mime_type.into());
                self
            }

            /// Sets the annotations, such as the intended audience and the priority.
            #[must_use]
            pub fn annotations(mut self, annotations: oxmcp_protocol::Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Sets the cache hint of the contents: how long they stay fresh, and whether they may be shared. By default, they
            /// are private and immediately stale. A hint in the handler's
            /// [`ReadResourceResult`](oxmcp_protocol::ReadResourceResult) takes precedence. Contents that are [visible only to
            /// some callers](Self::visible_to) are private, regardless of this hint.
            /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
            #[must_use]
            pub fn cache(mut self, hint: oxmcp_protocol::CacheHint) -> Self {
                self.cache = Some(hint);
                self
            }
        }
    };
}

/// Checks that all scopes of a feature could be parsed: otherwise, it would require fewer than intended.
///
/// # Errors
/// The first problem.
pub(crate) fn check_access<T: Feature>(id: &str, access: &Access) -> Result<()> {
    let checked = access.check();
    checked.map_err(|problem| misuse_of::<T>(id, &problem))
}

/// Checks the icons of a feature, which clients must be able to show safely.
///
/// # Errors
/// The first problem.
pub(crate) fn check_icons<T: Feature>(id: &str, icons: &[Icon]) -> Result<()> {
    let checked = icons.iter().try_for_each(Icon::check);
    checked.map_err(|problem| misuse_of::<T>(id, &problem))
}

/// An error that names the feature and its problem.
pub(crate) fn misuse_of<T: Feature>(id: &str, problem: &str) -> Error {
    Error::misuse(format!("{} {id:?}: {problem}", T::KIND))
}

pub(crate) use entry;
pub(crate) use options;
pub(crate) use resource_options;
