//! Scopes that a request needs, by what it names.

use oxmcp_auth::ScopeSet;
use oxmcp_json::Text;
use oxmcp_protocol::{
    CompleteParams, ListenParams, Method,
    internal::{Envelope, RequestParams},
    method::{CallTool, Complete, GetPrompt, Listen, ReadResource, Subscribe},
};

use crate::server::{features::Features, registry::Feature};

impl Features {
    /// The scopes that a message needs. It is read as its dispatch reads it; params that do not fit need none, since nothing is
    /// served for them.
    pub(crate) fn needed_scopes(&self, message: &Envelope<'_, RequestParams<'_>>) -> ScopeSet {
        let (method, params) = match message {
            Envelope::Request(it) => (&*it.method, it.params),
            Envelope::Notification(it) => (&*it.method, it.params),
            Envelope::Response(_) => return ScopeSet::new(),
        };
        params.map_or_else(ScopeSet::new, |params| self.scopes_of(method, params))
    }

    fn scopes_of(&self, method: &str, params: &RequestParams<'_>) -> ScopeSet {
        let name = || params.name.and_then(Text::as_str).unwrap_or_default();
        let uri = || params.first_member("uri").and_then(Text::as_str);
        match method {
            CallTool::NAME => scopes(self.tools.get_any(&name())),
            GetPrompt::NAME => scopes(self.prompts.get_any(&name())),
            ReadResource::NAME | Subscribe::NAME => {
                self.scopes_of_resource(&uri().unwrap_or_default())
            }
            Complete::NAME => {
                let params: Option<CompleteParams> = params.raw.parse().ok();
                let reference = params.map(|params| params.reference);
                let prompt = reference.as_ref().and_then(|it| it.prompt_name());
                let template = reference.as_ref().and_then(|it| it.template());
                let of_prompt = scopes(prompt.and_then(|name| self.prompts.get_any(name)));
                let of_template = scopes(template.and_then(|uri| self.templates.get_any(uri)));
                of_prompt.union(&of_template)
            }
            Listen::NAME => {
                let params: Option<ListenParams> = params.raw.parse().ok();
                let uris = params.map(|params| params.notifications.resource_subscriptions);
                let uris = uris.unwrap_or_default();
                let all = uris.iter().map(|uri| self.scopes_of_resource(uri));
                all.fold(ScopeSet::new(), |all, of_one| all.union(&of_one))
            }
            _ => ScopeSet::new(),
        }
    }

    /// Those of the resource, or else of the templates one of which would serve it.
    fn scopes_of_resource(&self, uri: &str) -> ScopeSet {
        if let Some(resource) = self.resources.get_any(uri) {
            return scopes(Some(resource));
        }
        let templates = self.routes.candidates(uri);
        templates.fold(ScopeSet::new(), |all, it| all.union(&it.access().scopes))
    }
}

fn scopes<T: Feature>(feature: Option<&T>) -> ScopeSet {
    feature.map_or_else(ScopeSet::new, |feature| feature.access().scopes.clone())
}
