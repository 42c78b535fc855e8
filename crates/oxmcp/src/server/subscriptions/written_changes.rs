//! Notifications of changes, serialized once for all clients that are notified immediately.

use std::collections::BTreeMap;

use oxmcp_protocol::{
    Meta, Notification, NotificationParams, RequestId, ResourceUpdatedParams, SubscriptionFilter,
    internal::write_notification, method::ResourceUpdated,
};
use serde::Serialize;

use super::{
    Topics,
    topics::{HasList, LISTS},
};
use crate::session::connection::Connection;

/// The maximum number of bytes of notifications to send immediately. More are sent with backpressure.
const MAX_AT_ONCE: usize = 16 << 10;

/// Changes with their serialized notifications.
pub(crate) struct WrittenChanges<'a> {
    changed: &'a Topics,
    /// The messages of the changed lists, with the functions of `LISTS` that find them in a filter.
    lists: Vec<(HasList, Message)>,
    uris: BTreeMap<&'a str, Message>,
}

impl<'a> WrittenChanges<'a> {
    pub(crate) fn new(changed: &'a Topics) -> Self {
        let lists = LISTS.into_iter().filter(|(_, has)| has(&changed.lists));
        let uris = changed.uris.iter();
        Self {
            changed,
            lists: lists
                .map(|(name, has)| {
                    let params = NotificationParams::default();
                    (has, Message::new(name, &params, changed.changes_of(name)))
                })
                .collect(),
            uris: uris
                .map(|uri| {
                    let params = ResourceUpdatedParams::new(&**uri);
                    let changes = changed.changes_of(uri);
                    (
                        &**uri,
                        Message::new(ResourceUpdated::NAME, &params, changes),
                    )
                })
                .collect(),
        }
    }

    pub(crate) fn changed(&self) -> &Topics {
        self.changed
    }

    /// The messages of the changes that are among these topics.
    pub(crate) fn of(&self, topics: &Topics) -> Vec<&Message> {
        // Look up the smaller set in the larger one: a client may watch thousands of resources, and thousands may change.
        if topics.uris.len() < self.uris.len() {
            let uris = topics.uris.iter();
            return self.with_lists(&topics.lists, uris.filter_map(|uri| self.uris.get(&**uri)));
        }
        self.of_watched(&topics.lists, |uri| topics.uris.contains(uri))
    }

    /// The messages of the changes that are among these lists, and of the watched resources.
    pub(crate) fn of_watched(
        &self,
        lists: &SubscriptionFilter,
        is_watched: impl Fn(&str) -> bool,
    ) -> Vec<&Message> {
        let uris = self.uris.iter().filter(|(uri, _)| is_watched(uri));
        self.with_lists(lists, uris.map(|(_, message)| message))
    }

    fn with_lists<'m>(
        &'m self,
        lists: &SubscriptionFilter,
        uris: impl Iterator<Item = &'m Message>,
    ) -> Vec<&'m Message> {
        let lists = self.lists.iter().filter(|(has, _)| has(lists));
        lists.map(|(_, message)| message).chain(uris).collect()
    }
}

/// Notifies one client of changes, within a subscription or without. Returns false, and does nothing, if the outbox is full, the
/// messages are too long, or outgoing middleware must run first.
pub(crate) fn send(
    messages: &[&Message],
    connection: &Connection,
    subscription: Option<&RequestId>,
) -> bool {
    if connection.role().has_outgoing() || !are_few(messages, subscription) {
        return false;
    }
    let is_shared = connection.is_shared();
    connection.outbox.append_if_room(|out| {
        for message in messages {
            message.write(out, subscription, is_shared);
        }
    })
}

/// Whether the messages are short enough to be sent immediately.
fn are_few(messages: &[&Message], subscription: Option<&RequestId>) -> bool {
    let id = subscription.and_then(RequestId::as_str).map_or(0, str::len);
    let mut lengths = messages.iter().map(|message| message.length() + id);
    lengths.try_fold(MAX_AT_ONCE, usize::checked_sub).is_some()
}

/// A serialized notification.
pub(crate) struct Message {
    /// The notification as one line of JSON, without `_meta`.
    line: Vec<u8>,
    /// The changes that it reports, if other nodes also report them.
    changes: Option<String>,
}

/// The end of such a line: the end of its params, and its own.
const END: &[u8] = b"}}\n";

impl Message {
    fn new(method: &str, params: &impl Serialize, changes: Option<String>) -> Self {
        let mut line = Vec::new();
        write_notification(&mut line, method, params).expect("params of the protocol are JSON");
        Self { line, changes }
    }

    fn length(&self) -> usize {
        self.line.len() + self.changes.as_ref().map_or(0, String::len)
    }

    /// Writes the notification for a subscription, or for a client that other nodes may notify of the same changes.
    fn write(&self, out: &mut Vec<u8>, subscription: Option<&RequestId>, is_shared: bool) {
        match (subscription, &self.changes) {
            (Some(id), _) => self.write_with(out, Meta::SUBSCRIPTION_ID, id),
            (None, Some(changes)) if is_shared => self.write_with(out, Meta::CHANGES, changes),
            _ => out.extend_from_slice(&self.line),
        }
    }

    /// Writes the notification with the given member in its `_meta`.
    fn write_with(&self, out: &mut Vec<u8>, key: &str, value: &impl Serialize) {
        let start = self.line.strip_suffix(END).unwrap_or_default();
        out.extend_from_slice(start);
        if !start.ends_with(b"{") {
            out.push(b',');
        }
        out.extend_from_slice(br#""_meta":{""#);
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(br#"":"#);
        serde_json::to_writer(&mut *out, value).expect("writing JSON to a buffer cannot fail");
        out.push(b'}');
        out.extend_from_slice(END);
    }
}

#[cfg(test)]
mod tests {
    use oxmcp_protocol::method::ToolListChanged;

    use super::*;
    #[cfg(feature = "http-server")]
    use crate::server::subscriptions::topics::Change;

    #[cfg(feature = "http-server")]
    #[test]
    fn client_notified_elsewhere_learns_which_change() {
        let (node, number) = (15, 2);
        let mut topics = Topics::of_resource("app://a");
        topics.lists.tools_list_changed = true;
        let changed = topics.clone().due_to(Change { node, number });
        let written = WrittenChanges::new(&changed);
        for is_shared in [false, true] {
            let (mut list, mut resource) = (
                NotificationParams::default(),
                ResourceUpdatedParams::new("app://a"),
            );
            if is_shared {
                list.meta.insert(Meta::CHANGES, "f.2");
                resource.meta.insert(Meta::CHANGES, "f.2");
            }
            let (mut expected, mut out) = (Vec::new(), Vec::new());
            write_notification(&mut expected, ToolListChanged::NAME, &list).unwrap();
            write_notification(&mut expected, ResourceUpdated::NAME, &resource).unwrap();
            for message in written.of(&topics) {
                message.write(&mut out, None, is_shared);
            }
            assert_eq!(
                String::from_utf8(out).unwrap(),
                String::from_utf8_lossy(&expected)
            );
        }
    }

    /// The shared serialization must equal the one for each client.
    #[test]
    fn shared_encoding_equals_individual_encodings() {
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
                    message.write(&mut out, id, true);
                }
                assert_eq!(
                    String::from_utf8(out).unwrap(),
                    String::from_utf8_lossy(&expected)
                );
            }
        }
    }
}
