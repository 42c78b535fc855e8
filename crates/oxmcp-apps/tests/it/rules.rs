//! The check of a server's apps through a session.

use oxmcp::{
    Client, ErrorCode, ErrorObject, Resource, Revision, Server, Tool,
    protocol::{CallToolResult, ResourceContents},
    testing,
};
use oxmcp_apps::{MIME_TYPE, rules};
use serde_json::{Value, json};

use crate::{HTML, clock, session};

fn tool(name: &str, ui: Value) -> Tool {
    Tool::new(name, "Do something", || async { CallToolResult::default() }).meta("ui", ui)
}

/// A server that was built without this crate, and breaks each rule that a listing or a document shows.
fn broken() -> Server {
    let html =
        |uri: &str, text: &'static str| Resource::text(uri, "page", text).mime_type(MIME_TYPE);
    let bad_meta = Resource::new(
        "ui://bad/metadata",
        "page",
        |_: oxmcp::RequestContext| async {
            let mut contents = ResourceContents::from(HTML).with_mime_type(MIME_TYPE);
            contents.meta.insert(
                "ui",
                json!({"csp": {"connectDomains": ["a.example"]}, "domain": 7}),
            );
            contents
        },
    );
    Server::new("broken", "1.0.0")
        .tool(tool("a", json!({"resourceUri": "https://a.example"})))
        .tool(tool("b", json!({"resourceUri": "ui://nowhere"})))
        .tool(tool("c", json!({})).meta("ui/resourceUri", "ui://fine"))
        .tool(tool("d", json!("ui://fine")))
        .tool(tool("e", json!({"visibility": []})))
        .resource(html("ui://fine", HTML))
        .resource(html("ui://bad/empty", ""))
        .resource(html("ui://bad/html", "<p>hi"))
        .resource(Resource::text("ui://bad/type", "page", HTML))
        .resource(bad_meta.mime_type(MIME_TYPE))
}

#[tokio::test]
async fn check_finds_each_broken_rule() {
    for revision in [
        Revision::V2025_06_18,
        Revision::LATEST_LEGACY,
        Revision::LATEST,
    ] {
        let session = session(&broken(), revision).await;
        let findings = rules::check(&session).await.unwrap();
        let lines: Vec<_> = findings
            .iter()
            .map(|it| format!("{} {}", it.rule, it.place))
            .collect();
        let mut sorted: Vec<_> = lines.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        assert_eq!(
            sorted,
            [
                "APP-001 tool \"a\"",
                "APP-002 resource \"ui://bad/type\"",
                "APP-002 resource \"ui://bad/type\"",
                "APP-003 resource \"ui://bad/empty\"",
                "APP-004 resource \"ui://bad/html\"",
                "APP-005 tool \"a\"",
                "APP-005 tool \"b\"",
                "APP-006 tool \"c\"",
                "APP-007 tool \"d\"",
                "APP-008 resource \"ui://bad/metadata\"",
                "APP-009 resource \"ui://bad/metadata\"",
                "APP-011 tool \"e\"",
            ],
            "{revision}"
        );
        // The results of tools are checked by those who call them.
        let result = session.call_tool("a", ()).await.unwrap();
        assert_eq!(
            rules::check_result("a", &result).unwrap().rule.id(),
            "APP-010"
        );
    }
}

#[tokio::test]
async fn unreadable_contents_are_a_finding() {
    let answers = [
        (json!({"contents": []}), "APP-003"),
        (
            json!({"contents": [{"uri": "ui://a", "mimeType": MIME_TYPE}]}),
            "APP-003",
        ),
        (
            json!({"contents": [{"uri": "ui://a", "mimeType": MIME_TYPE, "text": HTML, "blob": "AA=="}]}),
            "APP-003",
        ),
    ];
    for (answer, expected) in answers {
        let broken = check_against(Ok(answer.clone())).await;
        assert_eq!(broken, [expected], "{answer}");
    }
    let missing = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "no such resource");
    assert_eq!(check_against(Err(missing)).await, ["APP-005"]);
}

/// The rules that a server breaks whose app is read with this answer.
async fn check_against(answer: Result<Value, ErrorObject>) -> Vec<&'static str> {
    let (mut peer, transport) = testing::ScriptedPeer::new().await;
    let client = Client::new("host", "1.0.0").revisions([Revision::LATEST_LEGACY]);
    let serve = async move {
        while let Ok(request) = peer.receive().await {
            let result = match request["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": Revision::LATEST_LEGACY, "capabilities": {"resources": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                }),
                Some("resources/list") => {
                    json!({"resources": [{"uri": "ui://a", "name": "a", "mimeType": MIME_TYPE}]})
                }
                _ => answer.clone().unwrap_or_default(),
            };
            let is_read = request["method"] == "resources/read";
            let mut response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            if let (Err(error), true) = (&answer, is_read) {
                response = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            }
            if request.get("id").is_some() {
                peer.send(response).await.unwrap();
            }
        }
    };
    let check = async {
        let session = client.connect(transport).await.unwrap();
        let findings = rules::check(&session).await.unwrap();
        session.close().await.unwrap();
        findings.iter().map(|it| it.rule.id()).collect()
    };
    tokio::join!(serve, check).1
}

#[tokio::test]
async fn check_ends_with_the_session() {
    let session = session(&clock(), Revision::LATEST_LEGACY).await;
    session.close().await.unwrap();
    assert!(rules::check(&session).await.is_err());
}
