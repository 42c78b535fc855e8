//! What the cache of the cache promises, case by case.

use std::{sync::Arc, time::Duration};

use crate::{
    client::cache::{
        key::{CacheLookup, CacheRequest, Invalidation, Partition, ResponseKind, Server},
        options::CacheOptions,
        response_cache::CacheState,
    },
    protocol::{CacheScope, Freshness},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn place(server: Option<&str>, session: u64, authorization: Option<&str>) -> Partition {
    let known = server.map(|server| Server::Known(server.into()));
    Partition {
        server: known.unwrap_or(Server::OfSession(session)),
        session,
        authorization: authorization.map(Into::into),
    }
}

pub(crate) fn ask(place: &Partition, kind: ResponseKind, params: &str) -> Arc<CacheLookup> {
    let request = CacheRequest::new(kind, params.into(), "".into()).unwrap();
    Arc::new(CacheLookup {
        partition: place.clone(),
        request: Arc::new(request),
    })
}

pub(crate) fn tools(place: &Partition) -> Arc<CacheLookup> {
    ask(place, ResponseKind::Tools, "{}")
}

pub(crate) fn fresh_for(seconds: u64, scope: CacheScope) -> Freshness {
    Freshness {
        ttl: Some(SECOND * u32::try_from(seconds).unwrap()),
        scope,
    }
}

fn answer(
    cache: &mut CacheState,
    lookup: &Arc<CacheLookup>,
    freshness: Freshness,
    text: &str,
    now: Duration,
) {
    let (ticket, _) = cache.flights.enter(ask, true);
    cache.complete(ticket, freshness, text, now);
    cache.flights.leave(ticket);
    assert!(cache.is_idle());
}

#[test]
fn private_answers_stay_with_whom_they_were_given_to() {
    let mut cache = CacheState::default();
    let ours = place(Some("s"), 1, Some("ann"));
    answer(
        &mut cache,
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
            cache.store.fresh(&tools(&place), SECOND).is_some(),
            found,
            "{place:?}"
        );
    }
    // Nobody knows on whose behalf two sessions talk: nothing private is shared.
    let nameless = place(Some("s"), 3, None);
    answer(
        &mut cache,
        &tools(&nameless),
        fresh_for(9, CacheScope::Private),
        "3's",
        SECOND,
    );
    assert!(cache.store.fresh(&tools(&nameless), SECOND).is_some());
    assert!(
        cache
            .store
            .fresh(&tools(&place(Some("s"), 4, None)), SECOND)
            .is_none()
    );
    cache.forget(&nameless);
    assert!(cache.store.fresh(&tools(&nameless), SECOND).is_none());
    assert!(cache.store.fresh(&tools(&ours), SECOND).is_some());
}

#[test]
fn public_answers_are_for_all_who_talk_to_the_same_server() {
    let mut cache = CacheState::default();
    let ours = place(Some("s"), 1, Some("ann"));
    answer(
        &mut cache,
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
            cache.store.fresh(&tools(&place), SECOND).is_some(),
            found,
            "{place:?}"
        );
    }
    // The server changes its mind.
    answer(
        &mut cache,
        &tools(&ours),
        fresh_for(9, CacheScope::Private),
        "ann's",
        SECOND,
    );
    assert!(
        cache
            .store
            .fresh(&tools(&place(Some("s"), 2, Some("bob"))), SECOND)
            .is_none()
    );
}

#[test]
fn what_began_before_a_change_is_not_kept() {
    let mut cache = CacheState::<()>::default();
    let here = place(Some("s"), 1, None);
    let elsewhere = place(Some("t"), 2, None);
    let (asked, other) = (tools(&here), tools(&elsewhere));
    let (first, ()) = cache.flights.enter(&asked, true);
    let (second, ()) = cache.flights.enter(&other, true);
    cache.invalidate(&here.server, &Invalidation::Tools);
    // Who asks now does not wait for what began before.
    let (third, ()) = cache.flights.enter(&asked, true);
    assert_ne!(first, third);
    let freshness = fresh_for(9, CacheScope::Private);
    assert!(cache.complete(first, freshness, "old", SECOND).is_some());
    assert!(cache.store.fresh(&asked, SECOND).is_none());
    cache.complete(second, freshness, "other", SECOND);
    assert_eq!(cache.store.fresh(&other, SECOND).as_deref(), Some("other"));
    cache.complete(third, freshness, "new", SECOND);
    assert_eq!(cache.store.fresh(&asked, SECOND).as_deref(), Some("new"));
}

#[test]
fn of_two_who_ask_the_same_by_themselves_the_later_one_is_right() {
    let mut cache = CacheState::<()>::default();
    let asked = tools(&place(None, 1, None));
    let (first, ()) = cache.flights.enter(&asked, false);
    let (second, ()) = cache.flights.enter(&asked, false);
    let freshness = fresh_for(9, CacheScope::Private);
    cache.complete(second, freshness, "later", SECOND);
    cache.complete(first, freshness, "earlier", SECOND);
    assert_eq!(cache.store.fresh(&asked, SECOND).as_deref(), Some("later"));
}

#[test]
fn an_answer_has_its_time_and_then_a_time_of_need() {
    let mut cache = CacheState::<()>::default();
    cache.store.configure(CacheOptions {
        max_ttl: SECOND * 10,
        stale_if_error: SECOND * 5,
        ..CacheOptions::default()
    });
    let asked = tools(&place(None, 1, None));
    answer(
        &mut cache,
        &asked,
        fresh_for(3600, CacheScope::Private),
        "x",
        SECOND,
    );
    assert!(
        cache
            .store
            .fresh(&asked, SECOND * 11 - Duration::from_millis(1))
            .is_some()
    );
    assert!(cache.store.fresh(&asked, SECOND * 11).is_none());
    assert!(
        cache
            .store
            .stale(&asked, SECOND * 16 - Duration::from_millis(1))
            .is_some()
    );
    assert!(cache.store.stale(&asked, SECOND * 16).is_none());
    assert_eq!(cache.totals(), (0, 0));
    // Nothing is kept that is stale at once, nor what it was asked for before.
    answer(
        &mut cache,
        &asked,
        fresh_for(5, CacheScope::Private),
        "y",
        SECOND * 20,
    );
    answer(
        &mut cache,
        &asked,
        fresh_for(0, CacheScope::Private),
        "z",
        SECOND * 21,
    );
    assert_eq!(cache.totals(), (0, 0));
}

#[test]
fn what_was_used_longest_ago_gives_way() {
    let mut cache = CacheState::<()>::default();
    cache.store.configure(CacheOptions {
        max_entries: 2,
        ..CacheOptions::default()
    });
    let here = place(None, 1, None);
    let read = |uri: &str| ask(&here, ResponseKind::Read, &format!(r#"{{"uri":"{uri}"}}"#));
    let freshness = fresh_for(60, CacheScope::Private);
    answer(&mut cache, &read("a"), freshness, "a", SECOND);
    answer(&mut cache, &read("b"), freshness, "b", SECOND);
    assert!(cache.store.fresh(&read("a"), SECOND).is_some());
    answer(&mut cache, &read("c"), freshness, "c", SECOND);
    assert!(cache.store.fresh(&read("a"), SECOND).is_some());
    assert!(cache.store.fresh(&read("b"), SECOND).is_none());

    cache.store.configure(CacheOptions {
        max_bytes: 2000,
        ..CacheOptions::default()
    });
    let long = "x".repeat(1000);
    answer(&mut cache, &read("d"), freshness, &long, SECOND);
    answer(&mut cache, &read("e"), freshness, &long, SECOND);
    assert!(cache.store.fresh(&read("d"), SECOND).is_none());
    assert!(cache.totals().1 <= 2000);
    // What is too long for all the room there is does not drive others out.
    answer(&mut cache, &read("f"), freshness, &"x".repeat(3000), SECOND);
    assert!(cache.store.fresh(&read("f"), SECOND).is_none());
    assert!(cache.store.fresh(&read("e"), SECOND).is_some());
}
