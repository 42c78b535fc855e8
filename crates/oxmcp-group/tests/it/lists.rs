//! Merged lists: names, rules, changes, search.

use std::time::Duration;

use oxmcp::{Server, protocol::ToolAnnotations};
use oxmcp_group::{
    ClientGroup, GroupEvent, ModelApi, ToolRule,
    router::{Naming, Prefix},
};
use serde_json::json;

use crate::support::{Remote, client, clients, connect, say, server, tool, tool_names, wait_for};

#[tokio::test(start_paused = true)]
async fn tools_are_merged_and_routed() {
    for client in clients() {
        let git = Remote::new(server("git", &["log", "read"]));
        let files = Remote::new(server("files", &["read", "write"]));
        let group = connect(client, &[("git", &git), ("files", &files)]).await;
        let expected = ["git_log", "git_read", "files_read", "files_write"];
        assert_eq!(tool_names(&group), expected);
        assert_eq!(say(&group, "git_read").await.unwrap(), "read of git");
        assert_eq!(say(&group, "files_read").await.unwrap(), "read of files");
        let error = say(&group, "read").await.unwrap_err().to_string();
        assert!(
            error.contains("no server of the group has the tool `read`"),
            "{error}"
        );
        let origin = group.tool_origin("files_write").unwrap();
        assert_eq!(
            (origin.server.as_str(), origin.name.as_str()),
            ("files", "write")
        );
        group.close().await;
        let error = say(&group, "git_read").await.unwrap_err().to_string();
        assert!(error.contains("the group is closed"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn clashing_names_reach_their_own_servers() {
    let first = Remote::new(server("first", &["c"]));
    let second = Remote::new(server("second", &["b_c"]));
    let group = connect(client(), &[("a_b", &first), ("a", &second)]).await;
    let servers = group.servers();
    let (one, two) = (&servers[0].tools["c"], &servers[1].tools["b_c"]);
    assert_ne!(one, two);
    assert_eq!(say(&group, one).await.unwrap(), "c of first");
    assert_eq!(say(&group, two).await.unwrap(), "b_c of second");
}

#[tokio::test(start_paused = true)]
async fn prefix_can_be_limited_to_clashes() {
    let git = Remote::new(server("git", &["log", "read"]));
    let files = Remote::new(server("files", &["read"]));
    let group = ClientGroup::new(client())
        .server("git", git)
        .server("files", files)
        .naming(Naming::default().prefix(Prefix::OnClash));
    let group = group.connect().await.unwrap();
    assert_eq!(tool_names(&group), ["log", "git_read", "files_read"]);
    assert_eq!(say(&group, "log").await.unwrap(), "log of git");
}

#[tokio::test(start_paused = true)]
async fn changed_lists_are_noticed() {
    for client in clients() {
        let office = server("office", &["one"]);
        let (remote, other) = (
            Remote::new(office.clone()),
            Remote::new(server("b", &["x"])),
        );
        let group = connect(client, &[("office", &remote), ("b", &other)]).await;
        let mut events = group.events();
        office.add_tools([tool("two", "2")]).unwrap();
        wait_for(&mut events, &GroupEvent::ToolsChanged).await;
        assert_eq!(tool_names(&group), ["office_one", "office_two", "b_x"]);
        office.remove_tools(["one"]);
        wait_for(&mut events, &GroupEvent::ToolsChanged).await;
        assert_eq!(tool_names(&group), ["office_two", "b_x"]);
        assert!(say(&group, "office_one").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn denied_tools_cannot_be_called() {
    let hints = ToolAnnotations::default;
    let office = Server::new("office", "1.0.0").tools([
        tool("read", "r").annotations(hints().with_read_only_hint(true)),
        tool("wipe", "w"),
        tool("add", "a").annotations(hints().with_destructive_hint(false)),
    ]);
    let group = ClientGroup::new(client())
        .server("office", Remote::new(office))
        .deny(ToolRule::any().destructive())
        .connect()
        .await
        .unwrap();
    assert_eq!(tool_names(&group), ["office_add", "office_read"]);
    assert!(say(&group, "office_wipe").await.is_err());
    assert_eq!(group.servers()[0].denied, 1);
}

#[tokio::test(start_paused = true)]
async fn huge_list_is_cut_and_reported() {
    let names: Vec<String> = (0..2100).map(|it| format!("t{it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let huge = Remote::new(server("huge", &names));
    let small = Remote::new(server("small", &["t"]));
    let group = connect(client(), &[("huge", &huge), ("small", &small)]).await;
    assert_eq!(group.tools().len(), 2001);
    let problems = &group.servers()[0].problems;
    assert!(
        problems[0].starts_with("100 tools were left out"),
        "{problems:?}"
    );
    assert_eq!(say(&group, "small_t").await.unwrap(), "t of small");
}

#[tokio::test(start_paused = true)]
async fn search_finds_tools_of_all_servers() {
    let git = Remote::new(server("git", &["list_commits", "create_branch"]));
    let mail = Remote::new(server("mail", &["send_mail", "list_folders"]));
    let group = connect(client(), &[("git", &git), ("mail", &mail)]).await;
    let found = group.search_tools("send a mail", 1);
    assert_eq!(found[0].name, "mail_send_mail");
    assert_eq!(group.search_tools("list", 9).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn model_searches_and_calls_with_two_tools() {
    let git = Remote::new(server("git", &["list_commits", "create_branch"]));
    let mail = Remote::new(server("mail", &["send_mail", "list_folders"]));
    let group = connect(client(), &[("git", &git), ("mail", &mail)]).await;
    let search = group.tool_search().max_results(1);
    let [find, call] = search.tools();
    assert_eq!(
        (find.name.as_str(), call.name.as_str()),
        ("search_tools", "call_tool")
    );
    let hints = call.annotations.unwrap();
    assert_eq!(
        (hints.read_only_hint, hints.destructive_hint),
        (Some(false), Some(true))
    );
    let found = search.call("search_tools", json!({"query": "send a mail"}));
    let found = found.await.unwrap().to_text();
    assert!(
        found.contains("mail_send_mail") && !found.contains("git_"),
        "{found}"
    );
    let call = json!({"name": "mail_send_mail", "arguments": {}});
    let called = search.call("call_tool", call).await.unwrap();
    assert_eq!(called.to_text(), "send_mail of mail");
    let direct = search.call("git_list_commits", json!({})).await.unwrap();
    assert_eq!(direct.to_text(), "list_commits of git");
    for (name, wrong, expected) in [
        ("search_tools", json!({}), "query: expected a string"),
        ("call_tool", json!({"name": 7}), "name: expected a string"),
        (
            "call_tool",
            json!({"name": "a", "arguments": 7}),
            "arguments: expected an object",
        ),
    ] {
        let refused = search.call(name, wrong).await.unwrap();
        assert!(
            refused.is_error && refused.to_text() == expected,
            "{refused:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn calls_have_options() {
    let slow = Server::new("slow", "1.0.0").tool(oxmcp::Tool::new(
        "wait",
        "Waits",
        |cx: oxmcp::RequestContext| async move {
            cx.progress(1).await;
            std::future::pending::<String>().await
        },
    ));
    let group = connect(client(), &[("slow", &Remote::new(slow))]).await;
    let (sender, mut progress) = tokio::sync::mpsc::channel(8);
    let call = group.call_tool("slow_wait", ()).on_progress(move |it| {
        let _ = sender.try_send(it.progress);
    });
    let error = call.timeout(Duration::from_secs(1)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(progress.recv().await.is_some());
    let outcome = Err(error);
    let block = ModelApi::AnthropicMessages.result("1", &outcome);
    assert_eq!(block["is_error"], json!(true));
}
