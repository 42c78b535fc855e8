//! Access token scopes that a request needs: those of the features that it names, if the caller sees them.

use std::{cell::OnceCell, sync::Arc};

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
    },
    transport::principal::Principal,
};

/// The scopes that a message of this principal needs. The message is read as in its dispatch, and its caller sees the same
/// features: `connection` is the connection on which it arrives, or an equivalent one, and `None` if its session does not
/// exist. Invalid params need no scopes, since such requests are not served.
pub(crate) fn needed_scopes(
    features: &Features,
    principal: Option<&Principal>,
    connection: &dyn Fn() -> Option<Arc<Connection>>,
    message: &Envelope<'_, RequestParams<'_>>,
) -> ScopeSet {
    let Envelope::Request(request) = message else {
        return ScopeSet::new();
    };
    let needs_some = features.tools.needs_scopes()
        || features.prompts.needs_scopes()
        || features.resources.needs_scopes()
        || features.templates.needs_scopes();
    let Some(params) = request.params.filter(|_| needs_some) else {
        return ScopeSet::new();
    };
    if params.check().is_err() || params.meta.log_level().is_err() {
        return ScopeSet::new();
    }
    let caller = || {
        let Some(connection) = connection() else {
            return Caller::Unserved;
        };
        let Some(role) = connection.role_as::<ServerRole>() else {
            return Caller::Unknown;
        };
        let named = (&request.id, &*request.method);
        match role.context(features, &connection, named, params) {
            Ok(mut context) => {
                context.sender = principal.cloned();
                Caller::Known(RequestContext::new(Arc::new(context)))
            }
            Err(_) => Caller::Unknown,
        }
    };
    let named = ReferencedFeatures {
        features,
        principal,
        find_caller: &caller,
        caller: OnceCell::new(),
    };
    named.scopes(&request.method, params)
}

impl ServerRole {
    /// Refuses a request that needs scopes, if messages bypass the endpoints, which would have checked the token.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn check_scopes(
        &self,
        features: &Features,
        context: &Arc<ContextParts>,
        method: &str,
        params: &RequestParams<'_>,
    ) -> Result<()> {
        if !self.bypasses_endpoint(&context.connection) {
            return Ok(());
        }
        let cx = RequestContext::new(Arc::clone(context));
        let needed = ReferencedFeatures::by(features, &cx).scopes(method, params);
        if needed.is_empty() {
            return Ok(());
        }
        tracing::warn!(
            %method,
            scopes = %needed,
            "rejected a request that needs scopes: `SseTransport` checks no access tokens; use `LegacySse::protect`"
        );
        Err(Error::invalid_request(format!(
            "insufficient scope: this needs {needed}, and the server checks no access tokens"
        )))
    }

    /// Refuses a request over HTTP if middleware has replaced its params, and the new params need scopes that its token lacks:
    /// the endpoint has checked only the original params.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn check_replaced(
        &self,
        features: &Features,
        cx: &RequestContext,
        method: &str,
        (original, params): (&RequestParams<'_>, &RequestParams<'_>),
    ) -> Result<()> {
        if cx.parts().connection.caller().request.is_none() {
            return self.check_scopes(features, cx.parts(), method, params);
        }
        let named = ReferencedFeatures::by(features, cx);
        let needed = named.scopes(method, params);
        let is_checked = named.scopes(method, original).includes(&needed);
        if is_checked || cx.principal().is_some_and(|it| it.permits(&needed)) {
            return Ok(());
        }
        Err(Error::invalid_request(format!(
            "insufficient scope: this needs {needed}; use an access token that grants it"
        )))
    }
}

/// The scopes of tools, for tasks and other data that outlive their calls.
impl RequestContext {
    /// The scopes that a tool needs. Empty if the caller was not checked against a token.
    pub(crate) fn scopes_of_tool(&self, tool: &str) -> ScopeSet {
        let permitted = self.permitted_tool_scopes(|name| name == tool);
        permitted.into_iter().next().unwrap_or_default()
    }

    /// The scopes of the chosen tools that the caller's token permits; each set once.
    pub(crate) fn permitted_tool_scopes(&self, is_meant: impl Fn(&str) -> bool) -> Vec<ScopeSet> {
        let mut all: Vec<ScopeSet> = Vec::new();
        let (Some(principal), Ok(server)) = (self.principal(), self.server()) else {
            return all;
        };
        let features = server.features();
        let tools = features.tools.after(None).filter(|it| is_meant(it.id()));
        for scopes in tools.map(|tool| &tool.access().scopes) {
            if !scopes.is_empty() && !all.contains(scopes) && principal.permits(scopes) {
                all.push(scopes.clone());
            }
        }
        all
    }
}

/// The caller of a message, as far as known before the message is served.
enum Caller {
    /// The session of the message does not exist, and the message is not served.
    Unserved,
    /// The session of the message is about to open: the message that opens it has not been read yet.
    Unknown,
    Known(RequestContext),
}

/// The features that a message may name, as its caller sees them.
struct ReferencedFeatures<'a> {
    features: &'a Features,
    principal: Option<&'a Principal>,
    find_caller: &'a dyn Fn() -> Caller,
    /// The caller, found once for all features that the message names.
    caller: OnceCell<Caller>,
}

impl<'a> ReferencedFeatures<'a> {
    /// The features that a known caller sees.
    fn by(features: &'a Features, cx: &'a RequestContext) -> Self {
        Self {
            features,
            principal: cx.principal(),
            find_caller: &|| Caller::Unknown,
            caller: Caller::Known(cx.clone()).into(),
        }
    }

    fn scopes(&self, method: &str, params: &RequestParams<'_>) -> ScopeSet {
        let features = self.features;
        let name = || params.name.and_then(Text::as_str).unwrap_or_default();
        let uri = || params.first_member("uri").and_then(Text::as_str);
        match method {
            CallTool::NAME => {
                // A call through the search needs the scopes of the tool found.
                let search = features.tool_search.as_deref();
                let is_strict = features.has_strict_arguments;
                let found = search.and_then(|search| search.target(params, is_strict));
                let name = found.map_or_else(name, |(tool, _)| tool);
                self.of(features.tools.get_any(&name))
            }
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
                // Each URI is matched with the templates. A request for too many URIs is refused when it is served.
                let needs_some =
                    features.resources.needs_scopes() || features.templates.needs_scopes();
                if !needs_some || uris.len() > features.limits.max_watched_uris {
                    return ScopeSet::new();
                }
                let all = uris.iter().map(|uri| self.of_resource(uri));
                all.fold(ScopeSet::new(), |all, of_one| all.union(&of_one))
            }
            _ => ScopeSet::new(),
        }
    }

    /// The scopes of the resource, or otherwise of the template that serves it.
    fn of_resource(&self, uri: &str) -> ScopeSet {
        if let Some(resource) = self.features.resources.get_any(uri) {
            return self.of(Some(resource));
        }
        if !self.features.templates.needs_scopes() {
            return ScopeSet::new();
        }
        let mut candidates = self.features.routes.candidates(uri);
        let template = candidates.find(|template| self.is_seen(*template));
        template.map_or_else(ScopeSet::new, |template| template.access().scopes.clone())
    }

    /// The scopes of a feature. A feature that the caller does not see needs none: asking for its scopes would reveal that it
    /// exists.
    fn of<T: Feature>(&self, feature: Option<&Arc<T>>) -> ScopeSet {
        let needed = feature.filter(|it| !it.access().scopes.is_empty());
        let seen = needed.filter(|it| self.is_seen::<T>(it));
        seen.map_or_else(ScopeSet::new, |it| it.access().scopes.clone())
    }

    /// Whether the caller sees a feature. A visibility function that panics hides it: dispatch calls the function again, and
    /// fails. An unknown caller counts as one that sees the feature, since it may see it when the message is served.
    fn is_seen<T: Feature>(&self, feature: &T) -> bool {
        let access = feature.access();
        if self.principal.is_some_and(|it| it.hides(&access.scopes)) {
            return false;
        }
        if access.sees.is_none() {
            return true;
        }
        match self.caller.get_or_init(self.find_caller) {
            Caller::Unserved => false,
            Caller::Unknown => true,
            Caller::Known(cx) => catch_panic(|| Ok(feature.is_visible(cx))).unwrap_or(false),
        }
    }
}
