//! Tests of sealing and opening states.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::value::to_raw_value;

use crate::{
    server::ask::sealed_state::{
        Binding, OwnBinding, OwnState, expiry, open, open_own, seal, seal_own,
    },
    session::{
        handler::journal::{GivenAnswer, JournalRecord, QuestionDigest},
        sealing::{FORMAT, HEADER, KeyRing, NONCE, Refused, StateKey, TAG},
    },
};

const LIMIT: usize = 64 << 10;

fn record() -> JournalRecord {
    JournalRecord {
        expires: 1600,
        answers: vec![GivenAnswer {
            key: "confirm".into(),
            question: QuestionDigest::of(br#""Sure?""#),
            value: to_raw_value(&serde_json::json!({"action": "accept"})).unwrap(),
        }],
        steps: vec![("count".into(), to_raw_value(&5).unwrap())],
        open: vec![("name".into(), QuestionDigest::of(br#""Who?""#))],
    }
}

fn binding() -> Binding<'static> {
    Binding {
        server: "files",
        principal: Some("ann"),
        method: "tools/call",
        target: "delete",
        arguments: r#"{"a":1,"b":[2]}"#,
    }
}

fn key(byte: u8) -> StateKey {
    StateKey::new([byte; 32])
}

fn ring(keys: impl IntoIterator<Item = u8>) -> KeyRing {
    KeyRing::new(keys.into_iter().map(key).collect())
}

fn sealed() -> String {
    seal(&record(), &binding(), &key(1), [7; NONCE], LIMIT).unwrap()
}

fn refused(token: &str, binding: &Binding<'_>, keys: &KeyRing, now: u64) -> Refused {
    open(token, binding, keys, now, LIMIT).unwrap_err()
}

#[test]
fn sealed_state_opens() {
    let opened = open(&sealed(), &binding(), &ring([1]), 1599, LIMIT).unwrap();
    assert_eq!(
        serde_json::to_string(&opened).unwrap(),
        serde_json::to_string(&record()).unwrap()
    );
    // The token reveals none of its content.
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed()).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("confirm"));
}

/// The token of [`sealed`], as an earlier release with another implementation of the cipher wrote it: tokens must outlive an
/// update of the server.
const SEALED_EARLIER: &str = concat!(
    "AUZSOX0HBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwfmDvDKh_t-RDrFUniOKLLffsezUTEXRmWbNs7wqLyHDHY4wgjot7az86wMs5cu",
    "fGmKI5qfFy4PWcYrSkJWlOeBZDxUMfXzW3I4N_-8JkC-TwDiJtI11HHPoKd8bIWT7PQCuuFbCuoPIIe7rayzRqIWuuf_rewxVcNi",
    "5FLvkTIugiiTRa6NxBTw_PkCYMUpujLhNc49SosRyubeyy0iZ-Q",
);

#[test]
fn token_format_is_stable() {
    assert_eq!(sealed(), SEALED_EARLIER);
    let opened = open(SEALED_EARLIER, &binding(), &ring([1]), 0, LIMIT).unwrap();
    assert_eq!(
        serde_json::to_string(&opened).unwrap(),
        serde_json::to_string(&record()).unwrap()
    );
}

#[test]
fn arguments_are_equal_only_for_every_reader() {
    let seal = |arguments| {
        let binding = Binding {
            arguments,
            ..binding()
        };
        seal(&record(), &binding, &key(1), [7; NONCE], LIMIT).unwrap()
    };
    let opens = |token: &str, arguments| {
        let binding = Binding {
            arguments,
            ..binding()
        };
        open(token, &binding, &ring([1]), 0, LIMIT).is_ok()
    };
    for (sealed, came_back, same) in [
        (
            r#"{"a":1,"b":{"d":2,"c":3}}"#,
            r#"{"b": {"c": 3, "d": 2}, "a": 1}"#,
            true,
        ),
        (r#"{"a":"\u0061\n"}"#, r#"{"\u0061":"a\u000a"}"#, true),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
        (r#"{"a":2}"#, r#"{"a":1,"a":2}"#, false),
        (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false),
        // These are the same for a reader of floating-point numbers.
        (
            r#"{"a":9007199254740993.0}"#,
            r#"{"a":9007199254740992.0}"#,
            false,
        ),
        (
            r#"{"a":123456789012345678901}"#,
            r#"{"a":123456789012345678902}"#,
            false,
        ),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#, false),
    ] {
        assert_eq!(
            opens(&seal(sealed), came_back),
            same,
            "{sealed} {came_back}"
        );
    }
}

#[test]
fn empty_caller_name_differs_from_anonymous() {
    let of = |principal| Binding {
        principal,
        ..binding()
    };
    for (sealed, came_back) in [(None, Some("")), (Some(""), None)] {
        let token = seal(&record(), &of(sealed), &key(1), [7; NONCE], LIMIT).unwrap();
        let found = refused(&token, &of(came_back), &ring([1]), 0);
        assert_eq!(found, Refused::Forged, "{sealed:?} {came_back:?}");
    }
}

#[test]
fn state_opens_only_for_its_own_request() {
    let token = sealed();
    let same = Binding {
        arguments: r#"{ "b": [2], "a": 1 }"#,
        ..binding()
    };
    assert!(open(&token, &same, &ring([1]), 0, LIMIT).is_ok());
    let (right, anybody) = (binding(), None);
    for (what, other) in [
        (
            "server",
            Binding {
                server: "files2",
                ..right
            },
        ),
        (
            "principal",
            Binding {
                principal: Some("bob"),
                ..right
            },
        ),
        (
            "nobody",
            Binding {
                principal: anybody,
                ..right
            },
        ),
        (
            "method",
            Binding {
                method: "prompts/get",
                ..right
            },
        ),
        (
            "target",
            Binding {
                target: "deletes",
                ..right
            },
        ),
        (
            "arguments",
            Binding {
                arguments: r#"{"a":1,"b":[3]}"#,
                ..right
            },
        ),
        // The concatenation is the same, split at another position.
        (
            "cut",
            Binding {
                server: "file",
                principal: Some("sann"),
                ..right
            },
        ),
    ] {
        assert_eq!(
            refused(&token, &other, &ring([1]), 0),
            Refused::Forged,
            "{what}"
        );
    }
}

#[test]
fn state_expires() {
    let token = sealed();
    assert!(open(&token, &binding(), &ring([1]), 1599, LIMIT).is_ok());
    for now in [1600, u64::MAX] {
        assert_eq!(
            refused(&token, &binding(), &ring([1]), now),
            Refused::Expired
        );
    }
    assert_eq!(expiry(1000, Duration::from_secs(600)), 1600);
    assert_eq!(expiry(1000, Duration::MAX), u64::MAX);
}

#[test]
fn every_key_of_a_ring_opens() {
    let token = sealed();
    for keys in [vec![1], vec![1, 2], vec![2, 1], vec![3, 2, 1]] {
        assert!(open(&token, &binding(), &ring(keys), 0, LIMIT).is_ok());
    }
    for keys in [vec![], vec![2], vec![2, 3]] {
        assert_eq!(
            refused(&token, &binding(), &ring(keys), 0),
            Refused::UnknownKey
        );
    }
    // The first key seals.
    assert_eq!(ring([2, 1]).sealing().unwrap().id(), key(2).id());
    // A ring without keys generates one, and keeps it.
    let own = KeyRing::default();
    assert_eq!(own.sealing().unwrap().id(), own.sealing().unwrap().id());
    assert_ne!(
        own.sealing().unwrap().id(),
        KeyRing::default().sealing().unwrap().id()
    );
}

#[test]
fn malformed_token_is_refused() {
    let short = BASE64_URL_SAFE_NO_PAD.encode([FORMAT; HEADER + TAG - 1]);
    let mut other_format = BASE64_URL_SAFE_NO_PAD.decode(sealed()).unwrap();
    other_format[0] = 2;
    let other_format = BASE64_URL_SAFE_NO_PAD.encode(&other_format);
    for token in ["", "a", "AA==", "état", "e30", &short, &other_format] {
        assert_eq!(
            refused(token, &binding(), &ring([1]), 0),
            Refused::Malformed,
            "{token}"
        );
    }
    let long = "A".repeat(LIMIT + 1);
    assert_eq!(refused(&long, &binding(), &ring([1]), 0), Refused::TooLong);
    let more = format!("{}-TAMPERED", sealed());
    assert!(open(&more, &binding(), &ring([1]), 0, LIMIT).is_err());
}

#[test]
fn oversized_record_error_names_its_largest_part() {
    let mut long = record();
    let text = to_raw_value(&"x".repeat(LIMIT)).unwrap();
    long.steps.push(("listing".into(), text));
    let error = seal(&long, &binding(), &key(1), [7; NONCE], LIMIT).unwrap_err();
    assert!(error.is_limit());
    assert!(
        error
            .message()
            .contains(r#"the largest part is step "listing" with 65538 bytes"#),
        "{error}"
    );
}

proptest! {
    #[test]
    fn record_survives_sealing_and_opening(
        steps in proptest::collection::vec(("[a-z]{0,4}", any::<String>()), 0..4),
        secret in any::<[u8; 32]>(),
        nonce in any::<[u8; NONCE]>(),
        arguments in any::<String>(),
    ) {
        let steps = steps.into_iter().map(|(k, v)| (k, to_raw_value(&v).unwrap())).collect();
        let record = JournalRecord { expires: 1, steps, ..JournalRecord::default() };
        let binding = Binding { arguments: &arguments, ..binding() };
        let key = StateKey::new(secret);
        let token = seal(&record, &binding, &key, nonce, LIMIT).unwrap();
        let opened = open(&token, &binding, &KeyRing::new(vec![key]), 0, LIMIT).unwrap();
        prop_assert_eq!(
            serde_json::to_string(&opened).unwrap(),
            serde_json::to_string(&record).unwrap()
        );
    }

    #[test]
    fn flipped_bit_is_refused(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let token = BASE64_URL_SAFE_NO_PAD.encode(&bytes);
        prop_assert!(open(&token, &binding(), &ring([1]), 0, LIMIT).is_err());
    }

    #[test]
    fn changed_character_is_refused(at in any::<prop::sample::Index>(), to in "[ -~]") {
        let token = sealed();
        let at = at.index(token.len());
        let mut changed = token.clone();
        changed.replace_range(at..=at, &to);
        prop_assume!(changed != token);
        prop_assert!(open(&changed, &binding(), &ring([1]), 0, LIMIT).is_err());
    }
}

#[test]
fn state_of_a_handler_opens_only_for_its_values() {
    let binding = OwnBinding {
        server: "files",
        principal: Some("ann"),
        values: &["tools/call", "delete"],
    };
    let state = OwnState {
        expires: 1600,
        state: "part 7".to_owned(),
    };
    let sealed = seal_own(&state, &binding, &key(1), [7; NONCE], LIMIT).unwrap();
    let open_for = |binding: &OwnBinding<'_>, now| {
        let opened = open_own(&sealed, binding, &ring([1]), now, LIMIT);
        opened.map(|it| it.state)
    };
    assert_eq!(open_for(&binding, 1599).unwrap(), "part 7");
    assert_eq!(open_for(&binding, 1600), Err(Refused::Expired));
    let others = [
        OwnBinding {
            server: "mail",
            ..binding
        },
        OwnBinding {
            principal: None,
            ..binding
        },
        OwnBinding {
            principal: Some("bob"),
            ..binding
        },
        OwnBinding {
            values: &["tools/call", "read"],
            ..binding
        },
        // The boundaries of the values matter.
        OwnBinding {
            values: &["tools/calldelete"],
            ..binding
        },
        OwnBinding {
            principal: Some(""),
            values: &["ann", "tools/call", "delete"],
            ..binding
        },
    ];
    for other in others {
        assert_eq!(open_for(&other, 0), Err(Refused::Forged), "{other:?}");
    }
    let other = open_own(&sealed, &binding, &ring([2]), 0, LIMIT);
    assert_eq!(other.unwrap_err(), Refused::UnknownKey);
    // Nor does it open as a journal.
    let journal = open(&sealed, &self::binding(), &ring([1]), 0, LIMIT);
    assert_eq!(journal.unwrap_err(), Refused::Forged);
    let long = seal_own(&state, &binding, &key(1), [7; NONCE], 20).unwrap_err();
    assert!(long.is_limit(), "{long}");
}
