//! Bus of changes, by which the nodes of a server tell each other what clients are to be notified of.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasher, RandomState},
    mem,
    sync::Arc,
};

use oxmcp_protocol::SubscriptionFilter;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::Topics;
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::metrics,
    session::task::spawn_on,
    store::{AnyBus, Delivery, listen},
    sync::Mutex,
};

/// The topic of these messages.
const TOPIC: &str = "changes";
/// How much one message names. Where there is more, it says that anything may have changed.
const MAX_NAMED: usize = 1000;
const MAX_BYTES: usize = 64 << 10;

/// What other nodes are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct News {
    tools: bool,
    prompts: bool,
    resources: bool,
    pub(super) uris: BTreeSet<String>,
    pub(super) published: BTreeSet<Published>,
    /// Whether anything may have changed.
    pub(super) all: bool,
    /// The bytes of what is named.
    #[serde(skip)]
    bytes: usize,
}

/// What an extension has published: a key of filters, and the value as JSON.
pub(super) type Published = (String, String);

impl News {
    pub(super) fn add(&mut self, topics: &Topics) {
        self.tools |= topics.lists.tools_list_changed;
        self.prompts |= topics.lists.prompts_list_changed;
        self.resources |= topics.lists.resources_list_changed;
        for uri in &topics.uris {
            if self.uris.insert(uri.to_string()) {
                self.name(uri.len());
            }
        }
    }

    pub(super) fn publish(&mut self, (key, value): Published) {
        let bytes = key.len() + value.len();
        if self.published.insert((key, value)) {
            self.name(bytes);
        }
    }

    /// Adds what could not be told.
    pub(super) fn merge(&mut self, other: Self) {
        let (all, published) = (other.all, other.published.clone());
        self.add(&other.topics());
        for it in published {
            self.publish(it);
        }
        if all {
            self.tell_all();
        }
    }

    fn name(&mut self, bytes: usize) {
        self.bytes += bytes;
        let named = self.uris.len() + self.published.len();
        if self.all || named > MAX_NAMED || self.bytes > MAX_BYTES {
            self.tell_all();
        }
    }

    fn tell_all(&mut self) {
        *self = Self {
            all: true,
            ..Self::default()
        };
    }

    /// The lists and resources.
    pub(super) fn topics(self) -> Topics {
        let lists = SubscriptionFilter::default()
            .with_tools_list_changed(self.tools)
            .with_prompts_list_changed(self.prompts)
            .with_resources_list_changed(self.resources);
        Topics {
            lists,
            uris: self.uris.into_iter().map(Into::into).collect(),
        }
    }
}

/// A message to all nodes.
#[derive(Serialize, Deserialize)]
struct Message {
    /// The name of the server.
    server: String,
    /// Whose message it is.
    node: u64,
    news: News,
}

/// What a node hears.
pub(super) enum Heard {
    News(News),
    /// Messages may have been lost.
    Gap,
}

type Hears = Arc<dyn Fn(Heard) + Send + Sync>;

/// A server that hears what changes at other nodes.
struct Hearer {
    server: String,
    hears: Hears,
}

/// A bus, to which a node subscribes once for all of its servers.
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

    /// Subscribes, unless that was done. It lasts as long as this does.
    pub(super) fn subscribe(self: &Arc<Self>, runtime: &Handle) {
        let mut listener = self.listener.lock();
        // One that has finished was dropped with its runtime.
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
            tracing::warn!("a message of another node is not understood");
            return;
        };
        let hearers: Vec<_> = {
            let hearers = self.hearers.lock();
            let others = hearers.iter().filter(|(node, it)| {
                // A server does what it tells by itself.
                **node != message.node && it.server == message.server
            });
            others.map(|(_, it)| Arc::clone(&it.hears)).collect()
        };
        for hears in hearers {
            hears(Heard::News(message.news.clone()));
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

/// A server at a bus.
#[derive(Debug)]
pub(crate) struct BusMember {
    pub(super) bus: Arc<ChangeBus>,
    /// A name that no other server has, be it of the same name.
    node: u64,
    /// What is to be told.
    pub(super) untold: Arc<Worklist<News>>,
    /// What is to be published here.
    pub(super) unpublished: Arc<Worklist<BTreeSet<Published>>>,
}

impl BusMember {
    pub(super) fn new(bus: &Arc<ChangeBus>) -> Self {
        Self {
            bus: Arc::clone(bus),
            node: RandomState::new().hash_one(()),
            untold: Arc::default(),
            unpublished: Arc::default(),
        }
    }

    /// The server hears from here on what changes at other nodes. `make` is called the first time.
    pub(super) fn hear<H>(&self, server: &str, make: impl FnOnce() -> H)
    where
        H: Fn(Heard) + Send + Sync + 'static,
    {
        let mut hearers = self.bus.hearers.lock();
        hearers.entry(self.node).or_insert_with(|| Hearer {
            server: server.to_owned(),
            hears: Arc::new(make()),
        });
    }

    /// Tells all other nodes.
    pub(super) async fn tell(&self, server: &str, news: News) -> Result<()> {
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

/// Work that one task does at a time.
#[derive(Debug, Default)]
pub(super) struct Worklist<W>(Mutex<Work<W>>);

#[derive(Debug, Default)]
struct Work<W> {
    work: W,
    is_begun: bool,
}

impl<W: Default + PartialEq> Worklist<W> {
    /// Adds work. Returns the duty to do it, where nobody has it.
    pub(super) fn add(self: &Arc<Self>, add: impl FnOnce(&mut W)) -> Option<Duty<W>> {
        let mut list = self.0.lock();
        add(&mut list.work);
        let begins = list.work != W::default() && !mem::replace(&mut list.is_begun, true);
        begins.then(|| Duty(Some(Arc::clone(self))))
    }
}

/// The duty to do work. Dropped with a runtime that ends meanwhile, it leaves the rest to another task.
pub(super) struct Duty<W: Default + PartialEq>(Option<Arc<Worklist<W>>>);

impl<W: Default + PartialEq> Duty<W> {
    /// Takes all that there is to do. `None` ends the duty.
    pub(super) fn next(&mut self) -> Option<W> {
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

    /// Gives back what could not be done.
    pub(super) fn put_back(&self, add: impl FnOnce(&mut W)) {
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
    fn a_message_that_would_name_too_much_says_that_anything_may_have_changed() {
        let mut many = News::default();
        for number in 0..=MAX_NAMED {
            assert!(!many.all);
            many.add(&Topics::of_resource(&format!("test://{number}")));
        }
        let mut long = News::default();
        long.add(&Topics::of_resource(&"x".repeat(MAX_BYTES + 1)));
        let mut merged = News::default();
        merged.add(&Topics::of_resource("test://a"));
        merged.merge(long.clone());
        for mut news in [many, long, merged] {
            assert!(news.all && news.uris.is_empty());
            news.publish(("key".to_owned(), "1".to_owned()));
            assert!(news.all && news.published.is_empty());
        }
    }

    #[test]
    fn work_is_done_by_one_at_a_time_and_left_to_another_where_that_is_gone() {
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
