//! The keys of the cache, which hold all that a response depends on, and the changes that invalidate responses.

use std::sync::Arc;

use oxmcp_json::Text;
use oxmcp_protocol::{
    CacheScope, Method, Notification, ResourceUpdatedParams, SubscriptionFilter,
    internal::uri_covers,
    method::{
        Discover, ListPrompts, ListResourceTemplates, ListResources, ListTools, PromptListChanged,
        ReadResource, ResourceListChanged, ResourceUpdated, ToolListChanged,
    },
};
use serde::{Deserialize, de::IgnoredAny};

use crate::session::connection::Connection;

/// A kind of request whose responses can be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResponseKind {
    Discover,
    Tools,
    Prompts,
    Resources,
    Templates,
    Read,
}

impl ResponseKind {
    /// The kind of a method. `None` if its responses are never cached.
    pub(crate) fn of(method: &str) -> Option<Self> {
        Some(match method {
            Discover::NAME => Self::Discover,
            ListTools::NAME => Self::Tools,
            ListPrompts::NAME => Self::Prompts,
            ListResources::NAME => Self::Resources,
            ListResourceTemplates::NAME => Self::Templates,
            ReadResource::NAME => Self::Read,
            _ => return None,
        })
    }
}

/// The identity of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ServerIdentity {
    /// The identity of the server's transport.
    Known(Arc<str>),
    /// The server of this session, whose transport has no identity.
    OfSession(u64),
}

/// The part of the cache that a session uses, by the server of the responses and the requester that they are for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partition {
    pub(crate) server: ServerIdentity,
    pub(crate) session: u64,
    /// The number of the login, counted over the logins of the session.
    pub(crate) login: u64,
    /// The identity of the session's credentials, if it has any.
    pub(crate) authorization: Option<Arc<str>>,
}

impl Partition {
    /// The owner of a response of this scope. A private response without credentials is only for the session and its login.
    pub(crate) fn owner(&self, scope: CacheScope) -> Owner {
        match &self.authorization {
            _ if scope.is_public() => Owner::Everybody,
            Some(holder) => Owner::Holder(Arc::clone(holder)),
            None => Owner::Session {
                session: self.session,
                login: self.login,
            },
        }
    }
}

/// The requesters that may receive a response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Everybody,
    Holder(Arc<str>),
    Session { session: u64, login: u64 },
}

/// A request: all that a response depends on, except for the partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheRequest {
    pub(crate) kind: ResponseKind,
    /// The params, as JSON.
    pub(crate) params: Box<str>,
    /// The envelope of the session's requests: the revision, the client, and its capabilities.
    pub(crate) envelope: Arc<str>,
    /// The resource that is read.
    pub(crate) uri: Option<Box<str>>,
}

impl CacheRequest {
    /// The request with these params. `None` if the response depends on more than these params, and must not be cached.
    pub(crate) fn new(kind: ResponseKind, params: String, envelope: Arc<str>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Read {
            uri: Box<str>,
            input_responses: Option<IgnoredAny>,
            request_state: Option<IgnoredAny>,
        }
        let uri = if kind == ResponseKind::Read {
            let read: Read = serde_json::from_str(&params).ok()?;
            if read.input_responses.is_some() || read.request_state.is_some() {
                return None;
            }
            Some(read.uri)
        } else {
            None
        };
        Some(Self {
            kind,
            params: params.into(),
            envelope,
            uri,
        })
    }

    /// Whether the request asks for a page after the first.
    pub(crate) fn has_cursor(&self) -> bool {
        self.kind != ResponseKind::Read && self.params.contains(r#""cursor":"#)
    }

    fn size(&self) -> usize {
        self.params.len() + self.uri.as_ref().map_or(0, |uri| uri.len())
    }
}

/// A request in a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheLookup {
    pub(crate) partition: Partition,
    pub(crate) request: Arc<CacheRequest>,
}

/// The key of a stored response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub(crate) server: ServerIdentity,
    pub(crate) owner: Owner,
    pub(crate) request: Arc<CacheRequest>,
}

impl CacheKey {
    pub(crate) fn new(lookup: &CacheLookup, scope: CacheScope) -> Self {
        Self {
            server: lookup.partition.server.clone(),
            owner: lookup.partition.owner(scope),
            request: Arc::clone(&lookup.request),
        }
    }

    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.request.size()
    }
}

/// A change at a server that invalidates responses.
#[derive(Clone, Debug)]
pub(crate) enum Invalidation {
    Tools,
    Prompts,
    Resources,
    Resource(ResourceUpdatedParams),
}

impl Invalidation {
    /// The change that a notification reports.
    pub(crate) fn read(
        connection: &Connection,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Option<Self> {
        match method {
            ToolListChanged::NAME => Some(Self::Tools),
            PromptListChanged::NAME => Some(Self::Prompts),
            ResourceListChanged::NAME => Some(Self::Resources),
            ResourceUpdated::NAME => connection
                .read(method, params?.get())
                .ok()
                .map(Self::Resource),
            _ => None,
        }
    }

    /// The changes that may have been missed, of those that pass a filter.
    pub(crate) fn missed(filter: &SubscriptionFilter) -> impl Iterator<Item = Self> {
        let lists = [
            (filter.tools_list_changed, Self::Tools),
            (filter.prompts_list_changed, Self::Prompts),
            (filter.resources_list_changed, Self::Resources),
        ];
        let lists = lists.into_iter().filter(|(heard, _)| *heard);
        let uris = filter.resource_subscriptions.iter();
        let uris = uris.map(|uri| Self::resource(uri));
        lists.map(|(_, change)| change).chain(uris)
    }

    fn resource(uri: &str) -> Self {
        Self::Resource(ResourceUpdatedParams::new(uri))
    }

    /// Whether the change invalidates the response to a request.
    pub(crate) fn affects(&self, request: &CacheRequest) -> bool {
        match (self, request.kind) {
            (Self::Tools, ResponseKind::Tools)
            | (Self::Prompts, ResponseKind::Prompts)
            | (Self::Resources, ResponseKind::Resources | ResponseKind::Templates) => true,
            (Self::Resource(changed), ResponseKind::Read) => {
                // A resource may be a part of another, and the notification may name either of them.
                let (read, changed) = (request.uri.as_deref(), &changed.uri);
                read.is_some_and(|read| uri_covers(read, changed) || uri_covers(changed, read))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_methods_of_the_specification_are_cached() {
        assert_eq!(ResponseKind::of("tools/list"), Some(ResponseKind::Tools));
        assert_eq!(ResponseKind::of("resources/read"), Some(ResponseKind::Read));
        for other in [
            "tools/call",
            "tools/lis",
            "tools/listing",
            "prompts/get",
            "ping",
            "",
        ] {
            assert_eq!(ResponseKind::of(other), None, "{other}");
        }
    }

    #[test]
    fn answers_to_retries_are_never_cached() {
        let ask = |params: &str| CacheRequest::new(ResponseKind::Read, params.into(), "".into());
        assert!(ask(r#"{"uri":"a"}"#).is_some());
        assert!(ask(r#"{"uri":"a","inputResponses":{}}"#).is_none());
        assert!(ask(r#"{"uri":"a","requestState":"s"}"#).is_none());
    }

    #[test]
    fn change_invalidates_its_list_and_resource() {
        let read = |uri: &str| {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            CacheRequest::new(ResponseKind::Read, params, "".into()).unwrap()
        };
        let list = |kind| CacheRequest::new(kind, "{}".into(), "".into()).unwrap();
        assert!(Invalidation::Tools.affects(&list(ResponseKind::Tools)));
        assert!(!Invalidation::Tools.affects(&list(ResponseKind::Prompts)));
        assert!(Invalidation::Resources.affects(&list(ResponseKind::Templates)));
        assert!(!Invalidation::Resources.affects(&read("file:///a")));
        let changed = Invalidation::resource("file:///dir/a");
        for (uri, concerned) in [
            ("file:///dir/a", true),
            ("file:///dir", true),
            ("file:///dir/a/b", true),
            ("file:///dir/ab", false),
            ("file:///other", false),
        ] {
            assert_eq!(changed.affects(&read(uri)), concerned, "{uri}");
        }
    }
}
