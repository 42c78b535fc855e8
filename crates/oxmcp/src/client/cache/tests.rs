//! What the core of the cache promises, case by case.

use std::{sync::Arc, time::Duration};

use crate::{
    client::cache::{
        core::Core,
        key::{Ask, Change, Kind, Place, Question, Server},
        options::CacheOptions,
    },
    protocol::{CacheScope, Freshness},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn place(server: Option<&str>, session: u64, authorization: Option<&str>) -> Place {
    let known = server.map(|server| Server::Known(server.into()));
    Place {
        server: known.unwrap_or(Server::OfSession(session)),
        session,
        authorization: authorization.map(Into::into),
    }
}

pub(crate) fn ask(place: &Place, kind: Kind, params: &str) -> Arc<Ask> {
    let question = Question::new(kind, params.into(), "".into()).unwrap();
    Arc::new(Ask {
        place: place.clone(),
        question: Arc::new(question),
    })
}

pub(crate) fn tools(place: &Place) -> Arc<Ask> {
    ask(place, Kind::Tools, "{}")
}

pub(crate) fn fresh_for(seconds: u64, scope: CacheScope) -> Freshness {
    Freshness {
        ttl: Some(SECOND * u32::try_from(seconds).unwrap()),
        scope,
    }
}

fn answer(core: &mut Core<()>, ask: &Arc<Ask>, freshness: Freshness, text: &str, now: Duration) {
    let (ticket, ()) = core.enter(ask, true);
    core.answer(ticket, freshness, text, now);
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
    assert!(core.answer(first, freshness, "old", SECOND).is_some());
    assert!(core.fresh(&asked, SECOND).is_none());
    core.answer(second, freshness, "other", SECOND);
    assert_eq!(core.fresh(&other, SECOND).as_deref(), Some("other"));
    core.answer(third, freshness, "new", SECOND);
    assert_eq!(core.fresh(&asked, SECOND).as_deref(), Some("new"));
}

#[test]
fn of_two_who_ask_the_same_by_themselves_the_later_one_is_right() {
    let mut core = Core::<()>::default();
    let asked = tools(&place(None, 1, None));
    let (first, ()) = core.enter(&asked, false);
    let (second, ()) = core.enter(&asked, false);
    let freshness = fresh_for(9, CacheScope::Private);
    core.answer(second, freshness, "later", SECOND);
    core.answer(first, freshness, "earlier", SECOND);
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
