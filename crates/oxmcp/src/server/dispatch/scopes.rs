//! Scopes that a request needs, by what it names, as far as its caller sees that.

use std::sync::Arc;

use oxmcp_auth::ScopeSet;
use oxmcp_json::Text;
use oxmcp_protocol::{
    CompleteParams, ListenParams, Method,
    internal::{Envelope, RequestParams},
    method::{CallTool, Complete, GetPrompt, Listen, ReadResource, Subscribe},
};

use crate::{
    error::{Error, Result},
    server::{dispatch::ServerRole, features::Features, registry::Feature},
    session::{
        connection::{Connection, ContextParts, RequestContext},
        panics::catch_panic,
        principal::Principal,
    },
};

/// The scopes that a message needs which comes from this principal. It is read as its dispatch reads it, and its caller sees the
/// same: `connection` is the one that it arrives on, or one like it, and `None` where it is of no session that there is. Params
/// that do not fit need none, since nothing is served for them.
pub(crate) fn needed_scopes(
    features: &Features,
    principal: Option<&Principal>,
    connection: &dyn Fn() -> Option<Arc<Connection>>,
    message: &Envelope<'_, RequestParams<'_>>,
) -> ScopeSet {
    let Envelope::Request(request) = message else {
        return ScopeSet::new();
    };
    let Some(params) = request.params else {
        return ScopeSet::new();
    };
    let context = || {
        let connection = connection()?;
        let role = Arc::clone(connection.role()).into_any();
        let role = role.downcast::<ServerRole>().ok()?;
        let named = (&request.id, &*request.method);
        let context = role.context(features, &connection, named, params).ok()?;
        Some(RequestContext::new(Arc::new(context)))
    };
    let named = Named {
        features,
        hides_unpermitted: principal.is_some_and(Principal::hides_unpermitted),
        context: &context,
    };
    named.scopes(&request.method, params)
}

impl ServerRole {
    /// Refuses a request that needs scopes, where messages reach the server past its endpoints: nobody has held them against a
    /// token.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn check_scopes(
        &self,
        features: &Features,
        context: &Arc<ContextParts>,
        method: &str,
        params: &RequestParams<'_>,
    ) -> Result<()> {
        if !self.is_posted_by_hand(&context.connection) {
            return Ok(());
        }
        let named = Named {
            features,
            hides_unpermitted: false,
            context: &|| Some(RequestContext::new(Arc::clone(context))),
        };
        let needed = named.scopes(method, params);
        if needed.is_empty() {
            return Ok(());
        }
        Err(Error::invalid_request(format!(
            "this needs the scopes {needed}, and no access token is looked at here: serve it by LegacySse::protect in place of \
             SseTransport"
        )))
    }
}

/// The features that a message may name, as its caller sees them.
struct Named<'a> {
    features: &'a Features,
    /// Whether the caller is not shown what its token does not permit.
    hides_unpermitted: bool,
    /// `None` where the message is of no client that is served.
    context: &'a dyn Fn() -> Option<RequestContext>,
}

impl Named<'_> {
    fn scopes(&self, method: &str, params: &RequestParams<'_>) -> ScopeSet {
        let features = self.features;
        let name = || params.name.and_then(Text::as_str).unwrap_or_default();
        let uri = || params.first_member("uri").and_then(Text::as_str);
        match method {
            CallTool::NAME => self.of(features.tools.get_any(&name())),
            GetPrompt::NAME => self.of(features.prompts.get_any(&name())),
            ReadResource::NAME | Subscribe::NAME => self.of_resource(&uri().unwrap_or_default()),
            Complete::NAME => {
                let params: Option<CompleteParams> = params.raw.parse().ok();
                let reference = params.map(|params| params.reference);
                let prompt = reference.as_ref().and_then(|it| it.prompt_name());
                let template = reference.as_ref().and_then(|it| it.template());
                let of_prompt = self.of(prompt.and_then(|name| features.prompts.get_any(name)));
                let template = template.and_then(|uri| features.templates.get_any(uri));
                of_prompt.union(&self.of(template))
            }
            Listen::NAME => {
                let params: Option<ListenParams> = params.raw.parse().ok();
                let uris = params.map(|params| params.notifications.resource_subscriptions);
                let uris = uris.unwrap_or_default();
                let all = uris.iter().map(|uri| self.of_resource(uri));
                all.fold(ScopeSet::new(), |all, of_one| all.union(&of_one))
            }
            _ => ScopeSet::new(),
        }
    }

    /// Those of the resource, or else of the template that serves it.
    fn of_resource(&self, uri: &str) -> ScopeSet {
        if let Some(resource) = self.features.resources.get_any(uri) {
            return self.of(Some(resource));
        }
        let mut candidates = self.features.routes.candidates(uri);
        let template = candidates.find(|template| self.is_seen(*template));
        template.map_or_else(ScopeSet::new, |template| template.access().scopes.clone())
    }

    /// What the caller does not see needs nothing: it is answered as if it did not exist, and the scopes of what does not exist
    /// would tell that it does.
    fn of<T: Feature>(&self, feature: Option<&T>) -> ScopeSet {
        let needed = feature.filter(|it| !it.access().scopes.is_empty());
        let seen = needed.filter(|it| self.is_seen(*it));
        seen.map_or_else(ScopeSet::new, |it| it.access().scopes.clone())
    }

    /// A visibility function that panics hides: dispatch calls it again, and fails.
    fn is_seen<T: Feature>(&self, feature: &T) -> bool {
        if feature.access().sees.is_none() && !self.hides_unpermitted {
            return true;
        }
        (self.context)()
            .is_some_and(|cx| catch_panic(|| Ok(feature.is_visible(&cx))).unwrap_or(false))
    }
}
