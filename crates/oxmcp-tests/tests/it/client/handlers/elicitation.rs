//! Elicitation by forms and by URLs, in each revision that has it.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp::{
    Accept, Answer, Client, Error, RequestContext, Revision, middleware,
    protocol::{ElicitAction, ElicitFormParams, ElicitResult, ElicitUrlParams},
};
use serde_json::{Value, json};

use crate::client::{ask, client, pass_on, session_of};

/// The revisions with elicitation by forms.
const FORMS: [Revision; 3] = [
    Revision::V2025_06_18,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

/// The revisions that have elicitation by URLs as well.
const URLS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(serde::Serialize)]
struct Person {
    name: Option<String>,
    age: u8,
}

fn ann() -> Person {
    Person {
        name: Some("Ann".into()),
        age: 40,
    }
}

fn form() -> Value {
    json!({
        "message": "Who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "default": "Nobody"},
                "age": {"type": "integer", "minimum": 18},
                "agree": {"type": "boolean", "default": true},
            },
            "required": ["name", "age"],
        },
    })
}

fn url() -> Value {
    json!({"mode": "url", "message": "Log in", "url": "https://example.com/", "elicitationId": "7"})
}

async fn answered(client: Client, revision: Revision, params: Value) -> Value {
    let (mut peer, session, _) = session_of(client, revision).await;
    ask((&mut peer, &session), "elicitation/create", params).await
}

#[tokio::test(start_paused = true)]
async fn only_capabilities_with_handlers_are_declared() {
    let forms = || client().on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline });
    let url =
        |client: Client| client.on_elicit_url(|_: ElicitUrlParams| async { ElicitAction::Decline });
    for revision in Revision::ALL {
        let old = match revision {
            Revision::V2025_06_18 => json!({"elicitation": {}}),
            _ => json!({}),
        };
        let modes = URLS.contains(&revision);
        let or_old = |new: Value| {
            if modes {
                json!({"elicitation": new})
            } else {
                old.clone()
            }
        };
        let declared = async |client: Client| session_of(client, revision).await.2;
        assert_eq!(declared(client()).await, json!({}));
        assert_eq!(declared(forms()).await, or_old(json!({"form": {}})));
        let both = declared(url(forms())).await;
        assert_eq!(both, or_old(json!({"form": {}, "url": {}})));
        let only_url = declared(url(client())).await;
        let expected = if modes {
            json!({"elicitation": {"url": {}}})
        } else {
            json!({})
        };
        assert_eq!(only_url, expected, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn form_is_filled_in_with_defaults() {
    for revision in FORMS {
        for through_middleware in [false, true] {
            let mut client =
                client().on_elicit(|form: ElicitFormParams, cx: RequestContext| async move {
                    assert_eq!(form.message, "Who are you?");
                    assert_eq!(form.requested_schema.properties.len(), 3);
                    assert!(cx.client_session().is_some() && cx.server_session().is_none());
                    assert!(cx.request_id().is_some());
                    Accept(Person {
                        name: None,
                        age: 40,
                    })
                });
            if through_middleware {
                client = client.layer(middleware::from_fn(pass_on));
            }
            let answer = answered(client, revision, form()).await;
            let content = json!({"name": "Nobody", "age": 40, "agree": true});
            assert_eq!(
                answer["result"],
                json!({"action": "accept", "content": content}),
                "{revision}: {answer}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn user_may_decline_and_cancel() {
    for revision in FORMS {
        let declines = client().on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline });
        let dismisses = client().on_elicit(|_: ElicitFormParams| async { None::<Accept<Person>> });
        let whole = client().on_elicit(|_: RequestContext, _: ElicitFormParams| async {
            let mut result = ElicitResult::accept(&ann()).unwrap();
            result.action = ElicitAction::Decline;
            Ok::<_, io::Error>(Some(result))
        });
        for (client, action) in [
            (declines, "decline"),
            (dismisses, "cancel"),
            (whole, "decline"),
        ] {
            let answer = answered(client, revision, form()).await;
            assert_eq!(
                answer["result"],
                json!({"action": action}),
                "{revision}: {answer}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answer_that_violates_its_form_is_not_sent() {
    for revision in FORMS {
        let client = client().on_elicit(|_: ElicitFormParams| async {
            Accept(json!({"name": "A", "age": 17, "agree": "yes"}))
        });
        let answer = answered(client, revision, form()).await;
        let said = answer["error"]["message"].as_str().unwrap();
        for named in [
            "\"name\"",
            "at least 2 characters",
            "\"age\"",
            "at least 18",
            "true or false",
        ] {
            assert!(said.contains(named), "{revision}: {said}");
        }
        assert_eq!(answer["error"]["code"], -32603);
    }
}

#[tokio::test(start_paused = true)]
async fn handler_error_reaches_the_server_or_caller() {
    for revision in FORMS {
        let own = client().on_elicit(|_: ElicitFormParams| async {
            Err::<ElicitAction, _>(Error::protocol(-32000, "no terminal"))
        });
        let other = client().on_elicit(|_: ElicitFormParams| async {
            Err::<ElicitAction, _>(io::Error::other("no terminal"))
        });
        for (client, code) in [(own, -32000), (other, -32603)] {
            let answer = answered(client, revision, form()).await;
            let error = json!({"code": code, "message": "no terminal"});
            assert_eq!(answer["error"], error, "{revision}");
        }
        let panics = client().on_elicit(|_: ElicitFormParams| async {
            if true {
                panic!("on purpose");
            }
            ElicitAction::Cancel
        });
        let answer = answered(panics, revision, form()).await;
        assert_eq!(answer["error"]["code"], -32603, "{revision}: {answer}");
        assert!(!answer.to_string().contains("on purpose"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn user_is_sent_to_a_url() {
    for revision in URLS {
        let client = client().on_elicit_url(|asked: ElicitUrlParams| async move {
            assert_eq!(asked.url, "https://example.com/");
            assert_eq!(asked.message, "Log in");
            Accept(json!({"no": "form"}))
        });
        let answer = answered(client, revision, url()).await;
        assert_eq!(
            answer["result"],
            json!({"action": "accept"}),
            "{revision}: {answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn non_web_or_deceptive_urls_are_not_visited() {
    for revision in URLS {
        for wrong in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "--new-window",
            "https://bank.example@evil.example/",
        ] {
            let asked = Arc::new(AtomicBool::new(false));
            let was_asked = Arc::clone(&asked);
            let client = client().on_elicit_url(move |_: ElicitUrlParams| {
                was_asked.store(true, Ordering::Relaxed);
                async { ElicitAction::Accept }
            });
            let mut params = url();
            params["url"] = json!(wrong);
            let answer = answered(client, revision, params).await;
            let said = answer["error"]["message"].as_str().unwrap();
            assert!(said.contains("rejected URL: "), "{wrong}: {said}");
            assert!(!asked.load(Ordering::Relaxed), "{wrong}");
            if !revision.is_modern() {
                assert_eq!(answer["error"]["code"], -32602, "{answer}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn undeclared_requests_are_refused() {
    let forms = || client().on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline });
    let urls = || client().on_elicit_url(|_: ElicitUrlParams| async { ElicitAction::Decline });
    let cases: [(Client, Value, i64, &str); 5] = [
        (client(), form(), -32601, "elicitation"),
        (client(), url(), -32601, "elicitation"),
        (forms(), url(), -32602, "elicitation.url"),
        (urls(), form(), -32602, "elicitation.form"),
        (
            forms(),
            json!({"mode": "tea", "message": "m"}),
            -32602,
            "expected \"form\" or \"url\"",
        ),
    ];
    for revision in URLS {
        for (client, params, code, named) in cases.clone() {
            let answer = answered(client, revision, params).await;
            let said = answer["error"]["message"].as_str().unwrap();
            assert!(said.contains(named), "{revision}: {said}");
            if !revision.is_modern() {
                assert_eq!(answer["error"]["code"], code, "{revision}: {answer}");
            }
        }
    }
    // Revisions without modes have no URLs, and revisions without elicitation do not have the request.
    let both = urls().on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline });
    let answer = answered(both.clone(), Revision::V2025_06_18, url()).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = answered(both, Revision::V2025_03_26, form()).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn invalid_params_are_refused() {
    for revision in FORMS {
        let client = client()
            .strict()
            .on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline });
        let answer = answered(client, revision, json!({"message": "no form"})).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(
            said.contains("invalid params of elicitation/create"),
            "{revision}: {said}"
        );
        if !revision.is_modern() {
            assert_eq!(answer["error"]["code"], -32602);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handler_set_too_late_is_not_called() {
    let client = client();
    let (mut peer, session, _) = session_of(client.clone(), Revision::V2025_11_25).await;
    let _ = client.on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline });
    let answer = ask((&mut peer, &session), "elicitation/create", form()).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[tokio::test]
async fn answer_can_accept_decline_or_cancel() {
    let client = client().on_elicit(|form: ElicitFormParams| async move {
        match form.message.as_str() {
            "Who are you?" => Answer::Accept(ann()),
            "Really?" => Answer::Decline,
            _ => Answer::Cancel,
        }
    });
    for revision in FORMS {
        let (mut peer, session, _) = session_of(client.clone(), revision).await;
        for (message, action) in [
            ("Who are you?", "accept"),
            ("Really?", "decline"),
            ("What?", "cancel"),
        ] {
            let mut form = form();
            form["message"] = json!(message);
            let answered = ask((&mut peer, &session), "elicitation/create", form).await;
            assert_eq!(answered["result"]["action"], action, "{revision}");
        }
    }
}
