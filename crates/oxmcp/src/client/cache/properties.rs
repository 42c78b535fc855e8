//! Property tests of the state of the cache.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{CacheScope, internal::Freshness};
use proptest::prelude::*;

use crate::client::cache::{
    key::{CacheLookup, Invalidation, Partition, ResponseKind, ServerIdentity},
    options::CacheOptions,
    response_cache::CacheState,
    tests::{SECOND, fresh_for, lookup, partition, tools},
};

/// A step in the life of a cache. Indices are taken modulo the number of elements.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin {
        partition: usize,
        page: usize,
    },
    Answer {
        request: usize,
        ttl: u64,
        public: bool,
    },
    GiveUp {
        request: usize,
    },
    Change {
        partition: usize,
        tools: bool,
    },
    Wait {
        seconds: u64,
    },
    Look {
        partition: usize,
        page: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let small = 0..8_usize;
    prop_oneof![
        3 => (small.clone(), small.clone()).prop_map(|(partition, page)| Step::Begin { partition, page }),
        3 => (small.clone(), 0..20_u64, any::<bool>())
            .prop_map(|(request, ttl, public)| Step::Answer { request, ttl, public }),
        1 => small.clone().prop_map(|request| Step::GiveUp { request }),
        1 => (small.clone(), any::<bool>()).prop_map(|(partition, tools)| Step::Change { partition, tools }),
        1 => (0..10_u64).prop_map(|seconds| Step::Wait { seconds }),
        5 => (small.clone(), small).prop_map(|(partition, page)| Step::Look { partition, page }),
    ]
}

/// A request in flight, and the step at which it began.
struct Pending {
    number: u64,
    lookup: Arc<CacheLookup>,
    begun: usize,
}

/// A response, whose text is its index.
struct Given {
    lookup: Arc<CacheLookup>,
    freshness: Freshness,
    at: Duration,
    begun: usize,
}

const LONGEST: Duration = Duration::from_secs(15);

struct World {
    cache: CacheState,
    now: Duration,
    /// The number of steps so far.
    steps: usize,
    partitions: Vec<Partition>,
    pending: Vec<Pending>,
    given: Vec<Given>,
    /// The servers that have reported a change of their tools, with the step of the report.
    changed: Vec<(ServerIdentity, usize)>,
}

impl World {
    fn new() -> Self {
        let mut cache = CacheState::default();
        cache.store.configure(CacheOptions {
            max_entries: 4,
            max_ttl: LONGEST,
            ..CacheOptions::default()
        });
        let partitions = vec![
            partition(Some("s"), 1, Some("ann")),
            partition(Some("s"), 2, Some("bob")),
            partition(Some("s"), 3, Some("ann")),
            partition(Some("s"), 4, None),
            partition(Some("t"), 5, Some("ann")),
            partition(None, 6, None),
        ];
        Self {
            cache,
            now: SECOND,
            steps: 0,
            partitions,
            pending: Vec::new(),
            given: Vec::new(),
            changed: Vec::new(),
        }
    }

    fn lookup(&self, partition: usize, page: usize) -> Arc<CacheLookup> {
        let partition = &self.partitions[partition % self.partitions.len()];
        match page % 3 {
            0 => tools(partition),
            1 => lookup(partition, ResponseKind::Tools, r#"{"cursor":"2"}"#),
            _ => lookup(partition, ResponseKind::Prompts, "{}"),
        }
    }

    fn happens(&mut self, step: Step) {
        self.steps += 1;
        match step {
            Step::Begin { partition, page } => {
                let lookup = self.lookup(partition, page);
                let number = self.cache.begin(&lookup);
                let begun = self.steps;
                self.pending.push(Pending {
                    number,
                    lookup,
                    begun,
                });
            }
            Step::Answer {
                request,
                ttl,
                public,
            } if !self.pending.is_empty() => {
                let index = request % self.pending.len();
                let Pending {
                    number,
                    lookup,
                    begun,
                } = self.pending.swap_remove(index);
                let scope = if public {
                    CacheScope::Public
                } else {
                    CacheScope::Private
                };
                let freshness = fresh_for(ttl, scope);
                let text = self.given.len().to_string();
                let at = self.now;
                self.cache.complete(number, freshness, &text, at);
                self.given.push(Given {
                    lookup,
                    freshness,
                    at,
                    begun,
                });
            }
            Step::GiveUp { request } if !self.pending.is_empty() => {
                let gone = self.pending.swap_remove(request % self.pending.len());
                self.cache.give_up(gone.number);
            }
            Step::Change { partition, tools } => {
                let server = self.partitions[partition % self.partitions.len()]
                    .server
                    .clone();
                let change = if tools {
                    Invalidation::Tools
                } else {
                    Invalidation::Resources
                };
                self.cache.invalidate(&server, &change);
                if tools {
                    self.changed.push((server, self.steps));
                }
            }
            Step::Wait { seconds } => self.now += Duration::from_secs(seconds),
            Step::Look { partition, page } => {
                let lookup = self.lookup(partition, page);
                if let Some(text) = self.cache.store.fresh(&lookup, self.now) {
                    let given = &self.given[text.parse::<usize>().unwrap()];
                    self.is_right(&lookup, given);
                }
            }
            Step::Answer { .. } | Step::GiveUp { .. } => {}
        }
        assert!(self.cache.totals().0 <= 4);
    }

    /// Checks that a response may be given for a lookup now.
    fn is_right(&self, lookup: &CacheLookup, given: &Given) {
        let (here, there) = (&lookup.partition, &given.lookup.partition);
        assert_eq!(lookup.request, given.lookup.request);
        assert_eq!(here.server, there.server);
        let ttl = given.freshness.ttl.unwrap().min(LONGEST);
        assert!(self.now < given.at + ttl, "it is too old");
        if given.freshness.scope == CacheScope::Private {
            let same = here.session == there.session && here.authorization == there.authorization;
            let shared = here.authorization.is_some() && here.authorization == there.authorization;
            assert!(same || shared, "it has another owner");
        }
        if lookup.request.kind == ResponseKind::Tools {
            let outdated = |(server, at): &(ServerIdentity, usize)| {
                *server == here.server && *at > given.begun
            };
            assert!(!self.changed.iter().any(outdated), "it has changed since");
        }
    }
}

proptest! {
    #[test]
    fn cached_answer_is_never_stale_or_foreign(
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new();
        for step in steps {
            world.happens(step);
        }
        for pending in std::mem::take(&mut world.pending) {
            world.cache.give_up(pending.number);
        }
        prop_assert!(world.cache.is_idle());
    }
}
