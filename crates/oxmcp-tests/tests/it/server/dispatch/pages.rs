//! Pages of listings, in the order of names.

use std::collections::BTreeSet;

use base64::Engine;
use oxmcp::{Revision, Server};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::support::{LEGACY, answer, idle, modern, script};

fn server(names: &[&str], page_size: usize) -> Server {
    Server::new("pages", "1.0.0")
        .tools(names.iter().map(|name| idle(name)))
        .page_size(page_size)
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn server_decides_the_page_size() {
    let all = ["a", "b", "c", "d", "e"];
    for revision in Revision::ALL {
        for (size, pages) in [(1, 5), (2, 3), (4, 2), (5, 1), (6, 1), (0, 1)] {
            let server = server(&all, size);
            let mut params = json!({});
            let mut seen = Vec::new();
            for page in 1..=pages {
                let answer = answer(&server, revision, "tools/list", params).await;
                seen.extend(names(&answer));
                let next = answer["result"].get("nextCursor").cloned();
                assert_eq!(next.is_some(), page < pages, "page {page} of {pages}");
                params = json!({"cursor": next});
            }
            assert_eq!(seen, all, "{size} in {revision}");
        }
    }
}

#[tokio::test]
async fn page_size_zero_means_the_default_thousand() {
    let all: Vec<_> = (0..1001).map(|index| format!("tool_{index:04}")).collect();
    let names_of_all: Vec<_> = all.iter().map(String::as_str).collect();
    for server in [
        server(&names_of_all, 0),
        server(&names_of_all, 7).page_size(0),
    ] {
        let first = answer(&server, Revision::LATEST, "tools/list", json!({})).await;
        assert_eq!(names(&first).len(), 1000);
        assert!(first["result"]["nextCursor"].is_string());
    }
}

#[tokio::test]
async fn cursor_is_opaque() {
    let server = server(&["first_tool", "second_tool"], 1);
    let first = answer(&server, Revision::LATEST, "tools/list", json!({})).await;
    assert!(
        !first["result"]["nextCursor"]
            .as_str()
            .unwrap()
            .contains("first_tool")
    );
}

#[tokio::test]
async fn foreign_cursors_are_refused() {
    for revision in Revision::ALL {
        for cursor in [
            json!("a"),
            json!("dG9vbHM"),
            json!("%%%%"),
            json!("cHJvbXB0czphZGQ"),
            json!(7),
            json!({}),
        ] {
            let params = json!({"cursor": cursor});
            let answer = answer(
                &server(&["a", "b"], 1).strict(),
                revision,
                "tools/list",
                params,
            )
            .await;
            assert_eq!(
                answer["error"]["code"], -32602,
                "{cursor} in {revision}: {answer}"
            );
        }
        for none in [json!(null), json!("")] {
            let params = json!({"cursor": none});
            let first = answer(&server(&["a", "b"], 1), revision, "tools/list", params).await;
            assert_eq!(names(&first), ["a"]);
        }
    }
}

#[tokio::test]
async fn forged_cursors_do_not_disturb_real_pages() {
    let server = server(&["a", "m", "z"], 2);
    let mut peer = script(&server).await;
    for index in 0..200 {
        let cursor = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(format!("tools/list b{index}"));
        let answer = peer
            .ask(modern(index, "tools/list", json!({"cursor": cursor})))
            .await
            .unwrap();
        assert_eq!(names(&answer), ["m", "z"]);
    }
    let answer = peer
        .ask(modern(999, "tools/list", json!({})))
        .await
        .unwrap();
    assert_eq!(names(&answer), ["a", "m"]);
}

#[tokio::test]
async fn cached_pages_match_their_revision() {
    let server = server(&["a", "b"], 1);
    for _ in 0..2 {
        for revision in Revision::ALL {
            let answer = answer(&server, revision, "tools/list", json!({})).await;
            let modern = answer["result"].get("resultType").is_some();
            assert_eq!(modern, revision.is_modern(), "{revision}");
        }
    }
    server.add_tools([idle("0")]).unwrap();
    for revision in LEGACY {
        let answer = answer(&server, revision, "tools/list", json!({})).await;
        assert_eq!(names(&answer), ["0"], "{revision}");
    }
}

#[derive(Clone, Debug)]
enum Change {
    Add(&'static str),
    Remove(&'static str),
}

const NAMES: [&str; 10] = ["a", "a.b", "a_b", "b", "B", "c", "d", "e", "x-1", "z"];

fn changes() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let change = prop_oneof![
        select(&NAMES).prop_map(Change::Add),
        select(&NAMES).prop_map(Change::Remove),
    ];
    vec(vec(change, 0..4), 12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// An entry that exists from the first page to the last is listed once, and an entry that is added or removed meanwhile at most
    /// once.
    #[test]
    fn unchanged_entries_are_never_lost_or_repeated(
        start in proptest::collection::btree_set(select(&NAMES), 1..10),
        size in 1usize..4,
        changes in changes(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let start: Vec<_> = start.into_iter().collect();
            let server = server(&start, size);
            let mut peer = script(&server).await;
            let mut surviving: BTreeSet<_> = start.iter().copied().collect();
            let mut seen = Vec::new();
            let mut params = json!({});
            // Each page advances by at least one name, so there are at most as many pages as names.
            for (id, changes) in (1..).zip(changes) {
                let answer = peer.ask(modern(id, "tools/list", params)).await.unwrap();
                seen.extend(names(&answer));
                let Some(next) = answer["result"].get("nextCursor") else { break };
                params = json!({"cursor": next});
                for change in changes {
                    match change {
                        Change::Add(name) => server.add_tools([idle(name)]).unwrap(),
                        Change::Remove(name) => {
                            surviving.remove(name);
                            server.remove_tools([name]);
                        }
                    }
                }
            }
            let unique: BTreeSet<_> = seen.iter().map(String::as_str).collect();
            assert_eq!(unique.len(), seen.len(), "repeated: {seen:?}");
            assert!(surviving.is_subset(&unique), "lost: {surviving:?} of {seen:?}");
            assert!(seen.is_sorted());
        });
    }
}
