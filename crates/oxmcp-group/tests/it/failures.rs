//! Servers that are down, hang, end and come back: the others do not notice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    CancellationToken, Error, Result, Revision, Server, Tool,
    middleware::{Next, Request, Response, from_fn},
};
use oxmcp_group::{ClientGroup, ConfigReader, GroupEvent, ServerState};

use crate::support::{
    Mode, Remote, client, clients, connect, ready, say, server, tool, tool_names, wait_for,
};

#[tokio::test(start_paused = true)]
async fn failing_servers_do_not_hurt_others() {
    for client in clients() {
        let good = Remote::new(server("good", &["x"]));
        let refusing = Remote::new(server("refusing", &["x"]));
        let hanging = Remote::new(server("hanging", &["x"]));
        refusing.set(Mode::Refuse);
        hanging.set(Mode::Hang);
        let servers = [
            ("hanging", &hanging),
            ("refusing", &refusing),
            ("good", &good),
        ];
        let group = connect(client, &servers).await;
        assert_eq!(tool_names(&group), ["good_x"]);
        assert_eq!(say(&group, "good_x").await.unwrap(), "x of good");
        let reasons: Vec<String> = group
            .servers()
            .into_iter()
            .filter_map(|it| match it.state {
                ServerState::Failed { reason } => Some(reason),
                _ => None,
            })
            .collect();
        assert!(reasons[0].contains("within 60s"), "{reasons:?}");
        assert!(reasons[1].contains("connection refused"), "{reasons:?}");
        let mut events = group.events();
        refusing.set(Mode::Up);
        wait_for(&mut events, &ready("refusing")).await;
        assert_eq!(tool_names(&group), ["refusing_x", "good_x"]);
        assert_eq!(say(&group, "refusing_x").await.unwrap(), "x of refusing");
    }
}

#[tokio::test(start_paused = true)]
async fn killed_server_is_connected_again() {
    for client in clients() {
        let mortal = Remote::new(server("mortal", &["x"]));
        let other = Remote::new(server("other", &["x"]));
        let group = connect(client, &[("mortal", &mortal), ("other", &other)]).await;
        // A session that has lived for a while is connected again at once, and calls wait for it.
        tokio::time::advance(Duration::from_secs(60)).await;
        let mut events = group.events();
        mortal.kill().await;
        wait_for(&mut events, &ready("mortal")).await;
        assert_eq!(say(&group, "mortal_x").await.unwrap(), "x of mortal");
        assert_eq!(tool_names(&group), ["mortal_x", "other_x"]);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_server_is_reported_and_its_names_stay() {
    for client in clients() {
        let mortal = Remote::new(server("a", &["x"]));
        let other = Remote::new(server("b", &["x"]));
        let group = connect(client, &[("a", &mortal), ("b", &other)]).await;
        let mut events = group.events();
        mortal.set(Mode::Refuse);
        mortal.kill().await;
        wait_for(&mut events, &GroupEvent::ToolsChanged).await;
        assert_eq!(tool_names(&group), ["b_x"]);
        let error = say(&group, "a_x").await.unwrap_err();
        assert!(error.is_closed(), "{error}");
        let error = error.to_string();
        assert!(error.contains("the server `a` is not connected"), "{error}");
        mortal.set(Mode::Up);
        group.retry("a").unwrap();
        wait_for(&mut events, &ready("a")).await;
        assert_eq!(say(&group, "a_x").await.unwrap(), "x of a");
    }
}

/// Never answers a listing of prompts, and fails to list resources.
async fn hang_or_fail(request: Request, next: Next) -> Result<Response> {
    match request.method() {
        "prompts/list" => std::future::pending().await,
        "resources/list" => Err(Error::internal("no disk")),
        _ => next.run(request).await,
    }
}

#[tokio::test(start_paused = true)]
async fn failing_list_leaves_the_others() {
    for client in clients() {
        let half = server("half", &["x"])
            .resource(oxmcp::Resource::text("x:1", "one", "1"))
            .layer(from_fn(hang_or_fail));
        let group = connect(client, &[("half", &Remote::new(half))]).await;
        assert_eq!(say(&group, "half_x").await.unwrap(), "x of half");
        let problems = &group.servers()[0].problems;
        assert!(
            problems[0].contains("could not list resources: no disk"),
            "{problems:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_list_ends_with_its_deadline() {
    for client in clients() {
        let hung = server("hung", &["x"])
            .prompt(oxmcp::Prompt::new("p", "Hangs", || async { "never" }))
            .layer(from_fn(hang_or_fail));
        let group = ClientGroup::new(client)
            .server("hung", Remote::new(hung))
            .server("good", Remote::new(server("good", &["x"])))
            .connect_timeout(Duration::from_secs(5))
            .connect()
            .await
            .unwrap();
        assert_eq!(tool_names(&group), ["good_x"]);
        match &group.servers()[0].state {
            ServerState::Failed { reason } => assert!(reason.contains("within 5s"), "{reason}"),
            state => panic!("{state:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn flood_of_changes_is_read_in_few_listings() {
    let office = server("office", &["x"]);
    let listings = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&listings);
    let count = move |request: Request, next: Next| {
        if request.method() == "tools/list" {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        next.run(request)
    };
    let remote = Remote::new(office.clone().layer(from_fn(count)));
    let group = connect(client(), &[("office", &remote)]).await;
    let mut events = group.events();
    for index in 0..200 {
        office.add_tools([tool(&format!("t{index}"), "t")]).unwrap();
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    while group.tools().len() < 201 {
        wait_for(&mut events, &GroupEvent::ToolsChanged).await;
    }
    let listings = listings.load(Ordering::Relaxed);
    assert!(
        (2..=30).contains(&listings),
        "{listings} listings in two seconds"
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_tool_blocks_no_other_server() {
    let hung = Server::new("hung", "1.0.0").tool(Tool::new("wait", "Waits", || {
        std::future::pending::<String>()
    }));
    let (hung, good) = (Remote::new(hung), Remote::new(server("good", &["x"])));
    let group = connect(client(), &[("hung", &hung), ("good", &good)]).await;
    let stop = CancellationToken::new();
    let call = group.call_tool("hung_wait", ()).cancel_with(stop.clone());
    let call = tokio::spawn(call.into_future());
    assert_eq!(say(&group, "good_x").await.unwrap(), "x of good");
    stop.cancel();
    assert!(call.await.unwrap().unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn old_and_new_servers_are_one_group() {
    let old = server("old", &["x"]).revisions([Revision::V2024_11_05]);
    let new = server("new", &["x"]).revisions([Revision::V2026_07_28]);
    let group = connect(
        client(),
        &[("old", &Remote::new(old)), ("new", &Remote::new(new))],
    )
    .await;
    let revisions: Vec<_> = group
        .servers()
        .iter()
        .map(|it| it.revision.unwrap())
        .collect();
    assert_eq!(revisions, [Revision::V2024_11_05, Revision::V2026_07_28]);
    assert_eq!(say(&group, "old_x").await.unwrap(), "x of old");
    assert_eq!(say(&group, "new_x").await.unwrap(), "x of new");
}

#[tokio::test(start_paused = true)]
async fn events_end_with_the_group() {
    let group = connect(client(), &[("a", &Remote::new(server("a", &["x"])))]).await;
    let mut events = group.events();
    group.close().await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    let last = last.unwrap();
    let is_closed = matches!(
        &last,
        GroupEvent::Server {
            state: ServerState::Closed,
            ..
        }
    );
    assert!(is_closed || last == GroupEvent::ToolsChanged, "{last:?}");
    assert!(group.events().next().await.is_none());
    assert_eq!(group.servers()[0].state, ServerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn dropped_group_ends_its_sessions() {
    let remote = Remote::new(server("a", &["x"]));
    let group = connect(client(), &[("a", &remote)]).await;
    let session = group.session("a").unwrap();
    drop(group);
    session.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn required_server_must_connect() {
    let text = "[mcp_servers.needed]\ncommand = \"no-such-program-of-oxmcp\"\nrequired = true\n";
    let config = ConfigReader::new().parse(text, "config.toml").unwrap();
    let group = ClientGroup::new(client())
        .config(&config)
        .server("good", Remote::new(server("good", &["x"])));
    let error = group.connect().await.unwrap_err().to_string();
    assert!(
        error.starts_with("the required server `needed` is not connected: "),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn mistakes_in_the_settings_are_errors() {
    let remote = Remote::new(server("a", &["x"]));
    let group = ClientGroup::new(client())
        .server("a", remote.clone())
        .server("a", remote.clone());
    let error = group.start().unwrap_err().to_string();
    assert_eq!(error, "two servers of the group are named `a`; rename one");
    let group = ClientGroup::new(client()).server("", remote.clone());
    assert_eq!(
        group.start().unwrap_err().to_string(),
        "the label of a server is empty"
    );
    let many = (0..257).fold(ClientGroup::new(client()), |group, index| {
        group.server(index.to_string(), remote.clone())
    });
    assert!(
        many.start()
            .unwrap_err()
            .to_string()
            .contains("more than 256 servers")
    );
}

#[tokio::test(start_paused = true)]
async fn settled_waits_for_first_attempts_only() {
    let flaky = Remote::new(server("flaky", &["x"]));
    let slow = Remote::new(server("slow", &["x"]));
    flaky.set(Mode::Refuse);
    slow.set(Mode::Hang);
    let group = ClientGroup::new(client())
        .server("flaky", flaky.clone())
        .server("slow", slow.clone())
        .connect_timeout(Duration::from_secs(10))
        .start()
        .unwrap();
    tokio::task::yield_now().await;
    // The second attempt begins after a second, and ends after the first of the other server.
    flaky.set(Mode::Hang);
    let begun = tokio::time::Instant::now();
    group.settled().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    let state = &group.servers()[0].state;
    assert_eq!(*state, ServerState::Connecting, "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn max_total_includes_the_wait_for_a_connection() {
    let mortal = Remote::new(server("a", &["x"]));
    let group = connect(client(), &[("a", &mortal)]).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut events = group.events();
    mortal.set(Mode::Hang);
    mortal.kill().await;
    let connecting = GroupEvent::Server {
        server: "a".into(),
        state: ServerState::Connecting,
    };
    wait_for(&mut events, &connecting).await;
    for limit in [true, false] {
        let (call, begun) = (group.call_tool("a_x", ()), tokio::time::Instant::now());
        let call = match limit {
            true => call.max_total(Duration::from_secs(3)),
            false => call.timeout(Duration::from_secs(3)),
        };
        let error = call.await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert!(
            error
                .to_string()
                .contains("`a` was not connected again within 3s"),
            "{error}"
        );
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_list_is_read_again() {
    let failures = Arc::new(AtomicUsize::new(2));
    let left = Arc::clone(&failures);
    let fail = move |request: Request, next: Next| {
        let left = Arc::clone(&left);
        async move {
            let take = |it: usize| it.checked_sub(1);
            let is_failing = request.method() == "tools/list"
                && left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok();
            match is_failing {
                true => Err(Error::internal("no disk")),
                false => next.run(request).await,
            }
        }
    };
    let half = server("half", &["x"]).layer(from_fn(fail));
    let group = connect(client(), &[("half", &Remote::new(half))]).await;
    assert!(tool_names(&group).is_empty());
    let mut events = group.events();
    wait_for(&mut events, &GroupEvent::ToolsChanged).await;
    assert_eq!(tool_names(&group), ["half_x"]);
    assert!(group.servers()[0].problems.is_empty());
}
