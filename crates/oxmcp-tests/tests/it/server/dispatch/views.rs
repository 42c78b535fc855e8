//! Views: the listing, the call and the caching of features that only some callers see agree.

use std::time::Duration;

use oxmcp::{
    Error, Resource, ResourceTemplate, Revision, Server,
    protocol::{CacheHint, Resource as ResourceDefinition},
};
use serde_json::{Value, json};

use crate::support::{add, answer, idle};

/// A server with a tool for scripted peers, a tool that is hidden from them, and a tool for every caller.
fn server() -> Server {
    Server::new("views", "1.0.0")
        .tool(add())
        .tool(idle("mine").visible_to(|cx| cx.peer_info().is_some()))
        .tool(idle("others").visible_to(|cx| cx.peer_info().is_none()))
        .cache_tools(CacheHint::public(Duration::from_secs(60)))
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn hidden_feature_does_not_exist_for_its_caller() {
    for revision in Revision::ALL {
        let list = answer(&server(), revision, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["add", "mine"], "{revision}");
        let mine = answer(&server(), revision, "tools/call", json!({"name": "mine"})).await;
        assert!(mine["result"].is_object(), "{mine}");
        let others = answer(&server(), revision, "tools/call", json!({"name": "others"})).await;
        assert_eq!(
            others["error"]["message"], "Unknown tool: others (available: add, mine)",
            "{revision}"
        );
    }
}

#[tokio::test]
async fn page_contains_only_entries_visible_to_the_caller() {
    let server = server().page_size(1);
    let first = answer(&server, Revision::LATEST, "tools/list", json!({})).await;
    assert_eq!(names(&first), ["add"]);
    let next = json!({"cursor": first["result"]["nextCursor"]});
    let second = answer(&server, Revision::LATEST, "tools/list", next).await;
    assert_eq!(names(&second), ["mine"]);
    // Hidden entries do not cause another page.
    assert!(second["result"].get("nextCursor").is_none(), "{second}");
}

#[tokio::test]
async fn caller_dependent_list_is_never_shared() {
    let list = answer(&server(), Revision::LATEST, "tools/list", json!({})).await;
    assert_eq!(list["result"]["ttlMs"], 60_000);
    assert_eq!(list["result"]["cacheScope"], "private");

    let same_for_all = Server::new("views", "1.0.0")
        .tool(add())
        .cache_tools(CacheHint::public(Duration::from_secs(60)))
        .cache_discovery(CacheHint::private(Duration::from_secs(1)));
    let list = answer(&same_for_all, Revision::LATEST, "tools/list", json!({})).await;
    assert_eq!(list["result"]["cacheScope"], "public");
    let discovered = answer(
        &same_for_all,
        Revision::LATEST,
        "server/discover",
        json!({}),
    )
    .await;
    assert_eq!(discovered["result"]["ttlMs"], 1000);
    assert_eq!(discovered["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn list_with_hidden_templates_is_never_shared() {
    for is_visible in [true, false] {
        let files =
            ResourceTemplate::dynamic("file:///{name}", "files", |_, _| async { Some("text") });
        let files = files
            .list(|_| async { Ok::<_, Error>(vec![ResourceDefinition::new("file:///a", "a")]) });
        let server = Server::new("views", "1.0.0")
            .resource(Resource::text("app://one", "one", "1"))
            .resource_template(files.visible_to(move |_| is_visible))
            .cache_resources(CacheHint::public(Duration::from_secs(60)));
        let list = answer(&server, Revision::LATEST, "resources/list", json!({})).await;
        let resources = list["result"]["resources"].as_array().unwrap();
        assert_eq!(resources.len(), 1 + usize::from(is_visible), "{list}");
        assert_eq!(list["result"]["cacheScope"], "private");
    }
}

#[tokio::test]
async fn results_are_stale_and_private_by_default() {
    let plain = Server::new("views", "1.0.0").tool(add());
    for method in ["tools/list", "server/discover"] {
        let result = answer(&plain, Revision::LATEST, method, json!({})).await;
        assert_eq!(result["result"]["ttlMs"], 0, "{method}");
        assert_eq!(result["result"]["cacheScope"], "private", "{method}");
    }
    let legacy = answer(&plain, Revision::LATEST_LEGACY, "tools/list", json!({})).await;
    assert!(legacy["result"].get("ttlMs").is_none(), "{legacy}");
}
