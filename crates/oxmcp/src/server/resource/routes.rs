use std::sync::Arc;

use super::RegisteredTemplate;
use crate::{
    codec::uri_template::Captures,
    server::registry::{Feature, Registry},
    session::RequestContext,
};

/// The templates in the order in which they are asked whether a URI is theirs: those with the most literal characters
/// first, of these those with the fewest variables, and at last by their text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes(Arc<[Arc<RegisteredTemplate>]>);

impl Routes {
    pub(crate) fn of(templates: &Registry<RegisteredTemplate>) -> Self {
        let mut sorted: Vec<_> = templates.after(None).cloned().collect();
        // They come by their text, and this keeps the order of what is equal.
        sorted.sort_by_cached_key(|template| template.matcher.rank());
        Self(sorted.into())
    }

    /// The first template that the URI is one of and that the caller sees.
    pub(in crate::server) fn find(
        &self,
        uri: &str,
        cx: &RequestContext,
    ) -> Option<(&Arc<RegisteredTemplate>, Captures)> {
        let mut seen = self.0.iter().filter(|template| template.is_visible(cx));
        seen.find_map(|template| Some((template, template.matcher.captures(uri)?)))
    }

    /// Whether the URI is one of templates that the caller does not see, and of no other.
    pub(in crate::server) fn hides(&self, uri: &str, cx: &RequestContext) -> bool {
        let mut of_uri = self.0.iter();
        let mut of_uri = of_uri
            .by_ref()
            .filter(|template| template.matcher.captures(uri).is_some());
        let is_hidden = of_uri.next().is_some_and(|first| !first.is_visible(cx));
        is_hidden && of_uri.all(|template| !template.is_visible(cx))
    }
}
