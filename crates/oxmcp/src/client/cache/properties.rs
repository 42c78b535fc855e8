//! What the cache of the cache promises, whatever happens in whatever order.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;

use crate::{
    client::cache::{
        key::{CacheLookup, Invalidation, Partition, ResponseKind, Server},
        options::CacheOptions,
        response_cache::CacheState,
        single_flight::Ticket,
        tests::{SECOND, ask, fresh_for, place, tools},
    },
    protocol::{CacheScope, Freshness},
};

/// Something that happens to a cache. Numbers are taken modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin {
        place: usize,
        page: usize,
        joins: bool,
    },
    Answer {
        flight: usize,
        ttl: u64,
        public: bool,
    },
    GiveUp {
        flight: usize,
    },
    Change {
        place: usize,
        tools: bool,
    },
    Wait {
        seconds: u64,
    },
    Look {
        place: usize,
        page: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let small = 0..8_usize;
    prop_oneof![
        3 => (small.clone(), small.clone(), any::<bool>())
            .prop_map(|(place, page, joins)| Step::Begin { place, page, joins }),
        3 => (small.clone(), 0..20_u64, any::<bool>())
            .prop_map(|(flight, ttl, public)| Step::Answer { flight, ttl, public }),
        1 => small.clone().prop_map(|flight| Step::GiveUp { flight }),
        1 => (small.clone(), any::<bool>()).prop_map(|(place, tools)| Step::Change { place, tools }),
        1 => (0..10_u64).prop_map(|seconds| Step::Wait { seconds }),
        5 => (small.clone(), small).prop_map(|(place, page)| Step::Look { place, page }),
    ]
}

/// A flight, and when it began.
struct Flying {
    ticket: Ticket,
    ask: Arc<CacheLookup>,
    begun: usize,
}

/// An answer: its text is its number.
struct Given {
    ask: Arc<CacheLookup>,
    freshness: Freshness,
    at: Duration,
    begun: usize,
}

const LONGEST: Duration = Duration::from_secs(15);

struct World {
    cache: CacheState,
    now: Duration,
    /// How much has happened.
    steps: usize,
    places: Vec<Partition>,
    flying: Vec<Flying>,
    given: Vec<Given>,
    /// When which server said last that its tools have changed.
    changed: Vec<(Server, usize)>,
}

impl World {
    fn new() -> Self {
        let mut cache = CacheState::default();
        cache.store.configure(CacheOptions {
            max_entries: 4,
            max_ttl: LONGEST,
            ..CacheOptions::default()
        });
        let places = vec![
            place(Some("s"), 1, Some("ann")),
            place(Some("s"), 2, Some("bob")),
            place(Some("s"), 3, Some("ann")),
            place(Some("s"), 4, None),
            place(Some("t"), 5, Some("ann")),
            place(None, 6, None),
        ];
        Self {
            cache,
            now: SECOND,
            steps: 0,
            places,
            flying: Vec::new(),
            given: Vec::new(),
            changed: Vec::new(),
        }
    }

    fn ask(&self, place: usize, page: usize) -> Arc<CacheLookup> {
        let place = &self.places[place % self.places.len()];
        match page % 3 {
            0 => tools(place),
            1 => ask(place, ResponseKind::Tools, r#"{"cursor":"2"}"#),
            _ => ask(place, ResponseKind::Prompts, "{}"),
        }
    }

    fn happens(&mut self, step: Step) {
        self.steps += 1;
        match step {
            Step::Begin { place, page, joins } => {
                let ask = self.ask(place, page);
                let (ticket, _) = self.cache.flights.enter(&ask, joins);
                // Who joins waits for what began earlier.
                let joined = self.flying.iter().find(|it| it.ticket == ticket);
                let begun = joined.map_or(self.steps, |it| it.begun);
                self.flying.push(Flying { ticket, ask, begun });
            }
            Step::Answer {
                flight,
                ttl,
                public,
            } if !self.flying.is_empty() => {
                let index = flight % self.flying.len();
                let Flying { ticket, ask, begun } = self.flying.swap_remove(index);
                let scope = if public {
                    CacheScope::Public
                } else {
                    CacheScope::Private
                };
                let freshness = fresh_for(ttl, scope);
                let text = self.given.len().to_string();
                let at = self.now;
                self.cache.complete(ticket, freshness, &text, at);
                self.cache.flights.leave(ticket);
                self.given.push(Given {
                    ask,
                    freshness,
                    at,
                    begun,
                });
            }
            Step::GiveUp { flight } if !self.flying.is_empty() => {
                let gone = self.flying.swap_remove(flight % self.flying.len());
                self.cache.flights.leave(gone.ticket);
            }
            Step::Change { place, tools } => {
                let server = self.places[place % self.places.len()].server.clone();
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
            Step::Look { place, page } => {
                let ask = self.ask(place, page);
                if let Some(text) = self.cache.store.fresh(&ask, self.now) {
                    let given = &self.given[text.parse::<usize>().unwrap()];
                    self.is_right(&ask, given);
                }
            }
            Step::Answer { .. } | Step::GiveUp { .. } => {}
        }
        assert!(self.cache.totals().0 <= 4);
    }

    /// Whether an answer may be given to a question now.
    fn is_right(&self, ask: &CacheLookup, given: &Given) {
        let (here, there) = (&ask.partition, &given.lookup.partition);
        assert_eq!(ask.request, given.lookup.request);
        assert_eq!(here.server, there.server);
        let ttl = given.freshness.ttl.unwrap().min(LONGEST);
        assert!(self.now < given.at + ttl, "it is too old");
        if given.freshness.scope == CacheScope::Private {
            let same = here.session == there.session && here.authorization == there.authorization;
            let shared = here.authorization.is_some() && here.authorization == there.authorization;
            assert!(same || shared, "it is somebody else's");
        }
        if ask.request.kind == ResponseKind::Tools {
            let outdated =
                |(server, at): &(Server, usize)| *server == here.server && *at > given.begun;
            assert!(!self.changed.iter().any(outdated), "it has changed since");
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_given_that_is_too_old_or_somebody_elses(
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new();
        for step in steps {
            world.happens(step);
        }
        for flying in std::mem::take(&mut world.flying) {
            world.cache.flights.leave(flying.ticket);
        }
        prop_assert!(world.cache.is_idle());
    }
}
