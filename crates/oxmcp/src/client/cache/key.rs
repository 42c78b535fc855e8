//! What is asked, of whom, and what makes an answer wrong.

use std::sync::Arc;

use serde::{Deserialize, de::IgnoredAny};

use crate::{
    json::Text,
    protocol::{
        CacheScope, Method, Notification, ResourceUpdatedParams, SubscriptionFilter, covers,
        method::{
            Discover, ListPrompts, ListResourceTemplates, ListResources, ListTools,
            PromptListChanged, ReadResource, ResourceListChanged, ResourceUpdated, ToolListChanged,
        },
    },
};

/// A kind of question whose answers can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Discover,
    Tools,
    Prompts,
    Resources,
    Templates,
    Read,
}

impl Kind {
    /// The kind of a method. Asked at compile time, so that calls of all other methods pay nothing.
    pub(crate) const fn of(method: &str) -> Option<Self> {
        const KINDS: [(&str, Kind); 6] = [
            (Discover::NAME, Kind::Discover),
            (ListTools::NAME, Kind::Tools),
            (ListPrompts::NAME, Kind::Prompts),
            (ListResources::NAME, Kind::Resources),
            (ListResourceTemplates::NAME, Kind::Templates),
            (ReadResource::NAME, Kind::Read),
        ];
        let mut rest: &[(&str, Self)] = &KINDS;
        while let [(name, kind), others @ ..] = rest {
            if same(name.as_bytes(), method.as_bytes()) {
                return Some(*kind);
            }
            rest = others;
        }
        None
    }
}

/// Whether two texts are the same, for the compiler to find out.
const fn same(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([x, more_a @ ..], [y, more_b @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (more_a, more_b);
    }
    a.is_empty() && b.is_empty()
}

/// A server, as far as it can be told from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Server {
    /// By the identity of its transport.
    Known(Arc<str>),
    /// Not at all: it is the one of this session.
    OfSession(u64),
}

/// Who asks whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) server: Server,
    pub(crate) session: u64,
    /// On whose behalf it is asked, where that is known.
    pub(crate) authorization: Option<Arc<str>>,
}

impl Place {
    /// Who may have an answer of this scope that is given here. Where it is not known on whose behalf it was asked, a
    /// private one is for the session alone.
    pub(crate) fn owner(&self, scope: CacheScope) -> Owner {
        match (scope, &self.authorization) {
            (CacheScope::Public, _) => Owner::Everybody,
            (CacheScope::Private, Some(holder)) => Owner::Holder(Arc::clone(holder)),
            (CacheScope::Private, None) => Owner::Session(self.session),
        }
    }
}

/// Who may have an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Everybody,
    Holder(Arc<str>),
    Session(u64),
}

/// A question: all that an answer depends on, but for who asks whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) kind: Kind,
    /// The params.
    pub(crate) params: Box<str>,
    /// What every request of the session says: the revision, the client, and what it can do.
    pub(crate) terms: Arc<str>,
    /// The resource that is read.
    pub(crate) uri: Option<Box<str>>,
}

impl Question {
    /// The question that some params ask. `None` where the answer depends on more than them, and must not be kept.
    pub(crate) fn new(kind: Kind, params: String, terms: Arc<str>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Read {
            uri: Box<str>,
            input_responses: Option<IgnoredAny>,
            request_state: Option<IgnoredAny>,
        }
        let uri = if kind == Kind::Read {
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
            terms,
            uri,
        })
    }

    /// Whether it asks for a page after the first.
    pub(crate) fn has_cursor(&self) -> bool {
        self.kind != Kind::Read && self.params.contains(r#""cursor":"#)
    }

    fn size(&self) -> usize {
        self.params.len() + self.uri.as_ref().map_or(0, |uri| uri.len())
    }
}

/// A question and who asks it of whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) place: Place,
    pub(crate) question: Arc<Question>,
}

/// What an answer is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) server: Server,
    pub(crate) owner: Owner,
    pub(crate) question: Arc<Question>,
}

impl Key {
    pub(crate) fn new(ask: &Ask, scope: CacheScope) -> Self {
        Self {
            server: ask.place.server.clone(),
            owner: ask.place.owner(scope),
            question: Arc::clone(&ask.question),
        }
    }

    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.question.size()
    }
}

/// Something that makes answers wrong.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    Resource(ResourceUpdatedParams),
}

impl Change {
    /// What a notification says has changed.
    pub(crate) fn read(method: &str, params: Option<Text<'_>>) -> Option<Self> {
        match method {
            ToolListChanged::NAME => Some(Self::Tools),
            PromptListChanged::NAME => Some(Self::Prompts),
            ResourceListChanged::NAME => Some(Self::Resources),
            ResourceUpdated::NAME => params?.parse().ok().map(Self::Resource),
            _ => None,
        }
    }

    /// What may have changed while nobody heard what passes a filter.
    pub(crate) fn unheard(filter: &SubscriptionFilter) -> impl Iterator<Item = Self> {
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

    /// Whether the answer to a question may be another one now.
    pub(crate) fn concerns(&self, question: &Question) -> bool {
        match (self, question.kind) {
            (Self::Tools, Kind::Tools)
            | (Self::Prompts, Kind::Prompts)
            | (Self::Resources, Kind::Resources | Kind::Templates) => true,
            (Self::Resource(changed), Kind::Read) => {
                // A resource may be a part of another, and either may be the one that is named.
                let (read, changed) = (question.uri.as_deref(), &changed.uri);
                read.is_some_and(|read| covers(read, changed) || covers(changed, read))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_specification_lists_is_kept() {
        assert_eq!(Kind::of("tools/list"), Some(Kind::Tools));
        assert_eq!(Kind::of("resources/read"), Some(Kind::Read));
        for other in [
            "tools/call",
            "tools/lis",
            "tools/listing",
            "prompts/get",
            "ping",
            "",
        ] {
            assert_eq!(Kind::of(other), None, "{other}");
        }
    }

    #[test]
    fn answers_to_retries_are_never_kept() {
        let ask = |params: &str| Question::new(Kind::Read, params.into(), "".into());
        assert!(ask(r#"{"uri":"a"}"#).is_some());
        assert!(ask(r#"{"uri":"a","inputResponses":{}}"#).is_none());
        assert!(ask(r#"{"uri":"a","requestState":"s"}"#).is_none());
    }

    #[test]
    fn a_change_concerns_its_list_and_its_resource() {
        let read = |uri: &str| {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            Question::new(Kind::Read, params, "".into()).unwrap()
        };
        let list = |kind| Question::new(kind, "{}".into(), "".into()).unwrap();
        assert!(Change::Tools.concerns(&list(Kind::Tools)));
        assert!(!Change::Tools.concerns(&list(Kind::Prompts)));
        assert!(Change::Resources.concerns(&list(Kind::Templates)));
        assert!(!Change::Resources.concerns(&read("file:///a")));
        let changed = Change::resource("file:///dir/a");
        for (uri, concerned) in [
            ("file:///dir/a", true),
            ("file:///dir", true),
            ("file:///dir/a/b", true),
            ("file:///dir/ab", false),
            ("file:///other", false),
        ] {
            assert_eq!(changed.concerns(&read(uri)), concerned, "{uri}");
        }
    }
}
