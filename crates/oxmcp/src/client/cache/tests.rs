//! Tests of the state of the cache, case by case.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{CacheScope, internal::Freshness};

use crate::client::cache::{
    key::{CacheLookup, CacheRequest, Invalidation, Partition, ResponseKind, ServerIdentity},
    options::CacheOptions,
    response_cache::CacheState,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn partition(
    server: Option<&str>,
    session: u64,
    authorization: Option<&str>,
) -> Partition {
    let known = server.map(|server| ServerIdentity::Known(server.into()));
    Partition {
        server: known.unwrap_or(ServerIdentity::OfSession(session)),
        session,
        login: 0,
        authorization: authorization.map(Into::into),
    }
}

pub(crate) fn lookup(partition: &Partition, kind: ResponseKind, params: &str) -> Arc<CacheLookup> {
    let request = CacheRequest::new(kind, params.into(), "".into()).unwrap();
    Arc::new(CacheLookup {
        partition: partition.clone(),
        request: Arc::new(request),
    })
}

pub(crate) fn tools(partition: &Partition) -> Arc<CacheLookup> {
    lookup(partition, ResponseKind::Tools, "{}")
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
    let request = cache.begin(lookup);
    cache.complete(request, freshness, text, now);
    assert!(cache.is_idle());
}

#[test]
fn private_answers_stay_with_their_owner() {
    let mut cache = CacheState::default();
    let ours = partition(Some("s"), 1, Some("ann"));
    answer(
        &mut cache,
        &tools(&ours),
        fresh_for(9, CacheScope::Private),
        "ann's",
        SECOND,
    );
    let cases = [
        (partition(Some("s"), 2, Some("ann")), true),
        (partition(Some("s"), 2, Some("bob")), false),
        (partition(Some("s"), 2, None), false),
        (partition(Some("t"), 2, Some("ann")), false),
        (partition(None, 2, Some("ann")), false),
    ];
    for (partition, found) in cases {
        assert_eq!(
            cache.store.fresh(&tools(&partition), SECOND).is_some(),
            found,
            "{partition:?}"
        );
    }
    // Without credentials it is unknown on whose behalf two sessions talk: private responses are not shared.
    let nameless = partition(Some("s"), 3, None);
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
            .fresh(&tools(&partition(Some("s"), 4, None)), SECOND)
            .is_none()
    );
    cache.remove_session(&nameless);
    assert!(cache.store.fresh(&tools(&nameless), SECOND).is_none());
    assert!(cache.store.fresh(&tools(&ours), SECOND).is_some());
}

#[test]
fn public_answers_are_shared_by_all_sessions() {
    let mut cache = CacheState::default();
    let ours = partition(Some("s"), 1, Some("ann"));
    answer(
        &mut cache,
        &tools(&ours),
        fresh_for(9, CacheScope::Public),
        "all",
        SECOND,
    );
    for (partition, found) in [
        (partition(Some("s"), 2, None), true),
        (partition(Some("s"), 2, Some("bob")), true),
        (partition(Some("t"), 2, Some("ann")), false),
        (partition(None, 1, Some("ann")), false),
    ] {
        assert_eq!(
            cache.store.fresh(&tools(&partition), SECOND).is_some(),
            found,
            "{partition:?}"
        );
    }
    // The server changes the scope to private.
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
            .fresh(&tools(&partition(Some("s"), 2, Some("bob"))), SECOND)
            .is_none()
    );
}

#[test]
fn answers_requested_before_a_change_are_not_stored() {
    let mut cache = CacheState::default();
    let here = partition(Some("s"), 1, None);
    let elsewhere = partition(Some("t"), 2, None);
    let (asked, other) = (tools(&here), tools(&elsewhere));
    let (first, second) = (cache.begin(&asked), cache.begin(&other));
    cache.invalidate(&here.server, &Invalidation::Tools);
    let third = cache.begin(&asked);
    let freshness = fresh_for(9, CacheScope::Private);
    cache.complete(first, freshness, "old", SECOND);
    assert!(cache.store.fresh(&asked, SECOND).is_none());
    cache.complete(second, freshness, "other", SECOND);
    assert_eq!(cache.store.fresh(&other, SECOND).as_deref(), Some("other"));
    cache.complete(third, freshness, "new", SECOND);
    assert_eq!(cache.store.fresh(&asked, SECOND).as_deref(), Some("new"));
}

#[test]
fn later_of_two_equal_answers_is_stored() {
    let mut cache = CacheState::default();
    let asked = tools(&partition(None, 1, None));
    let (first, second) = (cache.begin(&asked), cache.begin(&asked));
    let freshness = fresh_for(9, CacheScope::Private);
    cache.complete(second, freshness, "later", SECOND);
    cache.complete(first, freshness, "earlier", SECOND);
    assert_eq!(cache.store.fresh(&asked, SECOND).as_deref(), Some("later"));
}

#[test]
fn fresh_answer_becomes_fallback_after_expiry() {
    let mut cache = CacheState::default();
    cache.store.configure(CacheOptions {
        max_ttl: SECOND * 10,
        stale_if_error: SECOND * 5,
        ..CacheOptions::default()
    });
    let asked = tools(&partition(None, 1, None));
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
    // A response that is stale at once is not stored, and the earlier response to the same request is removed.
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
fn least_recently_used_answer_is_evicted() {
    let mut cache = CacheState::default();
    cache.store.configure(CacheOptions {
        max_entries: 2,
        ..CacheOptions::default()
    });
    let here = partition(None, 1, None);
    let read = |uri: &str| lookup(&here, ResponseKind::Read, &format!(r#"{{"uri":"{uri}"}}"#));
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
    // A response that is longer than the bound does not evict others.
    answer(&mut cache, &read("f"), freshness, &"x".repeat(3000), SECOND);
    assert!(cache.store.fresh(&read("f"), SECOND).is_none());
    assert!(cache.store.fresh(&read("e"), SECOND).is_some());
}
