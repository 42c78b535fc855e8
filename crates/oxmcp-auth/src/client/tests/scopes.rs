//! Tests of scopes: those that are requested, and how often.

use super::*;
use crate::{
    client::{ScopeSelection, StepUps},
    metadata::protected_resource::ProtectedResourceMetadata,
    scope::ScopeSet,
};

fn found(supported: Option<&[&str]>, offered: Option<&[&str]>) -> Discovered {
    let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut server = server();
    server.scopes_supported = offered.map(owned);
    let mut metadata = ProtectedResourceMetadata::new(MCP, [AS]);
    metadata.scopes_supported = supported.map(owned);
    Discovered {
        resource_metadata: Some(metadata),
        ..discovered(server)
    }
}

#[test]
fn scopes_come_from_challenge_before_metadata() {
    let plain = ScopeSelection::default();
    let select = |challenge: Option<&str>, supported: Option<&[&str]>, before: &str| {
        let challenge = challenge.map(|it| Challenge::bearer().with("scope", it));
        plain
            .select(
                challenge.as_ref(),
                &found(supported, None),
                &ScopeSet::parse(before),
            )
            .to_string()
    };
    assert_eq!(select(Some("a"), Some(&["b", "c"]), ""), "a");
    assert_eq!(select(None, Some(&["b", "c"]), ""), "b c");
    assert_eq!(select(None, None, ""), "");
    assert_eq!(select(Some(""), Some(&["b"]), ""), "b");
    assert_eq!(
        select(Some("w"), Some(&["profile"]), "r"),
        "r w",
        "what was asked for is kept"
    );
}

#[test]
fn offline_access_is_requested_if_supported() {
    let challenge = Challenge::bearer().with("scope", "a");
    let mut selection = ScopeSelection::default();
    let select = |selection: &ScopeSelection, offered| {
        selection
            .select(Some(&challenge), &found(None, offered), &ScopeSet::new())
            .to_string()
    };
    assert_eq!(
        select(&selection, Some(&["a", "offline_access"])),
        "a offline_access"
    );
    assert_eq!(select(&selection, Some(&["a"])), "a");
    assert_eq!(select(&selection, None), "a");
    selection.without_offline_access = true;
    assert_eq!(select(&selection, Some(&["offline_access"])), "a");
}

#[test]
fn client_registers_scopes_it_may_request_later() {
    let asked = ScopeSet::parse("a offline_access");
    let register = |selection: &ScopeSelection, supported, offered| {
        let scopes = selection.to_register(&asked, &found(supported, offered));
        scopes.to_string()
    };
    let plain = ScopeSelection::default();
    let supported: Option<&[&str]> = Some(&["a", "b", "c"]);
    assert_eq!(register(&plain, supported, None), "a offline_access b c");
    assert_eq!(
        register(&plain, supported, Some(&["a", "c", "offline_access"])),
        "a offline_access c",
        "the authorization server refuses what it does not know"
    );
    assert_eq!(register(&plain, None, None), "a offline_access");
    let fixed = ScopeSelection {
        fixed: Some(asked.clone()),
        ..ScopeSelection::default()
    };
    assert_eq!(register(&fixed, supported, None), "a offline_access");
}

#[test]
fn configured_scopes_grow_only_by_step_up() {
    let selection = ScopeSelection {
        fixed: Some(ScopeSet::parse("mine")),
        ..ScopeSelection::default()
    };
    let challenge = Challenge::bearer().with("scope", "theirs");
    let found = found(Some(&["b"]), Some(&["offline_access"]));
    assert_eq!(
        selection
            .select(Some(&challenge), &found, &ScopeSet::new())
            .to_string(),
        "mine"
    );
    let again = selection.select(Some(&challenge), &found, &ScopeSet::parse("mine"));
    assert_eq!(again.to_string(), "mine theirs");
}

#[test]
fn repeated_step_up_is_refused() {
    let mut step_ups = StepUps::default();
    let mut requested = ScopeSet::parse("a");
    for i in 0..2 {
        requested = step_ups
            .step_up(
                "tools/call x",
                &requested,
                &ScopeSet::parse(&format!("s{i}")),
            )
            .unwrap();
        step_ups.stepped_up("tools/call x");
    }
    assert_eq!(requested.to_string(), "a s0 s1");
    let error = step_ups
        .step_up("tools/call x", &requested, &ScopeSet::parse("s2"))
        .unwrap_err();
    assert_eq!(error.oauth_error(), Some("insufficient_scope"));
    // Each operation has its own count, which starts again after the operation was served.
    assert!(
        step_ups
            .step_up("tools/call y", &requested, &ScopeSet::parse("s2"))
            .is_ok()
    );
    step_ups.served("tools/call x");
    assert!(
        step_ups
            .step_up("tools/call x", &requested, &ScopeSet::parse("s2"))
            .is_ok()
    );
    for i in 0..10_000 {
        step_ups.stepped_up(&i.to_string());
    }
}

#[test]
fn step_up_without_new_scope_is_refused() {
    let step_ups = StepUps::default();
    for needed in ["", "a"] {
        let error = step_ups
            .step_up("x", &ScopeSet::parse("a b"), &ScopeSet::parse(needed))
            .unwrap_err();
        assert_eq!(error.oauth_error(), Some("insufficient_scope"));
    }
}
