//! Headers that mirror parts of the request.

use oxmcp::{
    CacheMode, Client, ClientSession, Error, Extension, Result,
    http::{Endpoint, HttpBody, HttpClient},
    protocol::{Method, PaginatedParams, Payload},
};
use serde_json::{Value, json};

use crate::http::client::peer::{
    Asked, Peer, Scripted, URL, both, discover, discovered, modern, text,
};

fn tool(name: &str, kind: &str, header: &str) -> Value {
    let properties = json!({"region": {"type": kind, "x-mcp-header": header}});
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn tools(tools: &[Value]) -> Value {
    json!({"resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "private"})
}

/// Lists the tools of a server whose tools are `listed`.
async fn list(peer: &mut Peer, session: &ClientSession, listed: &[Value]) -> Vec<String> {
    let listing = session.tools().cache(CacheMode::Refresh).all();
    let (all, ()) = both(listing, async {
        peer.post("tools/list").await.result(tools(listed));
    })
    .await;
    all.unwrap().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_mirrors_its_method_and_name() {
    let (mut peer, session) = discover().await;
    let reading = async { session.read_resource("file:///a%20b.txt").await };
    let (_, ()) = both(reading, async {
        let asked = peer.post("resources/read").await;
        assert_eq!(asked.header("mcp-method"), Some("resources/read"));
        assert_eq!(asked.header("mcp-name"), Some("file:///a%20b.txt"));
        asked.result(json!({"resultType": "complete", "contents": []}));
    })
    .await;
    let getting = async { session.get_prompt("prüf", [("a", "b")]).await };
    let (_, ()) = both(getting, async {
        let asked = peer.post("prompts/get").await;
        assert_eq!(asked.header("mcp-name"), Some("=?base64?cHLDvGY=?="));
        asked.result(json!({"resultType": "complete", "messages": []}));
    })
    .await;
    let listing = async { session.list_tools(PaginatedParams::default()).await };
    let (_, ()) = both(listing, async {
        let asked = peer.post("tools/list").await;
        assert_eq!(asked.header("mcp-method"), Some("tools/list"));
        assert_eq!(asked.header("mcp-name"), None);
        asked.result(tools(&[]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn arguments_are_mirrored_as_the_tool_declares() {
    let (mut peer, session) = discover().await;
    let listed = [
        tool("text", "string", "Region"),
        tool("whole", "integer", "Method"),
        tool("truth", "boolean", "Truth"),
        tool("wrong", "number", "Number"),
    ];
    let names = list(&mut peer, &session, &listed).await;
    assert_eq!(names, ["text", "whole", "truth"]);
    for (name, header, value, sent) in [
        (
            "text",
            "mcp-param-region",
            json!("us-west1"),
            Some("us-west1"),
        ),
        ("text", "mcp-param-region", json!(""), Some("")),
        ("text", "mcp-param-region", json!("a b"), Some("a b")),
        (
            "text",
            "mcp-param-region",
            json!("a\tb"),
            Some("=?base64?YQli?="),
        ),
        (
            "text",
            "mcp-param-region",
            json!("a\r\nx: y"),
            Some("=?base64?YQ0KeDogeQ==?="),
        ),
        ("text", "mcp-param-region", json!(null), None),
        ("whole", "mcp-param-method", json!(-7), Some("-7")),
        ("truth", "mcp-param-truth", json!(false), Some("false")),
    ] {
        let call = async { session.call_tool(name, json!({"region": value})).await };
        let (answer, ()) = both(call, async {
            let asked = peer.post("tools/call").await;
            assert_eq!(asked.header("mcp-name"), Some(name));
            assert_eq!(asked.header(header), sent, "{asked:?}");
            assert_eq!(asked.header("mcp-method"), Some("tools/call"));
            asked.result(text("3"));
        })
        .await;
        answer.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn unmirrorable_argument_fails_only_its_call() {
    let (mut peer, session) = discover().await;
    list(&mut peer, &session, &[tool("whole", "integer", "Region")]).await;
    let call = session.call_tool("whole", json!({"region": 1_u64 << 60}));
    let error = call.await.unwrap_err();
    assert!(error.message().contains("region"), "{error}");
    assert!(peer.is_quiet());
    let call = async { session.call_tool("whole", json!({"region": 1})).await };
    let (answer, ()) = both(call, async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    answer.unwrap();
}

fn mismatch(asked: Asked) {
    let id = asked.body()["id"].clone();
    let error = json!({"code": -32020, "message": "Header mismatch"});
    asked.json(400, json!({"jsonrpc": "2.0", "id": id, "error": error}));
}

#[tokio::test(start_paused = true)]
async fn call_refused_for_headers_is_retried_with_them() {
    let (mut peer, session) = discover().await;
    let call = async { session.call_tool("text", json!({"region": "r"})).await };
    let (answer, ()) = both(call, async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-param-region"), None);
        let id = asked.body()["id"].clone();
        mismatch(asked);
        let listed = tools(&[tool("text", "string", "Region")]);
        peer.post("tools/list").await.result(listed);
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-param-region"), Some("r"));
        assert_ne!(asked.body()["id"], id);
        asked.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap().to_text(), "3");
    // The call is repeated once, and no more.
    let call = async { session.call_tool("text", json!({"region": "r"})).await };
    let (answer, ()) = both(call, async {
        mismatch(peer.post("tools/call").await);
        let listed = tools(&[tool("text", "string", "Region")]);
        peer.post("tools/list").await.result(listed);
        mismatch(peer.post("tools/call").await);
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(
        (error.code().value(), error.http_status()),
        (-32020, Some(400))
    );
    assert!(peer.is_quiet());
}

struct Watch;

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Watched {
    task_id: String,
}

impl Payload for Watched {}

impl Method for Watch {
    const NAME: &'static str = "com.example/watch";
    type Params = Watched;
    type Result = Watched;
}

#[tokio::test(start_paused = true)]
async fn extension_mirrors_its_own_headers() {
    let extension = Extension::new("com.example/watcher")
        .calls::<Watch>(oxmcp::Revision::LATEST..)
        .header::<Watch>("taskId", "Mcp-Name");
    let (mut peer, endpoint) = Peer::endpoint();
    let client = modern().extension(extension);
    let (session, ()) = both(client.connect(endpoint), async {
        let mut found = discovered();
        found["capabilities"]["extensions"] = json!({"com.example/watcher": {}});
        peer.post("server/discover").await.result(found);
    })
    .await;
    let session = session.unwrap();
    let params = Watched {
        task_id: "t-1".into(),
    };
    let call = async { session.request::<Watch>(params).await };
    let (answer, ()) = both(call, async {
        let asked = peer.post("com.example/watch").await;
        assert_eq!(asked.header("mcp-method"), Some("com.example/watch"));
        assert_eq!(asked.header("mcp-name"), Some("t-1"));
        asked.result(json!({"resultType": "complete", "taskId": "t-1"}));
    })
    .await;
    answer.unwrap();
}

/// An HTTP client that names its caller.
struct Of(Scripted, Option<&'static str>);

impl HttpClient for Of {
    async fn send(
        &self,
        request: ::http::Request<bytes::Bytes>,
    ) -> Result<::http::Response<HttpBody>, Error> {
        self.0.send(request).await
    }

    fn authorization(&self) -> Option<String> {
        self.1.map(Into::into)
    }
}

/// Lists tools in a session of this client with this token. Returns the name of the first tool, which is the one of `page`
/// if the server is asked.
async fn listed(client: &Client, of: Option<&'static str>, token: &str, page: Value) -> String {
    let (mut peer, http) = Peer::new();
    let endpoint = Endpoint::new(URL)
        .http_client(Of(http, of))
        .bearer_token(token);
    let (session, ()) = both(client.connect(endpoint), async {
        peer.post("server/discover").await.result(discovered());
    })
    .await;
    let session = session.unwrap();
    let listing = async { session.tools().all().await };
    let answering = async {
        loop {
            peer.post("tools/list").await.result(page.clone());
        }
    };
    tokio::select! {
        all = listing => all.unwrap().remove(0).name,
        () = answering => unreachable!(),
    }
}

// Attack: private cached answers of another caller.
#[tokio::test(start_paused = true)]
async fn private_answer_stays_with_its_token() {
    let page = |name: &str, scope: &str| {
        let mut page = tools(&[tool(name, "string", "Region")]);
        page["cacheScope"] = scope.into();
        page
    };
    let client = modern();
    let private = |name: &str| page(name, "private");
    let me = Some("");
    assert_eq!(listed(&client, me, "a", private("a's")).await, "a's");
    assert_eq!(listed(&client, me, "b", private("b's")).await, "b's");
    assert_eq!(listed(&client, me, "a", private("new")).await, "a's");
    assert_eq!(listed(&client, me, "b", private("new")).await, "b's");
    // Another HTTP client with the same token is another caller, and so is a client whose caller is unknown.
    let other = Some("other");
    assert_eq!(
        listed(&client, other, "a", private("other's")).await,
        "other's"
    );
    for name in ["one", "two"] {
        assert_eq!(listed(&client, None, "a", private(name)).await, name);
    }
    // A public listing is for all callers.
    let client = modern();
    assert_eq!(
        listed(&client, me, "a", page("all's", "public")).await,
        "all's"
    );
    assert_eq!(listed(&client, me, "b", private("b's")).await, "all's");
}
