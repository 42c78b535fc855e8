//! Notifications of changes, which are written once for all clients that are notified at once.

use std::collections::BTreeMap;

use oxmcp_protocol::{
    Meta, Notification, NotificationParams, RequestId, ResourceUpdatedParams, SubscriptionFilter,
    internal::write_notification,
    method::{PromptListChanged, ResourceListChanged, ResourceUpdated, ToolListChanged},
};
use serde::Serialize;

use super::Topics;
use crate::session::connection::Connection;

/// Whether a set of topics has a list.
type HasList = fn(&SubscriptionFilter) -> bool;

/// The notification of each list, and whether a set of topics has it.
pub(super) const LISTS: [(&str, HasList); 3] = [
    (ToolListChanged::NAME, |lists| lists.tools_list_changed),
    (PromptListChanged::NAME, |lists| lists.prompts_list_changed),
    (ResourceListChanged::NAME, |lists| {
        lists.resources_list_changed
    }),
];

/// How many bytes of notifications a client is sent at once. Where there are more each waits for room.
const MAX_AT_ONCE: usize = 16 << 10;

/// Changes with their notifications.
pub(super) struct WrittenChanges<'a> {
    changed: &'a Topics,
    /// Those of `LISTS` that are changed.
    lists: Vec<(HasList, Message)>,
    uris: BTreeMap<&'a str, Message>,
}

impl<'a> WrittenChanges<'a> {
    pub(super) fn new(changed: &'a Topics) -> Self {
        let lists = LISTS.into_iter().filter(|(_, has)| has(&changed.lists));
        let uris = changed.uris.iter();
        Self {
            changed,
            lists: lists
                .map(|(name, has)| (has, Message::new(name, &NotificationParams::default())))
                .collect(),
            uris: uris
                .map(|uri| {
                    let params = ResourceUpdatedParams::new(&**uri);
                    (&**uri, Message::new(ResourceUpdated::NAME, &params))
                })
                .collect(),
        }
    }

    pub(super) fn changed(&self) -> &Topics {
        self.changed
    }

    /// Notifies one client of those of the changes that are among its topics, within a subscription or without. Returns false,
    /// and does nothing, where it has to wait, they are many, or middleware comes first.
    pub(super) fn send(
        &self,
        connection: &Connection,
        topics: &Topics,
        subscription: Option<&RequestId>,
    ) -> bool {
        if connection.role().outgoing().is_some() || !self.are_few(topics, subscription) {
            return false;
        }
        connection.outbox.append_if_room(|out| {
            for message in self.of(topics) {
                message.write(out, subscription);
            }
        })
    }

    /// Whether some of the changes are among these topics.
    pub(super) fn concern(&self, topics: &Topics) -> bool {
        self.of(topics).next().is_some()
    }

    /// Whether those of the changes that are among these topics can be sent at once.
    fn are_few(&self, topics: &Topics, subscription: Option<&RequestId>) -> bool {
        let id = subscription.and_then(RequestId::as_str).map_or(0, str::len);
        let mut messages = self.of(topics);
        let left = messages.try_fold(MAX_AT_ONCE, |left, it| left.checked_sub(it.0.len() + id));
        left.is_some()
    }

    /// Looks up those of the smaller set: a client may have subscribed to thousands of resources, and thousands may change.
    fn of(&self, topics: &Topics) -> impl Iterator<Item = &Message> {
        let lists = self.lists.iter().filter(|(has, _)| has(&topics.lists));
        let fewer_topics = topics.uris.len() < self.uris.len();
        let by_topic = fewer_topics.then(|| {
            let uris = topics.uris.iter();
            uris.filter_map(|uri| self.uris.get(&**uri))
        });
        let by_change = (!fewer_topics).then(|| {
            let uris = self.uris.iter();
            uris.filter(|(uri, _)| topics.uris.contains(**uri))
                .map(|(_, it)| it)
        });
        let uris = by_topic.into_iter().flatten();
        let uris = uris.chain(by_change.into_iter().flatten());
        lists.map(|(_, it)| it).chain(uris)
    }
}

/// A notification as a line, with nothing in its `_meta`.
struct Message(Vec<u8>);

/// The end of such a line: that of its params, and its own.
const END: &[u8] = b"}}\n";

impl Message {
    fn new(method: &str, params: &impl Serialize) -> Self {
        let mut line = Vec::new();
        write_notification(&mut line, method, params).expect("params of the protocol are JSON");
        Self(line)
    }

    fn write(&self, out: &mut Vec<u8>, subscription: Option<&RequestId>) {
        let (Some(id), Some(start)) = (subscription, self.0.strip_suffix(END)) else {
            return out.extend_from_slice(&self.0);
        };
        out.extend_from_slice(start);
        if !start.ends_with(b"{") {
            out.push(b',');
        }
        out.extend_from_slice(br#""_meta":{""#);
        out.extend_from_slice(Meta::SUBSCRIPTION_ID.as_bytes());
        out.extend_from_slice(br#"":"#);
        serde_json::to_writer(&mut *out, id).expect("an id is JSON, and a buffer takes it");
        out.push(b'}');
        out.extend_from_slice(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written once must be what would be written for each.
    #[test]
    fn what_is_written_once_is_what_would_be_written_for_each() {
        let ids = [RequestId::from(7), RequestId::from("a \"b\"")];
        for id in ids.iter().map(Some).chain([None]) {
            let meta = id.map_or_else(Meta::default, Meta::of_subscription);
            let mut expected = Vec::new();
            let mut list = NotificationParams::default();
            list.meta = meta.clone();
            write_notification(&mut expected, ToolListChanged::NAME, &list).unwrap();
            let mut resource = ResourceUpdatedParams::new("app://\"}}");
            resource.meta = meta;
            write_notification(&mut expected, ResourceUpdated::NAME, &resource).unwrap();

            let mut changed = Topics::of_resource("app://\"}}");
            changed.lists.tools_list_changed = true;
            let mut topics = changed.clone();
            topics.lists.prompts_list_changed = true;
            changed.merge(Topics::of_resource("app://other"));
            let written = WrittenChanges::new(&changed);
            // With fewer topics than changes, and with more.
            for more in ["app://\"}}", "app://2", "app://3"] {
                topics.merge(Topics::of_resource(more));
                let mut out = Vec::new();
                for message in written.of(&topics) {
                    message.write(&mut out, id);
                }
                assert_eq!(
                    String::from_utf8(out).unwrap(),
                    String::from_utf8_lossy(&expected)
                );
            }
        }
    }
}
