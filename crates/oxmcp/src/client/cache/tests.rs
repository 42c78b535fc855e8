//! What the core of the cache promises, whatever happens in whatever order.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;

use super::{
    CacheOptions, Change, Kind,
    core::Core,
    flights::Ticket,
    question::{Ask, Place, Question, Server},
};
use crate::protocol::{CacheScope, Freshness};

const SECOND: Duration = Duration::from_secs(1);

fn place(server: Option<&str>, session: u64, authorization: Option<&str>) -> Place {
    let known = server.map(|server| Server::Known(server.into()));
    Place {
        server: known.unwrap_or(Server::OfSession(session)),
        session,
        authorization: authorization.map(Into::into),
    }
}

fn ask(place: &Place, kind: Kind, params: &str) -> Arc<Ask> {
    let question = Question::new(kind, params.into(), "".into()).unwrap();
    Arc::new(Ask {
        place: place.clone(),
        question: Arc::new(question),
    })
}

fn tools(place: &Place) -> Arc<Ask> {
    ask(place, Kind::Tools, "{}")
}

fn fresh_for(seconds: u64, scope: CacheScope) -> Freshness {
    Freshness {
        ttl: Some(SECOND * u32::try_from(seconds).unwrap()),
        scope,
    }
}

fn answer(core: &mut Core<()>, ask: &Arc<Ask>, freshness: Freshness, text: &str, now: Duration) {
    let (ticket, ()) = core.enter(ask, true);
    core.answer(ticket, ask, freshness, text, now);
    core.leave(ticket);
    assert!(core.is_idle());
}

#[test]
fn private_answers_stay_with_whom_they_were_given_to() {
    let mut core = Core::default();
    let ours = place(Some("s"), 1, Some("ann"));
    answer(
        &mut core,
        &tools(&ours),
        fresh_for(9, CacheScope::Private),
        "ann's",
        SECOND,
    );
    let cases = [
        (place(Some("s"), 2, Some("ann")), true),
        (place(Some("s"), 2, Some("bob")), false),
        (place(Some("s"), 2, None), false),
        (place(Some("t"), 2, Some("ann")), false),
        (place(None, 2, Some("ann")), false),
    ];
    for (place, found) in cases {
        assert_eq!(
            core.fresh(&tools(&place), SECOND).is_some(),
            found,
            "{place:?}"
        );
    }
    // Nobody knows on whose behalf two sessions talk: nothing private is shared.
    let nameless = place(Some("s"), 3, None);
    answer(
        &mut core,
        &tools(&nameless),
        fresh_for(9, CacheScope::Private),
        "3's",
        SECOND,
    );
    assert!(core.fresh(&tools(&nameless), SECOND).is_some());
    assert!(
        core.fresh(&tools(&place(Some("s"), 4, None)), SECOND)
            .is_none()
    );
    core.forget(&nameless);
    assert!(core.fresh(&tools(&nameless), SECOND).is_none());
    assert!(core.fresh(&tools(&ours), SECOND).is_some());
}

#[test]
fn public_answers_are_for_all_who_talk_to_the_same_server() {
    let mut core = Core::default();
    let ours = place(Some("s"), 1, Some("ann"));
    answer(
        &mut core,
        &tools(&ours),
        fresh_for(9, CacheScope::Public),
        "all",
        SECOND,
    );
    for (place, found) in [
        (place(Some("s"), 2, None), true),
        (place(Some("s"), 2, Some("bob")), true),
        (place(Some("t"), 2, Some("ann")), false),
        (place(None, 1, Some("ann")), false),
    ] {
        assert_eq!(
            core.fresh(&tools(&place), SECOND).is_some(),
            found,
            "{place:?}"
        );
    }
    // The server changes its mind.
    answer(
        &mut core,
        &tools(&ours),
        fresh_for(9, CacheScope::Private),
        "ann's",
        SECOND,
    );
    assert!(
        core.fresh(&tools(&place(Some("s"), 2, Some("bob"))), SECOND)
            .is_none()
    );
}

#[test]
fn what_began_before_a_change_is_not_kept() {
    let mut core = Core::<()>::default();
    let here = place(Some("s"), 1, None);
    let elsewhere = place(Some("t"), 2, None);
    let (asked, other) = (tools(&here), tools(&elsewhere));
    let (first, ()) = core.enter(&asked, true);
    let (second, ()) = core.enter(&other, true);
    core.change(&here.server, &Change::Tools);
    // Who asks now does not wait for what began before.
    let (third, ()) = core.enter(&asked, true);
    assert_ne!(first, third);
    let freshness = fresh_for(9, CacheScope::Private);
    assert!(
        core.answer(first, &asked, freshness, "old", SECOND)
            .is_some()
    );
    assert!(core.fresh(&asked, SECOND).is_none());
    core.answer(second, &other, freshness, "other", SECOND);
    assert_eq!(core.fresh(&other, SECOND).as_deref(), Some("other"));
    core.answer(third, &asked, freshness, "new", SECOND);
    assert_eq!(core.fresh(&asked, SECOND).as_deref(), Some("new"));
}

#[test]
fn of_two_who_ask_the_same_by_themselves_the_later_one_is_right() {
    let mut core = Core::<()>::default();
    let asked = tools(&place(None, 1, None));
    let (first, ()) = core.enter(&asked, false);
    let (second, ()) = core.enter(&asked, false);
    let freshness = fresh_for(9, CacheScope::Private);
    core.answer(second, &asked, freshness, "later", SECOND);
    core.answer(first, &asked, freshness, "earlier", SECOND);
    assert_eq!(core.fresh(&asked, SECOND).as_deref(), Some("later"));
}

#[test]
fn an_answer_has_its_time_and_then_a_time_of_need() {
    let mut core = Core::<()>::default();
    core.configure(CacheOptions {
        max_ttl: SECOND * 10,
        stale_if_error: SECOND * 5,
        ..CacheOptions::default()
    });
    let asked = tools(&place(None, 1, None));
    answer(
        &mut core,
        &asked,
        fresh_for(3600, CacheScope::Private),
        "x",
        SECOND,
    );
    assert!(
        core.fresh(&asked, SECOND * 11 - Duration::from_millis(1))
            .is_some()
    );
    assert!(core.fresh(&asked, SECOND * 11).is_none());
    assert!(
        core.stale(&asked, SECOND * 16 - Duration::from_millis(1))
            .is_some()
    );
    assert!(core.stale(&asked, SECOND * 16).is_none());
    assert_eq!(core.totals(), (0, 0));
    // Nothing is kept that is stale at once, nor what it was asked for before.
    answer(
        &mut core,
        &asked,
        fresh_for(5, CacheScope::Private),
        "y",
        SECOND * 20,
    );
    answer(
        &mut core,
        &asked,
        fresh_for(0, CacheScope::Private),
        "z",
        SECOND * 21,
    );
    assert_eq!(core.totals(), (0, 0));
}

#[test]
fn what_was_used_longest_ago_gives_way() {
    let mut core = Core::<()>::default();
    core.configure(CacheOptions {
        max_entries: 2,
        ..CacheOptions::default()
    });
    let here = place(None, 1, None);
    let read = |uri: &str| ask(&here, Kind::Read, &format!(r#"{{"uri":"{uri}"}}"#));
    let freshness = fresh_for(60, CacheScope::Private);
    answer(&mut core, &read("a"), freshness, "a", SECOND);
    answer(&mut core, &read("b"), freshness, "b", SECOND);
    assert!(core.fresh(&read("a"), SECOND).is_some());
    answer(&mut core, &read("c"), freshness, "c", SECOND);
    assert!(core.fresh(&read("a"), SECOND).is_some());
    assert!(core.fresh(&read("b"), SECOND).is_none());

    core.configure(CacheOptions {
        max_bytes: 2000,
        ..CacheOptions::default()
    });
    let long = "x".repeat(1000);
    answer(&mut core, &read("d"), freshness, &long, SECOND);
    answer(&mut core, &read("e"), freshness, &long, SECOND);
    assert!(core.fresh(&read("d"), SECOND).is_none());
    assert!(core.totals().1 <= 2000);
    // What is too long for all the room there is does not drive others out.
    answer(&mut core, &read("f"), freshness, &"x".repeat(3000), SECOND);
    assert!(core.fresh(&read("f"), SECOND).is_none());
    assert!(core.fresh(&read("e"), SECOND).is_some());
}

/// Something that happens to a cache. Numbers are taken modulo how many there are.
#[derive(Clone, Debug)]
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
    ask: Arc<Ask>,
    begun: usize,
}

/// An answer: its text is its number.
struct Given {
    ask: Arc<Ask>,
    freshness: Freshness,
    at: Duration,
    begun: usize,
}

const LONGEST: Duration = Duration::from_secs(15);

struct World {
    core: Core<()>,
    now: Duration,
    /// How much has happened.
    steps: usize,
    places: Vec<Place>,
    flying: Vec<Flying>,
    given: Vec<Given>,
    /// When which server said last that its tools have changed.
    changed: Vec<(Server, usize)>,
}

impl World {
    fn new() -> Self {
        let mut core = Core::default();
        core.configure(CacheOptions {
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
            core,
            now: SECOND,
            steps: 0,
            places,
            flying: Vec::new(),
            given: Vec::new(),
            changed: Vec::new(),
        }
    }

    fn ask(&self, place: usize, page: usize) -> Arc<Ask> {
        let place = &self.places[place % self.places.len()];
        match page % 3 {
            0 => tools(place),
            1 => ask(place, Kind::Tools, r#"{"cursor":"2"}"#),
            _ => ask(place, Kind::Prompts, "{}"),
        }
    }

    fn happens(&mut self, step: Step) {
        self.steps += 1;
        match step {
            Step::Begin { place, page, joins } => {
                let ask = self.ask(place, page);
                let (ticket, ()) = self.core.enter(&ask, joins);
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
                self.core.answer(ticket, &ask, freshness, &text, at);
                self.core.leave(ticket);
                self.given.push(Given {
                    ask,
                    freshness,
                    at,
                    begun,
                });
            }
            Step::GiveUp { flight } if !self.flying.is_empty() => {
                let gone = self.flying.swap_remove(flight % self.flying.len());
                self.core.leave(gone.ticket);
            }
            Step::Change { place, tools } => {
                let server = self.places[place % self.places.len()].server.clone();
                let change = if tools {
                    Change::Tools
                } else {
                    Change::Resources
                };
                self.core.change(&server, &change);
                if tools {
                    self.changed.push((server, self.steps));
                }
            }
            Step::Wait { seconds } => self.now += Duration::from_secs(seconds),
            Step::Look { place, page } => {
                let ask = self.ask(place, page);
                if let Some(text) = self.core.fresh(&ask, self.now) {
                    let given = &self.given[text.parse::<usize>().unwrap()];
                    self.is_right(&ask, given);
                }
            }
            Step::Answer { .. } | Step::GiveUp { .. } => {}
        }
        assert!(self.core.totals().0 <= 4);
    }

    /// Whether an answer may be given to a question now.
    fn is_right(&self, ask: &Ask, given: &Given) {
        let (here, there) = (&ask.place, &given.ask.place);
        assert_eq!(ask.question, given.ask.question);
        assert_eq!(here.server, there.server);
        let ttl = given.freshness.ttl.unwrap().min(LONGEST);
        assert!(self.now < given.at + ttl, "it is too old");
        if given.freshness.scope == CacheScope::Private {
            let same = here.session == there.session && here.authorization == there.authorization;
            let shared = here.authorization.is_some() && here.authorization == there.authorization;
            assert!(same || shared, "it is somebody else's");
        }
        if ask.question.kind == Kind::Tools {
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
            world.core.leave(flying.ticket);
        }
        prop_assert!(world.core.is_idle());
    }
}
