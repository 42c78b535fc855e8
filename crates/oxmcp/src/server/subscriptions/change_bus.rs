//! Bus of changes, over which the nodes of a server notify each other, so that all clients are notified.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{BuildHasher, RandomState},
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use oxmcp_protocol::{
    Notification, SubscriptionFilter,
    method::{PromptListChanged, ResourceListChanged, ToolListChanged},
};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Topics,
    topics::{Change, LISTS},
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::metrics,
    session::task::spawn_on,
    store::{AnyBus, Delivery, listen},
    sync::Mutex,
};

/// The bus topic of these messages.
const TOPIC: &str = "changes";
/// The maximum number of names in one message. With more, the message says that anything may have changed.
const MAX_NAMED: usize = 1000;
const MAX_BYTES: usize = 64 << 10;

/// The changes of which to notify other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct News {
    /// The changed lists, by their notifications, each with the number of its last change.
    lists: BTreeMap<String, u64>,
    uris: BTreeMap<String, u64>,
    pub(crate) published: BTreeSet<Published>,
    /// Whether anything may have changed.
    pub(crate) all: bool,
    /// The number of the last change.
    pub(crate) last: u64,
    /// The number of bytes of all names.
    #[serde(skip)]
    bytes: usize,
}

/// An event that an extension has published: a key of filters, and the value as JSON.
pub(crate) type Published = (String, String);

impl News {
    /// Adds the changes of these topics, under this number.
    pub(crate) fn add(&mut self, topics: &Topics, number: u64) {
        for (name, _) in LISTS.into_iter().filter(|(_, has)| has(&topics.lists)) {
            self.add_list(name.to_owned(), number);
        }
        for uri in &topics.uris {
            self.add_uri(uri.to_string(), number);
        }
    }

    fn add_list(&mut self, name: String, number: u64) {
        let last = self.lists.entry(name).or_default();
        *last = number.max(*last);
        self.name(0, number);
    }

    fn add_uri(&mut self, uri: String, number: u64) {
        let bytes = uri.len();
        let before = self.uris.get(&uri).copied();
        let last = number.max(before.unwrap_or_default());
        self.uris.insert(uri, last);
        self.name(if before.is_none() { bytes } else { 0 }, number);
    }

    /// Adds an event that an extension has published, as the change of this number.
    pub(crate) fn publish(&mut self, (key, value): Published, number: u64) {
        let bytes = key.len() + value.len();
        let is_new = self.published.insert((key, value));
        self.name(if is_new { bytes } else { 0 }, number);
    }

    /// Adds news that could not be sent.
    pub(crate) fn merge(&mut self, other: Self) {
        for (name, number) in other.lists {
            self.add_list(name, number);
        }
        for (uri, number) in other.uris {
            self.add_uri(uri, number);
        }
        for published in other.published {
            self.publish(published, other.last);
        }
        self.all |= other.all;
        self.name(0, other.last);
    }

    fn name(&mut self, bytes: usize, number: u64) {
        self.bytes += bytes;
        self.last = number.max(self.last);
        let named = self.uris.len() + self.published.len();
        if self.all || named > MAX_NAMED || self.bytes > MAX_BYTES {
            *self = Self {
                all: true,
                last: self.last,
                ..Self::default()
            };
        }
    }

    /// The changed lists and resources, as changes of this node.
    pub(crate) fn topics(self, node: u64) -> Topics {
        let has = |name| self.lists.contains_key(name);
        let lists = SubscriptionFilter::default()
            .with_tools_list_changed(has(ToolListChanged::NAME))
            .with_prompts_list_changed(has(PromptListChanged::NAME))
            .with_resources_list_changed(has(ResourceListChanged::NAME));
        let mut topics = Topics::new(lists, self.uris.keys().map(String::as_str));
        for (topic, number) in self.lists.into_iter().chain(self.uris) {
            topics.note_change(topic.into(), Change { node, number });
        }
        topics
    }
}

/// A message to all nodes.
#[derive(Serialize, Deserialize)]
struct Message {
    /// The name of the server.
    server: String,
    /// The node that sent the message.
    node: u64,
    news: News,
}

/// A message that a node receives from the bus.
pub(crate) enum Heard {
    News {
        /// The node that sent the news.
        node: u64,
        news: News,
    },
    /// Messages may have been lost.
    Gap,
}

type Hears = Arc<dyn Fn(Heard) + Send + Sync>;

/// A server that receives the changes of other nodes.
struct Hearer {
    server: String,
    hears: Hears,
}

/// A bus. A node subscribes once for all its servers.
pub(crate) struct ChangeBus {
    bus: Arc<dyn AnyBus>,
    hearers: Mutex<HashMap<u64, Hearer>>,
    listener: Mutex<Option<AbortOnDropHandle<()>>>,
}

opaque_debug!(ChangeBus);

impl ChangeBus {
    pub(crate) fn new(bus: Arc<dyn AnyBus>) -> Arc<Self> {
        Arc::new(Self {
            bus,
            hearers: Mutex::default(),
            listener: Mutex::default(),
        })
    }

    /// Subscribes to the bus once. The subscription lasts as long as `self`.
    pub(crate) fn subscribe(self: &Arc<Self>, runtime: &Handle) {
        let mut listener = self.listener.lock();
        // A listener that has finished was dropped with its runtime.
        if listener.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let weak = Arc::downgrade(self);
            let upgrade = move || weak.upgrade();
            let take = |changes: &Arc<Self>, delivery: &Delivery| changes.take(delivery);
            let listening = listen(Arc::clone(&self.bus), TOPIC, upgrade, take);
            *listener = Some(AbortOnDropHandle::new(spawn_on(runtime, listening)));
        }
    }

    fn take(&self, delivery: &Delivery) {
        let Delivery::Message { message, .. } = delivery else {
            return self.note_gap();
        };
        let Ok(message) = serde_json::from_slice::<Message>(message) else {
            tracing::warn!("ignoring an unreadable message from another node");
            return;
        };
        let hearers: Vec<_> = {
            let hearers = self.hearers.lock();
            let others = hearers.iter().filter(|(node, it)| {
                // A server has already handled its own changes.
                **node != message.node && it.server == message.server
            });
            others.map(|(_, it)| Arc::clone(&it.hears)).collect()
        };
        let Message { node, news, .. } = message;
        for hears in hearers {
            let news = news.clone();
            hears(Heard::News { node, news });
        }
    }

    fn note_gap(&self) {
        metrics::bus_gap();
        let hearers: Vec<_> = {
            let hearers = self.hearers.lock();
            hearers.values().map(|it| Arc::clone(&it.hears)).collect()
        };
        for hears in hearers {
            hears(Heard::Gap);
        }
    }
}

/// A server's membership in a bus.
#[derive(Debug)]
pub(crate) struct BusMember {
    pub(crate) bus: Arc<ChangeBus>,
    /// The unique id of this node, which distinguishes servers with the same name.
    node: u64,
    /// The number of changes so far.
    changes: AtomicU64,
    /// The news to send to other nodes.
    pub(crate) untold: Arc<Worklist<News>>,
    /// The events to publish to the clients of this node.
    pub(crate) unpublished: Arc<Worklist<BTreeSet<Published>>>,
}

impl BusMember {
    pub(crate) fn new(bus: &Arc<ChangeBus>) -> Self {
        Self {
            bus: Arc::clone(bus),
            node: RandomState::new().hash_one(()),
            changes: AtomicU64::new(0),
            untold: Arc::default(),
            unpublished: Arc::default(),
        }
    }

    /// The number of the next change at this node.
    pub(crate) fn next_change(&self) -> Change {
        Change {
            node: self.node,
            number: self.changes.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Registers the server for changes at other nodes. `make` is called the first time.
    pub(crate) fn hear<H>(&self, server: &str, make: impl FnOnce() -> H)
    where
        H: Fn(Heard) + Send + Sync + 'static,
    {
        let mut hearers = self.bus.hearers.lock();
        hearers.entry(self.node).or_insert_with(|| Hearer {
            server: server.to_owned(),
            hears: Arc::new(make()),
        });
    }

    /// Sends news to all other nodes.
    pub(crate) async fn tell(&self, server: &str, news: News) -> Result<()> {
        let message = Message {
            server: server.to_owned(),
            node: self.node,
            news,
        };
        let message = serde_json::to_vec(&message);
        let message = message.map_err(|error| Error::internal(error.to_string()))?;
        self.bus.bus.publish(TOPIC, message.into()).await
    }
}

impl Drop for BusMember {
    fn drop(&mut self) {
        self.bus.hearers.lock().remove(&self.node);
    }
}

/// A list of work, done by one task at a time.
#[derive(Debug, Default)]
pub(crate) struct Worklist<W>(Mutex<Work<W>>);

#[derive(Debug, Default)]
struct Work<W> {
    work: W,
    is_begun: bool,
}

impl<W: Default + PartialEq> Worklist<W> {
    /// Adds work. Returns the duty to do it, unless a task already has the duty.
    pub(crate) fn add(self: &Arc<Self>, add: impl FnOnce(&mut W)) -> Option<Duty<W>> {
        let mut list = self.0.lock();
        add(&mut list.work);
        let begins = list.work != W::default() && !mem::replace(&mut list.is_begun, true);
        begins.then(|| Duty(Some(Arc::clone(self))))
    }
}

/// The duty to do work. If it is dropped with its runtime, another task may take over the rest.
pub(crate) struct Duty<W: Default + PartialEq>(Option<Arc<Worklist<W>>>);

impl<W: Default + PartialEq> Duty<W> {
    /// Takes all pending work. `None` ends the duty.
    pub(crate) fn next(&mut self) -> Option<W> {
        let mut list = self.0.as_ref()?.0.lock();
        let work = mem::take(&mut list.work);
        if work != W::default() {
            return Some(work);
        }
        list.is_begun = false;
        drop(list);
        self.0 = None;
        None
    }

    /// Puts back work that could not be done.
    pub(crate) fn put_back(&self, add: impl FnOnce(&mut W)) {
        if let Some(list) = &self.0 {
            add(&mut list.0.lock().work);
        }
    }
}

impl<W: Default + PartialEq> Drop for Duty<W> {
    fn drop(&mut self) {
        if let Some(list) = &self.0 {
            list.0.lock().is_begun = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_change_message_reports_everything_as_changed() {
        let last = 1 + MAX_NAMED as u64;
        let mut many = News::default();
        for number in 1..=last {
            assert!(!many.all);
            many.add(&Topics::of_resource(&format!("test://{number}")), number);
        }
        let mut long = News::default();
        long.add(&Topics::of_resource(&"x".repeat(MAX_BYTES + 1)), 2);
        let mut merged = News::default();
        merged.add(&Topics::of_resource("test://a"), last);
        merged.merge(long.clone());
        for (mut news, number) in [(many, last), (long, 2), (merged, last)] {
            let all = |last| News {
                all: true,
                last,
                ..News::default()
            };
            assert_eq!(news, all(number), "nothing is named");
            news.publish(("key".to_owned(), "1".to_owned()), last + 1);
            assert_eq!(news, all(last + 1));
        }
    }

    #[test]
    fn message_carries_the_last_change_per_topic() {
        let mut lists = Topics::default();
        lists.lists.prompts_list_changed = true;
        let mut news = News::default();
        news.add(&Topics::of_resource("test://a"), 1);
        news.add(&lists, 2);
        let mut later = News::default();
        later.add(&Topics::of_resource("test://a"), 3);
        later.merge(news);
        let text = serde_json::to_vec(&later).unwrap();
        let topics = serde_json::from_slice::<News>(&text).unwrap().topics(15);
        let lists = (
            topics.lists.prompts_list_changed,
            topics.lists.tools_list_changed,
        );
        assert_eq!(lists, (true, false));
        let changes = |topic| topics.changes_of(topic);
        assert_eq!(changes("test://a").as_deref(), Some("f.3"));
        assert_eq!(changes(PromptListChanged::NAME).as_deref(), Some("f.2"));
    }

    #[test]
    fn abandoned_work_is_handed_to_another() {
        let list = Arc::<Worklist<u32>>::default();
        assert!(list.add(|_| {}).is_none(), "there is nothing to do");
        let mut duty = list.add(|work| *work += 1).unwrap();
        assert!(list.add(|work| *work += 1).is_none());
        assert_eq!(duty.next(), Some(2));
        duty.put_back(|work| *work += 2);
        drop(duty);
        let mut duty = list.add(|work| *work += 1).unwrap();
        assert_eq!((duty.next(), duty.next()), (Some(3), None));
        assert!(list.add(|work| *work += 1).is_some());
    }
}
