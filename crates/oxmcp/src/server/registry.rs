//! Registry of the features of one kind: tools, prompts, resources or resource templates.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    CacheHint, Cursor, Meta, Revision, SubscriptionFilter,
    internal::{HasMeta, Project},
    lenient::without_lone_surrogates,
};
use oxmcp_schema::internal::quote_text;

use crate::{
    error::Result,
    session::{
        connection::RequestContext,
        inbound::{
            body::{Body, Line},
            run::Work,
        },
    },
    sync::Mutex,
};

/// Decides whether a caller sees a feature.
pub(crate) type Visibility = Arc<dyn Fn(&RequestContext) -> bool + Send + Sync>;

/// The callers that may use a feature.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// Decides which callers see the feature; `None` if all do.
    pub(crate) sees: Option<Visibility>,
    /// Decides which of these callers have the feature in their listing; `None` if all do.
    pub(crate) listed: Option<Visibility>,
    /// The scopes that an access token must have, if the endpoint requires a token.
    #[cfg(feature = "auth")]
    pub(crate) scopes: oxmcp_auth::ScopeSet,
    /// The error of parsing the scopes.
    #[cfg(feature = "auth")]
    mistake: Option<oxmcp_auth::AuthError>,
}

impl Access {
    #[cfg(feature = "auth")]
    pub(crate) fn set_scopes(&mut self, scopes: &str) {
        match oxmcp_auth::ScopeSet::parse_all(scopes) {
            Ok(scopes) => self.scopes = scopes,
            Err(mistake) => self.mistake = Some(mistake),
        }
    }

    /// Checks that the scopes could be parsed.
    ///
    /// # Errors
    /// The reason why they could not.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        #[cfg(feature = "auth")]
        if let Some(mistake) = &self.mistake {
            return Err(mistake.to_string());
        }
        Ok(())
    }

    /// Restricts the callers further to those for which `sees` is true.
    pub(crate) fn see(&mut self, sees: impl Fn(&RequestContext) -> bool + Send + Sync + 'static) {
        self.sees = Some(match self.sees.take() {
            None => Arc::new(sees),
            Some(before) => Arc::new(move |cx| before(cx) && sees(cx)),
        });
    }

    /// Restricts the listings further to those of callers for which `lists` is true.
    pub(crate) fn list(&mut self, lists: impl Fn(&RequestContext) -> bool + Send + Sync + 'static) {
        self.listed = Some(match self.listed.take() {
            None => Arc::new(lists),
            Some(before) => Arc::new(move |cx| before(cx) && lists(cx)),
        });
    }

    /// Whether the list of a caller shows the feature.
    fn is_listed(&self, cx: &RequestContext) -> bool {
        self.is_seen(cx) && self.listed.as_ref().is_none_or(|listed| listed(cx))
    }

    /// Whether a caller sees the feature.
    fn is_seen(&self, cx: &RequestContext) -> bool {
        #[cfg(feature = "auth")]
        if cx.principal().is_some_and(|it| it.hides(&self.scopes)) {
            return false;
        }
        self.sees.as_ref().is_none_or(|sees| sees(cx))
    }

    /// Whether the feature is restricted to some callers. Its results must not be shared then.
    pub(crate) fn is_restricted(&self) -> bool {
        self.sees.is_some() || self.needs_scopes()
    }

    fn needs_scopes(&self) -> bool {
        #[cfg(feature = "auth")]
        let needs = !self.scopes.is_empty();
        #[cfg(not(feature = "auth"))]
        let needs = false;
        needs
    }
}

/// The way in which a handler asks its client for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskMode {
    /// The handler cannot ask: it takes no context.
    Never,
    /// The handler asks by the methods of its context.
    Context,
    /// The handler asks by returning a [`Reply`](crate::Reply).
    Reply,
}

impl AskMode {
    pub(crate) fn of(takes_context: bool, is_reply: bool) -> Self {
        match (is_reply, takes_context) {
            (true, _) => Self::Reply,
            (false, true) => Self::Context,
            (false, false) => Self::Never,
        }
    }
}

/// A feature that a server lists: a tool, prompt, resource or resource template. The macro [`impl_feature`] implements it.
pub(crate) trait Feature: Send + Sync + Sized + 'static {
    /// The entry of the feature in the list.
    type Definition: Clone;
    /// The result of the list request.
    type Page: Project + HasMeta;
    /// The name of the kind, for error messages.
    const KIND: &'static str;
    /// The method of the list request.
    const LIST_METHOD: &'static str;

    /// The name, the URI or the URI template, which is unique within the kind.
    fn id(&self) -> &str;

    fn definition(&self) -> &Self::Definition;

    fn metadata(&self) -> &Meta;

    fn access(&self) -> &Access;

    /// The filter key of the notification that the list has changed.
    fn list_changed() -> SubscriptionFilter;

    fn page(entries: Vec<Self::Definition>, next: Option<Cursor>, hint: CacheHint) -> Self::Page;

    fn is_visible(&self, cx: &RequestContext) -> bool {
        self.access().is_seen(cx)
    }

    /// Whether the caller's list shows the feature.
    fn is_listed(&self, cx: &RequestContext) -> bool {
        self.access().is_listed(cx)
    }
}

/// An argument of [`Server::tool`](crate::Server::tool) and its siblings: a [`Tool`](struct@crate::Tool), a
/// [`Prompt`](struct@crate::Prompt), a [`Resource`](struct@crate::Resource) or a
/// [`ResourceTemplate`](crate::ResourceTemplate).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `{T}`",
    label = "not a `{T}`",
    note = "a function with the attribute `#[oxmcp::tool]` makes its tool by its name: write `.tool(divide::tool())` in place of \
            `.tool(divide)`, and likewise `::prompt()`, `::resource()` and `::template()`",
    note = "for any other function: `Tool::new(name, description, function)`, and likewise the others"
)]
pub trait IntoFeature<T> {
    /// Returns the feature.
    #[doc(hidden)]
    fn into_feature(self) -> T;
}

#[diagnostic::do_not_recommend]
impl<T> IntoFeature<T> for T {
    fn into_feature(self) -> T {
        self
    }
}

/// Implements [`Feature`] for a type that has the fields `definition` and `access`.
macro_rules! impl_feature {
    (
        $type:ident($kind:literal): $definition:ident by $id:ident,
        $method:ident -> $page:ident.$entries:ident, $changed:ident
    ) => {
        impl crate::server::registry::Feature for $type {
            type Definition = oxmcp_protocol::$definition;
            type Page = oxmcp_protocol::$page;
            const KIND: &'static str = $kind;
            const LIST_METHOD: &'static str =
                <oxmcp_protocol::method::$method as oxmcp_protocol::Method>::NAME;

            fn id(&self) -> &str {
                &self.definition.$id
            }

            fn definition(&self) -> &Self::Definition {
                &self.definition
            }

            fn metadata(&self) -> &oxmcp_protocol::Meta {
                &self.definition.meta
            }

            fn access(&self) -> &crate::server::registry::Access {
                &self.access
            }

            fn list_changed() -> oxmcp_protocol::SubscriptionFilter {
                oxmcp_protocol::SubscriptionFilter::default().$changed(true)
            }

            fn page(
                entries: Vec<Self::Definition>,
                next: Option<oxmcp_protocol::Cursor>,
                hint: oxmcp_protocol::CacheHint,
            ) -> Self::Page {
                let mut page = Self::Page::default();
                page.$entries = entries;
                page.next_cursor = next;
                page.ttl_ms = Some(hint.ttl_ms());
                page.cache_scope = Some(hint.scope);
                page
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

pub(crate) use impl_feature;

/// A feature that a request calls by name, with arguments: a tool or a prompt.
pub(crate) trait Callable: Feature {
    /// The method of the request.
    const METHOD: &'static str;

    fn ask_mode(&self) -> AskMode;

    /// Whether calls can run as tasks if the client asks for it.
    fn can_be_task(&self) -> bool {
        false
    }

    /// The response to arguments that are invalid for any feature.
    ///
    /// # Errors
    /// If the response is a protocol error.
    fn refuse(&self, fault: &str) -> Result<Body>;

    /// The work of one request. May be called again with the same arguments. Refuses [duplicate keys](duplicate_key) in the
    /// arguments.
    fn call(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work;
}

/// The error message for a duplicate name in the arguments: two parsers could read different values, one that is checked and
/// another that is used.
pub(crate) fn duplicate_key(arguments: Text<'_>) -> Option<String> {
    let name = arguments.duplicate_key()?;
    let name = quote_text(&name);
    Some(format!("duplicate key {name}; send it once"))
}

/// The arguments with each lone surrogate replaced; borrowed if they have none. `None` if they have a duplicate key, which
/// replacing can create.
pub(crate) fn replace_lone_surrogates(arguments: Text<'_>) -> Option<Cow<'_, str>> {
    let text = without_lone_surrogates(arguments.get());
    let is_unique = Text::checked(&text).duplicate_key().is_none();
    is_unique.then_some(text)
}

/// Features of one kind, sorted by their unique ids.
///
/// The order makes listings stable, and the id makes a good cursor: additions and removals between two pages never make a client
/// miss or repeat other entries.
pub(crate) struct Registry<T> {
    features: Vec<Arc<T>>,
    /// Whether the capability was declared. It is never withdrawn.
    declared: bool,
    /// Whether there are features that only some callers see.
    restricted: bool,
    /// Whether there are features that need scopes, which some callers do not see.
    scoped: bool,
    /// The only features that are listed; `None` if all are.
    listed: Option<Arc<BTreeSet<String>>>,
    /// The cache hint of the list.
    pub(crate) cache: CacheHint,
    /// The cached pages that clients have requested.
    pub(crate) pages: Arc<Pages>,
}

/// Cache of encoded pages.
#[derive(Debug, Default)]
pub(crate) struct Pages(pub(crate) Mutex<BTreeMap<PageKey, Line>>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageKey {
    pub(crate) revision: Revision,
    /// The id after which the page begins.
    pub(crate) last: Option<String>,
    /// Whether the page must not be shared between callers.
    pub(crate) is_private: bool,
    /// The features that the caller does not see, as indexes counted from after `last`.
    pub(crate) hidden: Box<[usize]>,
}

impl<T: Feature> Registry<T> {
    /// Declares the capability, even while there are no features.
    pub(crate) fn declare(&mut self) {
        self.declared = true;
    }

    /// Adds a feature, or replaces the one with the same id.
    pub(crate) fn insert(&mut self, feature: Arc<T>) {
        self.remove(feature.id());
        let (Ok(at) | Err(at)) = self.search(feature.id());
        self.features.insert(at, feature);
    }

    /// Removes a feature. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let found = self.search(id);
        found.map(|at| self.features.remove(at)).is_ok()
    }

    /// The index of a feature, or the index at which it would be inserted.
    fn search(&self, id: &str) -> std::result::Result<usize, usize> {
        self.features.binary_search_by(|it| it.id().cmp(id))
    }

    fn find(&self, id: &str) -> Option<&Arc<T>> {
        let at = self.search(id).ok()?;
        self.features.get(at)
    }

    /// Updates the fields that are derived from the features.
    pub(crate) fn refresh(&mut self) {
        self.pages = Arc::default();
        let mut all = self.features.iter().map(|feature| feature.access());
        self.restricted = all
            .clone()
            .any(|access| access.sees.is_some() || access.listed.is_some());
        self.scoped = all.any(Access::needs_scopes);
    }

    /// The feature with this id, if the caller sees it.
    pub(crate) fn get(&self, id: &str, cx: &RequestContext) -> Option<&Arc<T>> {
        self.find(id).filter(|it| it.is_visible(cx))
    }

    /// The feature with this id, whether or not the caller sees it.
    pub(crate) fn get_any(&self, id: &str) -> Option<&Arc<T>> {
        self.find(id)
    }

    /// Whether a feature with this id exists, whether or not the caller sees it.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.search(id).is_ok()
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.declared
    }

    /// Whether the listing for this caller depends on the caller.
    pub(crate) fn is_restricted_for(&self, cx: &RequestContext) -> bool {
        self.restricted || self.scoped && hides_unpermitted(cx)
    }

    /// Whether the list may depend on the caller.
    pub(crate) fn may_be_restricted(&self) -> bool {
        self.restricted || self.scoped
    }

    /// Whether there are features that need scopes.
    #[cfg(all(feature = "auth", feature = "http-server"))]
    pub(crate) fn needs_scopes(&self) -> bool {
        self.scoped
    }

    pub(crate) fn len(&self) -> usize {
        self.features.len()
    }

    /// Lists only these features.
    pub(crate) fn list_only(&mut self, ids: impl IntoIterator<Item = String>) {
        self.listed = Some(Arc::new(ids.into_iter().collect()));
    }

    /// The features after `last`, or all, without those that are never listed.
    pub(crate) fn listed_after(&self, last: Option<&str>) -> impl Iterator<Item = &Arc<T>> {
        let listed = self.listed.as_deref();
        self.after(last)
            .filter(move |it| listed.is_none_or(|listed| listed.contains(it.id())))
    }

    /// The features after `last`, or all.
    pub(crate) fn after(&self, last: Option<&str>) -> impl Iterator<Item = &Arc<T>> {
        let is_before = |it: &Arc<T>| last.is_some_and(|last| it.id() <= last);
        let from = self.features.partition_point(is_before);
        self.features.iter().skip(from)
    }
}

/// Whether features that the caller's token does not permit are hidden.
fn hides_unpermitted(cx: &RequestContext) -> bool {
    #[cfg(feature = "auth")]
    let hides = cx.principal().is_some_and(|it| it.hides_unpermitted());
    #[cfg(not(feature = "auth"))]
    let hides = {
        let _ = cx;
        false
    };
    hides
}

impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            features: self.features.clone(),
            declared: self.declared,
            restricted: self.restricted,
            scoped: self.scoped,
            listed: self.listed.clone(),
            cache: self.cache,
            pages: Arc::clone(&self.pages),
        }
    }
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            features: Vec::new(),
            declared: false,
            restricted: false,
            scoped: false,
            listed: None,
            cache: CacheHint::default(),
            pages: Arc::default(),
        }
    }
}

impl<T: Feature> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.features.iter().map(|it| it.id());
        f.debug_set().entries(ids).finish()
    }
}
