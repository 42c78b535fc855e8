//! Updates of resources: recipients and rate of the notifications.

use crate::server::subscriptions::*;

#[tokio::test(start_paused = true)]
async fn only_watchers_of_a_resource_are_notified() {
    let server = server();
    let mut peers = Vec::new();
    for revision in Revision::ALL {
        let mut watcher = open(&server, revision).await;
        watch(&mut watcher, revision, 1, "file:///a").await;
        let mut other = open(&server, revision).await;
        watch(&mut other, revision, 1, "file:///b").await;
        let idle = open(&server, revision).await;
        peers.push((revision, watcher, other, idle));
    }
    server.resource_updated("file:///a");
    server.resource_updated("file:///a/part");
    server.resource_updated("file:///c");
    settle().await;
    for (revision, watcher, other, idle) in &mut peers {
        assert_eq!(
            updates(watcher, *revision).await,
            ["file:///a"],
            "{revision}"
        );
        assert_eq!(updates(other, *revision).await, [""; 0], "{revision}");
        assert_eq!(updates(idle, *revision).await, [""; 0], "{revision}");
        leave(watcher, *revision, 1, "file:///a").await;
    }
    server.resource_updated("file:///a");
    settle().await;
    for (revision, watcher, ..) in &mut peers {
        assert_eq!(updates(watcher, *revision).await, [""; 0], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn updates_have_the_form_of_the_revision() {
    let server = server();
    let mut legacy = open(&server, Revision::V2025_06_18).await;
    let answer = watch(&mut legacy, Revision::V2025_06_18, 1, "file:///a").await;
    assert_eq!(answer["result"], json!({}));
    let mut modern = open(&server, Revision::LATEST).await;
    let acknowledged = watch(&mut modern, Revision::LATEST, 7, "file:///a").await;
    let filter = json!({"resourceSubscriptions": ["file:///a"]});
    assert_eq!(acknowledged["params"]["notifications"], filter);

    server.resource_updated(String::from("file:///a"));
    let told = legacy.receive().await.unwrap();
    assert_eq!(
        told,
        json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "file:///a"}})
    );
    let told = modern.receive().await.unwrap();
    let params =
        json!({"uri": "file:///a", "_meta": {"io.modelcontextprotocol/subscriptionId": 7}});
    assert_eq!(
        told,
        json!({"jsonrpc": "2.0", "method": UPDATED, "params": params})
    );
}

#[tokio::test(start_paused = true)]
async fn updates_within_ten_milliseconds_are_coalesced_per_resource() {
    let server = server();
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let mut peer = open(&server, revision).await;
        for id in 1..=3 {
            watch(&mut peer, revision, id, &format!("file:///{id}")).await;
        }
        let start = Instant::now();
        for _ in 0..50 {
            server.resource_updated("file:///2");
            server.resource_updated("file:///1");
        }
        peer.receive().await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(10));
        settle().await;
        assert_eq!(updates(&mut peer, revision).await.len(), 1);
        server.resource_updated("file:///2");
        settle().await;
        assert_eq!(updates(&mut peer, revision).await, ["file:///2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn client_sessions_watch_as_their_revision_requires() {
    let server = server();
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        assert!(
            session
                .server_capabilities()
                .resources
                .as_ref()
                .unwrap()
                .subscribe
        );
        if revision.is_modern() {
            let filter = SubscriptionFilter::default().with_resource_subscription("file:///a");
            let mut subscription = session.listen(filter.clone()).await.unwrap();
            assert_eq!(subscription.filter(), &filter);
            server.resource_updated("file:///a");
            assert!(subscription.next().await.is_some());
        } else {
            session.subscribe("file:///a").await.unwrap();
            session.unsubscribe("file:///a").await.unwrap();
            session.unsubscribe("file:///a").await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watched_resources_are_bounded_per_connection() {
    let limits = Limits::default()
        .max_watched_uris(4)
        .max_watched_uri_bytes(100);
    let server = server().limits(limits);
    let mut peer = open(&server, Revision::LATEST_LEGACY).await;
    let (old, new) = (Revision::LATEST_LEGACY, Revision::LATEST);
    assert!(watch(&mut peer, old, 1, "file:///1").await["result"].is_object());
    assert!(watch(&mut peer, old, 2, "file:///2").await["result"].is_object());
    assert!(watch(&mut peer, new, 3, "file:///3").await["params"].is_object());
    assert!(watch(&mut peer, new, 4, "file:///4").await["params"].is_object());
    for revision in [old, new] {
        let refused = watch(&mut peer, revision, 5, "file:///5").await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("the limit is 4 URIs with 100 bytes"),
            "{message}"
        );
    }
    // A second subscription to the same resource takes no more room, and the end of a subscription frees its room.
    assert!(watch(&mut peer, old, 6, "file:///1").await["result"].is_object());
    leave(&mut peer, new, 4, "").await;
    leave(&mut peer, old, 1, "file:///1").await;
    settle().await;
    let long = format!("file:///{}", "x".repeat(80));
    assert!(watch(&mut peer, new, 7, &long).await["error"].is_object());
    assert!(watch(&mut peer, old, 8, &long).await["error"].is_object());
    assert!(watch(&mut peer, new, 9, "file:///9").await["params"].is_object());
    assert!(watch(&mut peer, old, 10, "file:///10").await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn stalled_client_uses_bounded_memory() {
    const UPDATES: usize = 2000;
    let limits = Limits::default().max_unsent_bytes(1024);
    let server = server().limits(limits);
    let revision = Revision::LATEST_LEGACY;
    let mut slow = open(&server, revision).await;
    let mut quick = open(&server, revision).await;
    watch(&mut slow, revision, 1, "file:///a").await;
    watch(&mut quick, revision, 1, "file:///a").await;
    for _ in 0..UPDATES {
        server.resource_updated("file:///a");
        assert_eq!(quick.receive().await.unwrap()["method"], UPDATED);
    }
    let told = updates(&mut slow, revision).await.len();
    assert!((1..UPDATES / 2).contains(&told), "{told}");
}

/// The number of unsent bytes of the first session.
fn unsent(server: &Server) -> usize {
    let shown = format!("{:?}", server.sessions().next().unwrap());
    let (_, unsent) = shown.split_once("unsent: ").unwrap();
    unsent.split(',').next().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn many_updates_at_once_wait_for_the_reader() {
    const RESOURCES: i64 = 2000;
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let limits = Limits::default().max_unsent_bytes(1024);
        let server = server().limits(limits);
        let mut peer = open(&server, revision).await;
        let uris: Vec<_> = (0..RESOURCES).map(|it| format!("file:///{it}")).collect();
        if revision.is_modern() {
            let filter = json!({"notifications": {"resourceSubscriptions": uris}});
            let listen = modern(1, "subscriptions/listen", filter);
            peer.ask(listen).await.unwrap();
        } else {
            for (id, uri) in (1..).zip(&uris) {
                watch(&mut peer, revision, id, uri).await;
            }
        }
        uris.iter().for_each(|uri| server.resource_updated(uri));
        settle().await;
        assert!(unsent(&server) < 4096, "{}", unsent(&server));
        let mut told = Vec::new();
        for _ in &uris {
            let update = peer.receive().await.unwrap();
            told.push(update["params"]["uri"].as_str().unwrap().to_owned());
        }
        told.sort();
        let mut expected = uris;
        expected.sort();
        assert_eq!(told, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_while_many_are_notified() {
    const SUBSCRIPTIONS: i64 = 1000;
    let server = server();
    let mut peer = open(&server, Revision::LATEST).await;
    for id in 0..SUBSCRIPTIONS {
        watch(&mut peer, Revision::LATEST, id, "file:///a").await;
    }
    server.resource_updated("file:///a");
    let (mut before, mut most) = (0, 0);
    tokio::time::sleep(Duration::from_millis(10)).await;
    for _ in 0..100 {
        let now = unsent(&server);
        most = most.max(now.saturating_sub(before));
        before = now;
        tokio::task::yield_now().await;
    }
    // All notifications together have 140 KB.
    assert!((1..40_000).contains(&most), "{most}");
}

#[tokio::test(start_paused = true)]
async fn watching_requires_declared_subscriptions() {
    let server = Server::new("files", "1.0.0").resource(Resource::text("file:///a", "a", ""));
    for revision in LEGACY {
        let mut peer = open(&server, revision).await;
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let answer = peer
                .ask(request(1, method, json!({"uri": "file:///a"})))
                .await
                .unwrap();
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
        }
    }
    let mut peer = open(&server, Revision::LATEST).await;
    let acknowledged = watch(&mut peer, Revision::LATEST, 1, "file:///a").await;
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    server.resource_updated("file:///a");
    settle().await;
    assert_eq!(updates(&mut peer, Revision::LATEST).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn hidden_resource_is_watchable_but_never_notified() {
    let server = restricted(server());
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        let unheard = watch(&mut peer, revision, 1, "unheard://of").await;
        for uri in ["file:///secret", "secret://x", "secret://open1"] {
            let mut peer = open(&server, revision).await;
            let answer = watch(&mut peer, revision, 1, uri).await;
            let unheard = unheard.to_string().replace("unheard://of", uri);
            assert_eq!(answer.to_string(), unheard);
            server.resource_updated(uri);
            settle().await;
            let told = if uri == "secret://open1" {
                vec![uri]
            } else {
                vec![]
            };
            assert_eq!(updates(&mut peer, revision).await, told);
        }
        server.resource_updated("unheard://of");
        settle().await;
        assert_eq!(updates(&mut peer, revision).await, ["unheard://of"]);
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_are_not_called_for_hidden_resources() {
    let asked = Calls::default();
    let asks = Arc::clone(&asked);
    let server = restricted(server()).on_subscribe(
        move |_cx, uri| {
            asks.lock().unwrap().push(uri);
            async { Ok(()) }
        },
        |_session, _uri| async {},
    );
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        let unheard = watch(&mut peer, revision, 1, "unheard://of").await;
        for uri in ["file:///secret", "secret://x"] {
            let mut peer = open(&server, revision).await;
            let answer = watch(&mut peer, revision, 1, uri).await;
            let unheard = unheard.to_string().replace("unheard://of", uri);
            assert_eq!(answer.to_string(), unheard);
        }
        assert!(asked.lock().unwrap().is_empty(), "{revision}");
        for (id, uri) in [(2, "file:///a"), (3, "secret://open1")] {
            watch(&mut peer, revision, id, uri).await;
            assert_eq!(asked.lock().unwrap().pop().unwrap(), uri, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resource_hidden_later_is_no_longer_notified() {
    let server = server();
    let mut peers = Vec::new();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        watch(&mut peer, revision, 1, "file:///a").await;
        peers.push((revision, peer));
    }
    for (visible, told) in [(false, vec![]), (true, vec!["file:///a"])] {
        let resource = Resource::text("file:///a", "a", "").visible_to(move |_cx| visible);
        server.add_resources([resource]).unwrap();
        server.resource_updated("file:///a");
        settle().await;
        for (revision, peer) in &mut peers {
            assert_eq!(updates(peer, *revision).await, told, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn excess_resources_are_refused_before_individual_checks() {
    let limits = Limits::default().max_watched_uris(4);
    let looked = Arc::new(Mutex::new(0));
    let looks = Arc::clone(&looked);
    let template = ResourceTemplate::dynamic("secret://{x}", "x", |_cx, _variables| async { "" });
    let template = template.visible_to(move |_cx| {
        *looks.lock().unwrap() += 1;
        false
    });
    let server = server()
        .resource_template(template)
        .on_subscribe(|_cx, _uri| async { Ok(()) }, |_session, _uri| async {})
        .limits(limits);
    for (uris, refused) in [(4, false), (5, true)] {
        let uris: Vec<_> = (0..uris).map(|it| format!("secret://{it}")).collect();
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        let mut peer = open(&server, Revision::LATEST).await;
        let answer = peer.ask(modern(1, "subscriptions/listen", filter)).await;
        assert_eq!(answer.unwrap()["error"].is_object(), refused);
        assert_eq!(*looked.lock().unwrap() == 0, refused);
        *looked.lock().unwrap() = 0;
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_metadata_is_stored_and_counted() {
    let limits = Limits::default().max_watched_uri_bytes(1 << 10);
    let mut peer = open(&server().limits(limits), Revision::LATEST).await;
    let filter = || json!({"notifications": {"toolsListChanged": true}});
    for (id, length, is_refused) in [(1, 4 << 10, false), (2, 6 << 10, true)] {
        let mut listen = modern(id, "subscriptions/listen", filter());
        listen["params"]["_meta"]["com.example/x"] = json!("x".repeat(length));
        let answer = peer.ask(listen).await.unwrap();
        assert_eq!(answer["error"].is_object(), is_refused, "{answer}");
    }
}

#[tokio::test]
async fn resources_may_be_updated_outside_a_runtime() {
    let server = server();
    let mut peer = open(&server, Revision::LATEST_LEGACY).await;
    watch(&mut peer, Revision::LATEST_LEGACY, 1, "file:///a").await;
    let other = server.clone();
    std::thread::spawn(move || other.resource_updated("file:///a"))
        .join()
        .unwrap();
    assert_eq!(peer.receive().await.unwrap()["method"], UPDATED);
}
