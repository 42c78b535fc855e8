//! What of the resources that a caller watches it may hear of.
//!
//! A resource that a caller does not see is watched as one that does not exist yet is: nobody says no, and nobody tells of
//! it. A refusal would say that there is something.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    server::features::Features,
    session::{RequestContext, guarded},
};

/// Whether there is such a resource, and it is not for this caller.
fn is_hidden(features: &Features, uri: &str, cx: &RequestContext) -> bool {
    let resources = &features.resources;
    if resources.contains(uri) {
        return resources.get(uri, cx).is_none();
    }
    features.templates.is_restricted() && features.routes.hides(uri, cx)
}

/// Whether some resources are there for some callers only.
fn is_restricted(features: &Features) -> bool {
    features.resources.is_restricted() || features.templates.is_restricted()
}

/// Whether the server's author is asked to agree that a resource is watched. What the author says of one that the caller does
/// not see, and of one that nobody has, may differ: so neither gets so far.
pub(super) fn is_put_to_the_author(features: &Features, uri: &str, cx: &RequestContext) -> bool {
    let resources = &features.resources;
    !is_restricted(features)
        || resources.get(uri, cx).is_some()
        || !resources.contains(uri) && features.routes.find(uri, cx).is_some()
}

/// Leaves out what the caller must not hear of. Without a context, nobody knows who that is.
pub(in crate::server) fn retain_seen(
    features: &Features,
    uris: &mut BTreeSet<Arc<str>>,
    cx: impl FnOnce() -> Option<RequestContext>,
) {
    if uris.is_empty() || !is_restricted(features) {
        return;
    }
    let Some(cx) = cx() else {
        return uris.clear();
    };
    // Who cannot say whether a caller sees it does not say so.
    uris.retain(|uri| guarded(|| Ok(!is_hidden(features, uri, &cx))).unwrap_or(false));
}
