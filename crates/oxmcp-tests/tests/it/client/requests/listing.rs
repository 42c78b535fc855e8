//! Listings as streams over pages.

use std::future::IntoFuture;

use futures_util::StreamExt;
use oxmcp::{CacheMode, ClientSession, ErrorCode, Limits, ListingOmission, Revision, testing};
use serde_json::json;

use crate::client::{answer, client, expect, session, session_of};
use crate::support::{calculator, idle};

fn page(names: &[&str], next: Option<&str>) -> serde_json::Value {
    let tools: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    let mut page = json!({"resultType": "complete", "tools": tools});
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    page
}

#[tokio::test]
async fn listing_covers_all_pages_in_every_revision() {
    let server = calculator().tools(["b", "c", "d"].map(idle)).page_size(2);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let names: Vec<_> = session
            .tools()
            .map(|tool| tool.unwrap().name)
            .collect()
            .await;
        assert_eq!(names, ["add", "b", "c", "d"], "{revision}");
        let mut tools = session.tools();
        assert_eq!(tools.next().await.unwrap().unwrap().name, "add");
        assert_eq!(tools.all().await.unwrap().len(), 3);
        let first = session.list_tools(Default::default()).await.unwrap();
        assert_eq!(first.tools.len(), 2);
        let second = session
            .list_tools(oxmcp::protocol::PaginatedParams::at(
                first.next_cursor.unwrap(),
            ))
            .await
            .unwrap();
        assert_eq!(second.tools.len(), 2);
        assert!(second.next_cursor.is_none());
    }
}

#[tokio::test]
async fn listing_is_lazy() {
    let (mut peer, session) = session(Revision::V2025_06_18).await;
    let mut tools = session.tools();
    let first = tokio::spawn(async move {
        let first = tools.next().await;
        (first, tools)
    });
    let request = expect(&mut peer, "tools/list").await;
    assert_eq!(request["params"].get("cursor"), None);
    answer(&mut peer, &request, page(&["a", "b"], Some("more"))).await;
    let (first_tool, mut tools) = first.await.unwrap();
    assert_eq!(first_tool.unwrap().unwrap().name, "a");
    assert_eq!(tools.next().await.unwrap().unwrap().name, "b");
    // The second page is not requested before it is needed.
    session.connection_is_quiet(&mut peer).await;
    let last = tokio::spawn(async move { tools.next().await });
    let request = expect(&mut peer, "tools/list").await;
    assert_eq!(request["params"]["cursor"], "more");
    answer(&mut peer, &request, page(&[], None)).await;
    assert!(last.await.unwrap().is_none());
}

/// Asserts that nothing has been sent so far.
trait Quiet {
    async fn connection_is_quiet(&self, peer: &mut testing::ScriptedPeer);
}

impl Quiet for ClientSession {
    async fn connection_is_quiet(&self, peer: &mut testing::ScriptedPeer) {
        let session = self.clone();
        let ping = tokio::spawn(async move { session.ping().await });
        let request = expect(peer, "ping").await;
        answer(peer, &request, json!({})).await;
        ping.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn undeclared_feature_lists_as_empty_without_a_request() {
    for revision in Revision::ALL {
        let (mut peer, connecting) = {
            let revisions = crate::client::asking(revision);
            crate::client::connecting(client().revisions(revisions)).await
        };
        let opening = peer.receive().await.unwrap();
        let mut opened = if revision.is_modern() {
            crate::client::discovered(&[revision.as_str()])
        } else {
            crate::client::initialized(revision.as_str())
        };
        opened["capabilities"] = json!({"logging": {}});
        answer(&mut peer, &opening, opened).await;
        if !revision.is_modern() {
            expect(&mut peer, "notifications/initialized").await;
        }
        let session = connecting.await.unwrap().unwrap();
        assert!(session.tools().all().await.unwrap().is_empty());
        assert!(session.prompts().all().await.unwrap().is_empty());
        assert!(session.resources().all().await.unwrap().is_empty());
        let templates = session.resource_templates().cache(CacheMode::Refresh);
        assert!(templates.all().await.unwrap().is_empty());
        // The server receives nothing before a page is requested explicitly.
        let page = tokio::spawn(session.list_prompts(Default::default()).into_future());
        let request = expect(&mut peer, "prompts/list").await;
        crate::client::refuse(&mut peer, &request, crate::client::method_not_found()).await;
        let error = page.await.unwrap().unwrap_err();
        assert_eq!(error.code(), ErrorCode::METHOD_NOT_FOUND, "{revision}");
    }
}

#[tokio::test]
async fn empty_cursor_is_a_cursor() {
    let (mut peer, session) = session(Revision::LATEST).await;
    let all = tokio::spawn(session.tools().all());
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, page(&["a"], Some(""))).await;
    let request = expect(&mut peer, "tools/list").await;
    assert_eq!(request["params"]["cursor"], "");
    answer(&mut peer, &request, page(&["b"], None)).await;
    assert_eq!(all.await.unwrap().unwrap().len(), 2);
}

#[tokio::test]
async fn repeated_cursor_ends_the_list_with_an_error() {
    // This includes cursors that repeat after more than one page.
    for cursors in [&["x", "x"][..], &["x", "y", "z", "x"]] {
        let (mut peer, session) = session(Revision::V2025_11_25).await;
        let names = tokio::spawn(async move {
            let mut tools = session.tools();
            let mut names = Vec::new();
            while let Some(tool) = tools.next().await {
                match tool {
                    Ok(tool) => names.push(tool.name),
                    Err(error) => {
                        assert!(tools.next().await.is_none(), "it ends with the error");
                        return (names, error);
                    }
                }
            }
            panic!("it ended without an error");
        });
        for (number, cursor) in cursors.iter().enumerate() {
            let request = expect(&mut peer, "tools/list").await;
            let tool = number.to_string();
            answer(&mut peer, &request, page(&[&tool], Some(cursor))).await;
        }
        let (names, error) = names.await.unwrap();
        assert_eq!(names.len(), cursors.len());
        assert!(error.message().contains("same cursor twice"), "{error}");
    }
}

#[tokio::test]
async fn list_stops_at_max_pages() {
    for (pages, fits) in [(3, true), (4, false)] {
        let limits = Limits::default().client(|client| client.max_pages(3));
        let server = calculator()
            .tools(
                ["b", "c", "d"]
                    .iter()
                    .take(pages - 1)
                    .map(|name| idle(name)),
            )
            .page_size(1);
        let session = testing::connect(&server)
            .client(&client().limits(limits))
            .await
            .unwrap();
        let all = session.tools().all().await;
        match all {
            Ok(all) => assert!(fits && all.len() == pages),
            Err(error) => assert!(
                !fits && error.is_limit() && error.message().contains('3'),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn pages_of_a_list_are_bounded_in_bytes() {
    let name = "n".repeat(100);
    // Two pages of one tool each fit, whatever the page size.
    for (limit, fits) in [(2_000, true), (300, false)] {
        let limits = Limits::default().client(|client| client.max_listing_bytes(limit));
        let server = oxmcp::Server::new("s", "1")
            .tools([format!("a{name}"), format!("b{name}")].map(|name| idle(&name)))
            .page_size(1);
        let session = testing::connect(&server)
            .client(&client().limits(limits))
            .await
            .unwrap();
        match session.tools().all().await {
            Ok(all) => assert!(fits && all.len() == 2),
            Err(error) => assert!(
                !fits && error.is_limit() && error.message().contains("max_listing_bytes"),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn failing_page_ends_the_list() {
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    let mut tools = session.tools();
    let task = tokio::spawn(async move {
        let error = tools.next().await.unwrap().unwrap_err();
        assert!(tools.next().await.is_none());
        error
    });
    let request = expect(&mut peer, "tools/list").await;
    crate::client::refuse(
        &mut peer,
        &request,
        json!({"code": -32602, "message": "bad cursor"}),
    )
    .await;
    assert_eq!(task.await.unwrap().message(), "bad cursor");
}

#[tokio::test]
async fn dropped_next_loses_nothing() {
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    let mut tools = session.tools();
    // The request is sent and answered, and the future of `next` is dropped before it returns the answer.
    tokio::select! {
        biased;
        _ = tools.next() => panic!("nobody has answered"),
        request = expect(&mut peer, "tools/list") => {
            answer(&mut peer, &request, page(&["a"], None)).await;
        }
    }
    assert_eq!(tools.next().await.unwrap().unwrap().name, "a");
    assert!(tools.next().await.is_none());
}

#[tokio::test]
async fn unimplemented_list_is_empty_only_with_or_none() {
    for (or_none, code, is_empty) in [
        (true, -32601, true),
        (true, -32603, false),
        (false, -32601, false),
    ] {
        let (mut peer, session) = session(Revision::V2025_11_25).await;
        let mut templates = session.resource_templates();
        if or_none {
            templates = templates.or_none();
        }
        let listing = tokio::spawn(templates.all());
        let request = expect(&mut peer, "resources/templates/list").await;
        let error = json!({"code": code, "message": "no"});
        crate::client::refuse(&mut peer, &request, error).await;
        let listed = listing.await.unwrap();
        assert_eq!(listed.is_ok_and(|all| all.is_empty()), is_empty);
    }
}

#[tokio::test]
async fn listing_can_begin_at_cursor_and_carry_metadata() {
    let (mut peer, session) = session(Revision::LATEST).await;
    let listing = session
        .tools()
        .starting_at("here")
        .meta("com.example/why", "tests");
    let all = tokio::spawn(listing.all());
    for (cursor, next) in [("here", Some("there")), ("there", None)] {
        let request = expect(&mut peer, "tools/list").await;
        assert_eq!(request["params"]["cursor"], cursor);
        assert_eq!(request["params"]["_meta"]["com.example/why"], "tests");
        answer(&mut peer, &request, page(&[cursor], next)).await;
    }
    assert_eq!(all.await.unwrap().unwrap().len(), 2);
}

/// Lists the tools of a server that answers with these pages, by the cursors that it is asked for. Returns the names, and the error
/// at the end.
async fn listed(
    revision: Revision,
    pages: impl Fn(Option<&str>) -> Option<serde_json::Value>,
) -> (Vec<String>, Option<oxmcp::Error>) {
    let (mut peer, session) = session(revision).await;
    let listing = tokio::spawn(async move {
        let (mut tools, mut names) = (session.tools(), Vec::new());
        while let Some(tool) = tools.next().await {
            match tool {
                Ok(tool) => names.push(tool.name),
                Err(error) => return (names, Some(error)),
            }
        }
        (names, None)
    });
    while !listing.is_finished() {
        let Ok(request) =
            tokio::time::timeout(std::time::Duration::from_secs(1), peer.receive()).await
        else {
            continue;
        };
        let Ok(request) = request else { break };
        match pages(request["params"]["cursor"].as_str()) {
            Some(page) => answer(&mut peer, &request, page).await,
            None => {
                let error = json!({"code": -32602, "message": "invalid cursor"});
                crate::client::refuse(&mut peer, &request, error).await;
            }
        }
    }
    listing.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn empty_last_cursor_ends_the_list() {
    for revision in Revision::ALL {
        // The server takes an empty cursor for none.
        let (names, error) = listed(revision, |cursor| match cursor {
            None | Some("") => Some(page(&["a", "b"], Some("2"))),
            _ => Some(page(&["c"], Some(""))),
        })
        .await;
        assert_eq!(
            (names, error.is_none()),
            (["a", "b", "c"].map(String::from).to_vec(), true)
        );
        let (names, error) = listed(revision, |_| Some(page(&["a", "b"], Some("")))).await;
        assert_eq!((names.len(), error.is_none()), (2, true), "{revision}");
        // The server refuses an empty cursor.
        let (names, error) = listed(revision, |cursor| {
            cursor.is_none().then(|| page(&["a", "b"], Some("")))
        })
        .await;
        assert_eq!((names.len(), error.is_none()), (2, true), "{revision}");
        let (names, error) = listed(revision, |cursor| {
            Some(match cursor {
                None => page(&["a"], Some("")),
                _ => page(&[], None),
            })
        })
        .await;
        assert_eq!((names.len(), error.is_none()), (1, true), "{revision}");
        // The server has one page, and gives no cursor with it the second time.
        let (names, error) = listed(revision, |cursor| {
            Some(page(&["a"], cursor.is_none().then_some("")))
        })
        .await;
        assert_eq!((names.len(), error.is_none()), (1, true), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn identical_second_page_ends_the_listing() {
    for revision in Revision::ALL {
        let (names, error) = listed(revision, |_| Some(page(&["a", "b"], Some("x")))).await;
        assert_eq!((names.len(), error.is_none()), (2, true), "{revision}");
        let (names, error) = listed(revision, |_| Some(page(&[], Some("x")))).await;
        assert_eq!((names.len(), error.is_none()), (0, true), "{revision}");
        // An invalid cursor that is not empty is an error.
        let (names, error) = listed(revision, |cursor| {
            cursor.is_none().then(|| page(&["a", "b"], Some("x")))
        })
        .await;
        assert_eq!((names.len(), error.is_some()), (2, true), "{revision}");
        // So is another page with the same cursor.
        let count = std::sync::atomic::AtomicUsize::new(0);
        let (names, error) = listed(revision, |_| {
            let next = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some(page(&[&next.to_string()], Some("x")))
        })
        .await;
        assert_eq!((names.len(), error.is_some()), (2, true), "{revision}");
    }
}

/// The names and the losses of a list of this kind.
async fn with_losses(session: ClientSession, kind: &str) -> (Vec<String>, Vec<ListingOmission>) {
    macro_rules! read {
        ($listing:expr, $name:ident) => {{
            let mut listing = $listing;
            let mut names = Vec::new();
            while let Some(entry) = listing.next().await {
                names.push(entry.unwrap().$name);
            }
            (names, listing.left_out().to_vec())
        }};
    }
    match kind {
        "tools" => read!(session.tools(), name),
        "prompts" => read!(session.prompts(), name),
        "resources" => read!(session.resources(), uri),
        _ => read!(session.resource_templates(), uri_template),
    }
}

#[tokio::test(start_paused = true)]
async fn losses_of_lists_are_listed() {
    let schema = json!({"type": "object"});
    for (kind, method, name, good, odd, nameless) in [
        (
            "tools",
            "tools/list",
            "name",
            json!({"name": "a", "inputSchema": schema}),
            json!({"name": "b", "inputSchema": schema, "annotations": 5}),
            json!({"name": "c", "inputSchema": 5}),
        ),
        (
            "prompts",
            "prompts/list",
            "name",
            json!({"name": "a"}),
            json!({"name": "b", "title": {}}),
            json!({"title": "c"}),
        ),
        (
            "resources",
            "resources/list",
            "uri",
            json!({"uri": "a:a", "name": "a"}),
            json!({"uri": "a:b", "name": "b", "size": []}),
            json!({"uri": {}, "name": "c"}),
        ),
        (
            "resourceTemplates",
            "resources/templates/list",
            "uriTemplate",
            json!({"uriTemplate": "a:{a}", "name": "a"}),
            json!({"uriTemplate": "a:{b}", "name": "b", "_meta": 5}),
            json!(null),
        ),
    ] {
        let (mut peer, session, _) = session_of(client(), Revision::LATEST).await;
        let pages = [
            json!({"resultType": "complete", kind: [good, odd, nameless], "nextCursor": "2", "ttlMs": 60_000}),
            json!({"resultType": "complete", kind: [good, null], "ttlMs": 60_000}),
        ];
        let reading = tokio::spawn(with_losses(session.clone(), kind));
        for page in &pages {
            let request = expect(&mut peer, method).await;
            answer(&mut peer, &request, page.clone()).await;
        }
        let (names, losses) = reading.await.unwrap();
        let expected = [&good, &odd, &good].map(|it| it[name].as_str().unwrap());
        assert_eq!(names, expected, "{kind}");
        let places: Vec<_> = losses
            .iter()
            .map(|it| (it.page, it.index, it.member.is_some()))
            .collect();
        assert_eq!(places.len(), 3, "{losses:?}");
        for place in [(0, 1, true), (0, 2, false), (1, 1, false)] {
            assert!(places.contains(&place), "{kind}: {losses:?}");
        }
        let member = losses.iter().find(|it| it.member.is_some()).unwrap();
        let known = odd["name"].as_str().or_else(|| odd[name].as_str());
        assert_eq!(member.name.as_deref(), known);
        assert!(losses.iter().all(|it| !it.reason.is_empty()), "{losses:?}");
        // The pages come from the cache now.
        let again = with_losses(session.clone(), kind);
        let again = tokio::time::timeout(std::time::Duration::from_secs(1), again);
        assert_eq!(again.await.unwrap(), (names, losses), "{kind}");
        let record = session.tolerated();
        let left_out = record
            .iter()
            .find(|it| it.leniency.name() == "entry-left-out");
        let left_out = left_out.map(|it| (it.method.as_str(), it.count));
        assert_eq!(left_out, Some((method, 4)), "{record:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn losses_and_deviations_are_bounded() {
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    assert_eq!(session.tolerated(), []);
    let reading = tokio::spawn(with_losses(session.clone(), "prompts"));
    for index in 0..30 {
        let request = expect(&mut peer, "prompts/list").await;
        let mut page = json!({"prompts": vec![json!({"title": "x".repeat(1000)}); 20]});
        page["prompts"][0]["name"] = json!({"x".repeat(1000): index});
        if index < 29 {
            page["nextCursor"] = index.to_string().into();
        }
        page["prompts"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": format!("p{index}")}));
        answer(&mut peer, &request, page).await;
    }
    let (names, losses) = reading.await.unwrap();
    assert_eq!((names.len(), losses.len()), (30, 200));
    let longest = losses.iter().map(|it| it.reason.chars().count()).max();
    assert!(longest <= Some(200));
    assert_eq!(session.tolerated().len(), 1, "{:?}", session.tolerated());
}
