//! Options that tools, prompts, resources and templates have in common, as methods of their definitions.

use oxmcp_protocol::Icon;

use crate::{
    error::{Error, Result},
    server::registry::{Access, Feature},
};

/// The options of a type that has the fields `definition`, whose id is `$id`, and `access`. The docs of `visible_to` follow.
macro_rules! options {
    ($type:ident by $id:ident: $noun:literal, $(#[$visible_to:meta])+ visible_to) => {
        impl $type {
            /// A name for people to read.
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
                "The scopes that an access token must have for this ", $noun, ", with spaces between them, beside those that its \
                 endpoint needs for all. Over HTTP a request whose token has not is answered with 403 and all that it needs, so \
                 that a client can ask for more; lists show it nevertheless, unless the endpoint hides what a token does not permit \
                 (`ProtectedResource::hide_unpermitted`). An endpoint that is not \
                 protected (`StreamableHttp::protect`) refuses all such requests. Over stdio there are no tokens, and \
                 this says nothing.\n\nSee \
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
            /// Where several are given, all must agree.
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

/// The options of [`Resource`](super::Resource) and [`ResourceTemplate`](super::ResourceTemplate), which have a `cache` as
/// well.
macro_rules! resource_options {
    ($type:ident by $id:ident: $noun:literal) => {
        crate::server::options::options! {
            $type by $id: $noun,
            /// Decides which callers it is for. To the others it does not exist: it is not in their list, and they can
            /// neither read it nor be notified of its updates; they may watch it, as they may what does not exist. The function is
            /// called for each request, and before an update is sent, and must be quick.
            visible_to
        }

        impl $type {
            /// What it holds: what a model decides by.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// What it is. Contents whose handler does not say get this type.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.definition.mime_type = Some(mime_type.into());
                self
            }

            /// For whom it is, and how much it matters.
            #[must_use]
            pub fn annotations(mut self, annotations: oxmcp_protocol::Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Sets the cache hint of what is read: how long it stays fresh, and whether it may be shared. By default it
            /// is stale at once, and private. A handler that returns a
            /// [`ReadResourceResult`](oxmcp_protocol::ReadResourceResult) can say so itself, and what it says counts.
            /// What is [for some callers only](Self::visible_to) is private, whatever the hint says.
            /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
            #[must_use]
            pub fn cache(mut self, hint: oxmcp_protocol::CacheHint) -> Self {
                self.cache = Some(hint);
                self
            }
        }
    };
}

/// Refuses a feature whose scopes were not all understood: it would need less than it should.
///
/// # Errors
/// Says what is wrong with the first of them.
pub(super) fn check_access<T: Feature>(id: &str, access: &Access) -> Result<()> {
    let checked = access.check();
    checked.map_err(|problem| misuse_of::<T>(id, &problem))
}

/// Refuses icons of a feature that nobody should show.
///
/// # Errors
/// Says what is wrong with the first of them.
pub(super) fn check_icons<T: Feature>(id: &str, icons: &[Icon]) -> Result<()> {
    let checked = icons.iter().try_for_each(Icon::check);
    checked.map_err(|problem| misuse_of::<T>(id, &problem))
}

/// What is wrong with a feature, which is named.
pub(super) fn misuse_of<T: Feature>(id: &str, problem: &str) -> Error {
    Error::misuse(format!("{} {id:?}: {problem}", T::KIND))
}

pub(super) use options;
pub(super) use resource_options;
