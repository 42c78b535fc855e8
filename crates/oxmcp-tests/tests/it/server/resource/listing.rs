//! Resources as they are listed, with their annotations and views.

use crate::server::resource::*;

#[tokio::test]
async fn resource_list_contains_all_metadata() {
    let server = server(
        Resource::text("docs://b", "b", "12345")
            .title("B")
            .description("the second")
            .mime_type("text/plain")
            .annotations(Annotations::default().with_priority(0.5))
            .icon(Icon::new("https://example.com/b.png"))
            .meta("com.example/a", 1),
    )
    .resource(Resource::new("docs://a", "a", function));
    let list = answer(&server, Revision::LATEST, "resources/list", json!({})).await;
    assert_eq!(
        list["result"]["resources"],
        json!([
            {"uri": "docs://a", "name": "a"},
            {
                "uri": "docs://b", "name": "b", "title": "B", "description": "the second", "mimeType": "text/plain",
                "annotations": {"priority": 0.5}, "size": 5, "icons": [{"src": "https://example.com/b.png"}],
                "_meta": {"com.example/a": 1},
            },
        ])
    );
    let oldest = answer(&server, Revision::V2024_11_05, "resources/list", json!({})).await;
    assert_eq!(
        oldest["result"]["resources"][1],
        json!({
            "uri": "docs://b", "name": "b", "description": "the second", "mimeType": "text/plain",
            "annotations": {"priority": 0.5}, "size": 5,
        })
    );
}

#[tokio::test]
async fn resources_can_change_while_a_client_is_connected() {
    let server = Server::new("library", "1.0.0").resources([]);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        assert_eq!(session.resources().all().await.unwrap(), []);
        assert_eq!(session.resource_templates().all().await.unwrap(), []);
        let text = |uri, text| Resource::text(uri, "x", text);
        server
            .add_resources([text(URI, "old"), text("app://y", "y")])
            .unwrap();
        server.add_resources([text(URI, "new")]).unwrap();
        let uris: Vec<_> = session.resources().all().await.unwrap();
        let uris: Vec<_> = uris.into_iter().map(|resource| resource.uri).collect();
        assert_eq!(uris, [URI, "app://y"], "{revision}");
        let read = session.read_resource(URI).await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some("new"));

        let error = server
            .add_resources([text("app://z", "z"), text("no uri", "")])
            .unwrap_err();
        assert!(error.to_string().contains("missing scheme"), "{error}");
        session.read_resource("app://z").await.unwrap_err();

        server.remove_resources([URI, "app://y", "app://unknown"]);
        assert_eq!(session.resources().all().await.unwrap(), []);
    }
}

#[tokio::test]
async fn invalid_resource_is_refused_before_serving() {
    for (uri, said) in [
        (
            "notes.txt",
            "missing scheme; expected a URI such as \"file:///notes.txt\" or \"notes://today\"",
        ),
        ("notes:", "nothing follows the scheme"),
        (
            "notes://my day",
            "invalid characters in the URI; write \"notes://my%20day\"",
        ),
        (
            "notes://100%",
            "each \"%\" must be followed by two hexadecimal digits",
        ),
    ] {
        let server = server(Resource::text(uri, "x", ""));
        let error = testing::connect(&server).await.unwrap_err();
        assert_eq!(error.message(), format!("resource {uri:?}: {said}"));
    }
}

#[tokio::test]
async fn resources_are_listed_in_pages() {
    let resources = (0..5).map(|n| Resource::text(format!("n://{n}"), "n", ""));
    let server = Server::new("library", "1.0.0")
        .page_size(2)
        .resources(resources);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let all = session.resources().all().await.unwrap();
        assert_eq!(all.len(), 5, "{revision}");
    }
}

#[tokio::test]
async fn resources_are_declared_only_when_present() {
    let capability = json!({"listChanged": true});
    for (server, expected) in [
        (Server::new("x", "1").tool(add()), Value::Null),
        (Server::new("x", "1").resources([]), capability.clone()),
        (
            Server::new("x", "1").resource_templates([]),
            capability.clone(),
        ),
    ] {
        let discovered = answer(&server, Revision::LATEST, "server/discover", json!({})).await;
        assert_eq!(discovered["result"]["capabilities"]["resources"], expected);
        for revision in LEGACY {
            let mut peer = script(&server).await;
            let opened = peer.initialize(revision).await.unwrap();
            assert_eq!(
                opened["result"]["capabilities"]["resources"], expected,
                "{opened}"
            );
            for method in ["resources/list", "resources/templates/list"] {
                let list = peer.ask(request(3, method, json!({}))).await.unwrap();
                let code = if expected.is_null() {
                    json!(-32601)
                } else {
                    Value::Null
                };
                assert_eq!(list["error"]["code"], code, "{list}");
            }
            let params = json!({"uri": URI});
            let answer = peer
                .ask(request(4, "resources/read", params))
                .await
                .unwrap();
            let code = if expected.is_null() { -32601 } else { -32002 };
            assert_eq!(answer["error"]["code"], code);
        }
    }
}

#[tokio::test]
async fn hidden_feature_does_not_exist_for_its_caller() {
    let server = server(Resource::text(URI, "x", "mine").visible_to(|cx| cx.peer_info().is_some()))
        .resource(Resource::text("app://others", "o", "").visible_to(|cx| cx.peer_info().is_none()))
        .resource_template(
            ResourceTemplate::dynamic("app://{x}", "rest", |_cx, _variables| async { "rest" })
                .visible_to(|cx| cx.peer_info().is_some()),
        )
        .resource_template(
            ResourceTemplate::dynamic("app://o{x}", "others", |_cx, _variables| async { "others" })
                .visible_to(|cx| cx.peer_info().is_none()),
        );
    for revision in Revision::ALL {
        let list = answer(&server, revision, "resources/list", json!({})).await;
        assert_eq!(list["result"]["resources"].as_array().unwrap().len(), 1);
        let list = answer(&server, revision, "resources/templates/list", json!({})).await;
        let templates = list["result"]["resourceTemplates"].as_array().unwrap();
        assert_eq!(templates.len(), 1, "{list}");
        let mine = read(&server, revision, URI).await;
        assert_eq!(mine["result"]["contents"][0]["text"], "mine");
        // A template whose URI matches does not give access to the hidden resource either.
        let others = read(&server, revision, "app://others").await;
        assert!(others["error"].is_object(), "{others}");
        let rest = read(&server, revision, "app://more").await;
        assert_eq!(rest["result"]["contents"][0]["text"], "rest");
    }
}

#[tokio::test]
async fn handlers_caching_overrides_the_definitions() {
    let hour = CacheHint::public(Duration::from_secs(3600));
    let own = || async {
        let mut result = ReadResourceResult::from(ResourceContents::from("x"));
        result.ttl_ms = Some(1);
        result
    };
    let plain = || Resource::text(URI, "x", "");
    for (resource, ttl, scope) in [
        (plain(), 0, CacheScope::Private),
        (plain().cache(hour), 3_600_000, CacheScope::Public),
        (
            plain().cache(hour).visible_to(|_| true),
            3_600_000,
            CacheScope::Private,
        ),
        (
            Resource::new(URI, "x", own).cache(hour),
            1,
            CacheScope::Public,
        ),
        (Resource::new(URI, "x", own), 1, CacheScope::Private),
    ] {
        let server = server(resource).cache_resources(hour);
        let result = &read(&server, Revision::LATEST, URI).await["result"];
        assert_eq!(result["ttlMs"], ttl);
        assert_eq!(result["cacheScope"], json!(scope));
        let older = read(&server, Revision::LATEST_LEGACY, URI).await;
        assert!(older["result"].get("ttlMs").is_none(), "{older}");
        let templates = answer(
            &server,
            Revision::LATEST,
            "resources/templates/list",
            json!({}),
        )
        .await;
        assert_eq!(templates["result"]["ttlMs"], 0);
        let list = answer(&server, Revision::LATEST, "resources/list", json!({})).await;
        assert_eq!(list["result"]["ttlMs"], 3_600_000);
    }
}

#[tokio::test(start_paused = true)]
async fn resource_and_template_changes_send_the_same_notification() {
    const CHANGED: &str = "notifications/resources/list_changed";
    let server = Server::new("library", "1.0.0").resources([]);
    let change = |step: usize| match step {
        0 => server
            .add_resources([Resource::text(URI, "x", "")])
            .unwrap(),
        1 => server.remove_resources([URI]),
        2 => {
            let template =
                ResourceTemplate::dynamic("app://{x}", "x", |_cx, _variables| async { "" });
            server.add_resource_templates([template]).unwrap();
        }
        _ => server.remove_resource_templates(["app://{x}"]),
    };
    for revision in LEGACY {
        let mut peer = script(&server).await;
        peer.initialize(revision).await.unwrap();
        peer.ask(request(1, "ping", json!({}))).await.unwrap();
        for step in 0..4 {
            change(step);
            assert_eq!(
                peer.receive().await.unwrap()["method"],
                CHANGED,
                "{revision}"
            );
        }
    }
    let mut peer = script(&server).await;
    let filter =
        json!({"notifications": {"resourcesListChanged": true, "resourceSubscriptions": [URI]}});
    let acknowledged = peer
        .ask(modern(1, "subscriptions/listen", filter))
        .await
        .unwrap();
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"resourcesListChanged": true})
    );
    for step in 0..4 {
        change(step);
        assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
    }
}

#[tokio::test]
async fn template_entries_are_listed_among_resources() {
    use oxmcp::{Client, protocol::Resource as Listed};

    let note = |_cx, _variables| async { "a note" };
    let notes = ResourceTemplate::dynamic("notes://{name}", "note", note).list(|cx| async move {
        if cx.peer_info().is_some_and(|client| client.name == "nobody") {
            return Err(Error::internal("not for you"));
        }
        let names = ["c", "a", "b", "own", "hidden"];
        let listed = names.map(|name| Listed::new(format!("notes://{name}"), name));
        // The last entry has a URI that the template does not match, and is left out.
        Ok(listed
            .into_iter()
            .chain([Listed::new("else://x", "x")])
            .collect())
    });
    let server = Server::new("notes", "1.0.0")
        .page_size(2)
        .resource_template(notes)
        .resources([
            Resource::text("notes://own", "mine", "x"),
            Resource::text("notes://hidden", "mine", "x").visible_to(|_| false),
            Resource::text("docs://a", "doc", "x"),
        ]);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let listed = session.resources().all().await.unwrap();
        let listed: Vec<_> = listed.iter().map(|it| (&*it.uri, &*it.name)).collect();
        let expected = [
            ("docs://a", "doc"),
            ("notes://a", "a"),
            ("notes://b", "b"),
            ("notes://c", "c"),
            ("notes://own", "mine"),
        ];
        assert_eq!(listed, expected, "{revision}");
        let client = Client::new("nobody", "1.0.0");
        let session = testing::connect(&server).client(&client).revision(revision);
        let error = session.await.unwrap().resources().all().await.unwrap_err();
        assert!(error.to_string().contains("not for you"), "{error}");
    }
}
