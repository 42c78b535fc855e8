//! Arguments of tools that are mirrored in headers, and tools with invalid annotations for it.

use oxmcp::{
    CacheMode, Client, ClientSession, Extension, Limits, Revision,
    protocol::{Method, PaginatedParams, Payload},
    testing::ScriptedPeer,
    transport::{HeaderMirror, Logging, Transport},
};
use serde_json::{Value, json};

use crate::client::{
    answer,
    answers_each::{SwitchableConnector, connecting},
    client, discovered, done, expect, initialized,
};
use crate::support::LEGACY;

/// A session with a modern server over a transport with headers.
pub(crate) async fn session_of(
    client: &Client,
) -> (ScriptedPeer, SwitchableConnector, ClientSession) {
    let client = client
        .clone()
        .revisions(crate::client::asking(Revision::LATEST));
    let (mut peer, way, connecting) = connecting(client, Some("s")).await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
    (peer, way, connecting.await.unwrap().unwrap())
}

/// A tool whose argument is mirrored in this header.
pub(crate) fn tool(name: &str, header: &Value) -> Value {
    json!({
        "name": name,
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": header}, "query": {"type": "string"}},
        },
    })
}

/// A list of tools that stays fresh.
pub(crate) fn tools(tools: &[Value]) -> Value {
    json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "tools": tools})
}

/// Lists all tools of a server whose list is `listed`.
pub(crate) async fn list(
    peer: &mut ScriptedPeer,
    session: &ClientSession,
    listed: &[Value],
) -> Vec<String> {
    let all = tokio::spawn(session.tools().cache(CacheMode::Refresh).all());
    let request = expect(peer, "tools/list").await;
    answer(peer, &request, tools(listed)).await;
    let all = all.await.unwrap().unwrap();
    all.into_iter().map(|tool| tool.name).collect()
}

/// The headers of a call, as the transport would send them.
async fn headers(
    peer: &mut ScriptedPeer,
    way: &SwitchableConnector,
    session: &ClientSession,
    (name, arguments): (&str, Value),
) -> Value {
    let call = tokio::spawn(session.call_tool(name, arguments).into_future());
    let request = expect(peer, "tools/call").await;
    let headers = way.headers(&request).unwrap();
    answer(peer, &request, done()).await;
    call.await.unwrap().unwrap();
    headers
}

#[tokio::test]
async fn arguments_are_mirrored_after_tools_are_listed() {
    let (mut peer, way, session) = session_of(&client()).await;
    let call = || ("run", json!({"region": "us-west1", "query": "select"}));
    let plain = json!({"mcp-method": "tools/call", "mcp-name": "run"});
    let found = headers(&mut peer, &way, &session, call()).await;
    assert_eq!(found, plain);

    list(&mut peer, &session, &[tool("run", &json!("Region"))]).await;
    let mut repeated = plain.clone();
    repeated["mcp-param-region"] = "us-west1".into();
    let found = headers(&mut peer, &way, &session, call()).await;
    assert_eq!(found, repeated);
    for absent in [json!({"region": null}), json!({"query": "x"}), json!(null)] {
        let found = headers(&mut peer, &way, &session, ("run", absent.clone())).await;
        assert_eq!(found, plain, "{absent}");
    }

    // The new header of the tool replaces the old one.
    list(&mut peer, &session, &[tool("run", &json!("Zone"))]).await;
    let found = headers(&mut peer, &way, &session, call()).await;
    assert_eq!(found["mcp-param-zone"], "us-west1");
    assert_eq!(found.get("mcp-param-region"), None);
    let plainly = json!({"name": "run", "inputSchema": {"type": "object"}});
    list(&mut peer, &session, &[plainly]).await;
    assert_eq!(headers(&mut peer, &way, &session, call()).await, plain);
}

// Attack: header injection.
#[tokio::test]
async fn mirrored_value_cannot_break_out_of_its_header() {
    let (mut peer, way, session) = session_of(&client()).await;
    let name = "run\r\nX: 1";
    list(&mut peer, &session, &[tool(name, &json!("Region"))]).await;
    for value in ["a\r\nX: 1", "é", " a ", "=?base64?YQ==?=", ""] {
        let found = headers(&mut peer, &way, &session, (name, json!({"region": value}))).await;
        for (header, text) in [("mcp-name", name), ("mcp-param-region", value)] {
            let sent = found[header].as_str().unwrap();
            assert!(
                sent.bytes().all(|byte| matches!(byte, b' '..=b'~')),
                "{sent:?}"
            );
            assert_eq!(
                sent == text,
                value.is_empty() && header != "mcp-name",
                "{sent:?}"
            );
        }
    }
}

#[tokio::test]
async fn tool_with_invalid_header_is_not_listed() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let mut listed: Vec<_> = [
        json!(""),
        json!("a b"),
        json!("a:b"),
        json!("Région"),
        json!("a\tb"),
        json!("a\r\nb"),
        json!(7),
    ]
    .iter()
    .map(|header| tool("wrong", header))
    .collect();
    for kind in ["object", "array", "number", "null"] {
        let mut wrong = tool("wrong", &json!("Region"));
        wrong["inputSchema"]["properties"]["region"]["type"] = kind.into();
        listed.push(wrong);
    }
    let mut twice = tool("wrong", &json!("Region"));
    twice["inputSchema"]["properties"]["query"]["x-mcp-header"] = "REGION".into();
    listed.extend([
        twice,
        tool("right", &json!("Region")),
        json!({"name": "plain", "inputSchema": {"type": "object"}}),
    ]);

    // The stream, the cached stream, the cached page, and a page that bypasses the cache.
    assert_eq!(list(&mut peer, &session, &listed).await, ["right", "plain"]);
    let kept = session.tools().all().await.unwrap();
    assert_eq!(kept.len(), 2);
    let kept = session
        .list_tools(PaginatedParams::default())
        .await
        .unwrap();
    assert_eq!(kept.tools.len(), 2);
    let page = session.list_tools(PaginatedParams::default());
    let page = tokio::spawn(page.cache(CacheMode::Bypass).into_future());
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools(&listed)).await;
    assert_eq!(page.await.unwrap().unwrap().tools.len(), 2);
}

// Attack: private cached answers of another caller.
#[tokio::test]
async fn cached_list_of_another_session_sets_headers_too() {
    let client = client();
    let (mut first, _way, session) = session_of(&client).await;
    let call = session.list_tools(PaginatedParams::default());
    let listing = tokio::spawn(call.into_future());
    let request = expect(&mut first, "tools/list").await;
    let mut page = tools(&[tool("run", &json!("Region")), tool("wrong", &json!(""))]);
    page["cacheScope"] = "public".into();
    answer(&mut first, &request, page).await;
    listing.await.unwrap().unwrap();

    let (mut second, way, session) = session_of(&client).await;
    assert_eq!(session.tools().all().await.unwrap().len(), 1);
    let call = ("run", json!({"region": "r"}));
    let found = headers(&mut second, &way, &session, call).await;
    assert_eq!(found["mcp-param-region"], "r");
}

#[tokio::test]
async fn tools_are_all_listed_on_transports_without_headers() {
    let wrong = [tool("wrong", &json!(""))];
    // Mirrored headers do not exist for legacy servers, whatever the transport.
    for revision in LEGACY {
        let client = client().revisions([revision]);
        let (mut peer, _way, connecting) = connecting(client, None).await;
        let request = expect(&mut peer, "initialize").await;
        answer(&mut peer, &request, initialized(revision.as_str())).await;
        expect(&mut peer, "notifications/initialized").await;
        let session = connecting.await.unwrap().unwrap();
        assert_eq!(list(&mut peer, &session, &wrong).await, ["wrong"]);
    }
    // Nor for transports without headers.
    let (mut peer, session) = crate::client::session(Revision::LATEST).await;
    assert_eq!(list(&mut peer, &session, &wrong).await, ["wrong"]);
}

#[tokio::test]
async fn unmirrorable_argument_is_reported_to_the_transport() {
    let (mut peer, way, session) = session_of(&client()).await;
    let mut listed = tool("run", &json!("Region"));
    listed["inputSchema"]["properties"]["region"]["type"] = "integer".into();
    list(&mut peer, &session, &[listed]).await;
    let call = |region: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run", "arguments": {"region": region}}});
    let sent = way
        .headers(&call(json!(9_007_199_254_740_991_i64)))
        .unwrap();
    assert_eq!(sent["mcp-param-region"], "9007199254740991");
    let error = way
        .headers(&call(json!(9_007_199_254_740_992_i64)))
        .unwrap_err();
    assert!(error.message().contains("region"), "{error}");
}

// Attack: resource exhaustion.
#[tokio::test]
async fn remembered_tool_headers_are_bounded() {
    // The limit has room for two tools.
    let limits = Limits::default().client(|client| client.max_mirrored_bytes(500));
    let (mut peer, way, session) = session_of(&client().limits(limits)).await;
    let listed = ["a", "b", "c"].map(|name| tool(name, &json!("Region")));
    assert_eq!(list(&mut peer, &session, &listed).await.len(), 3);
    for (name, known) in [("a", false), ("b", true), ("c", true)] {
        let call = (name, json!({"region": "r"}));
        let found = headers(&mut peer, &way, &session, call).await;
        assert_eq!(found.get("mcp-param-region").is_some(), known, "{name}");
    }
    // A tool that exceeds the limit alone is left out.
    let greedy = tool("d", &json!("R".repeat(500)));
    assert!(list(&mut peer, &session, &[greedy]).await.is_empty());
}

struct Watch;

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Watched {
    task_id: Value,
}

impl Payload for Watched {}

impl Method for Watch {
    const NAME: &'static str = "com.example/watch";
    type Params = Watched;
    type Result = Watched;
}

#[tokio::test]
async fn extensions_add_their_own_headers() {
    let extension = Extension::new("com.example/watcher").header::<Watch>("taskId", "Mcp-Name");
    let (_peer, way, _session) = session_of(&client().extension(extension)).await;
    let request = |id: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "com.example/watch", "params": {"taskId": id}});
    for (id, header) in [
        (json!("t 1"), json!("t 1")),
        (json!("é"), json!("=?base64?w6k=?=")),
        (json!(7), json!("7")),
        (json!(null), json!(null)),
        (json!({}), json!(null)),
    ] {
        let headers = way.headers(&request(id)).unwrap();
        assert_eq!(headers["mcp-method"], "com.example/watch");
        assert_eq!(headers["mcp-name"], header);
    }
}

#[test]
fn request_name_is_mirrored_without_a_session() {
    let mirror = HeaderMirror::new();
    for (method, params, name) in [
        ("tools/call", json!({"name": "t", "uri": "u"}), json!("t")),
        ("prompts/get", json!({"name": "p"}), json!("p")),
        (
            "resources/read",
            json!({"name": "n", "uri": "file:///a%20b"}),
            json!("file:///a%20b"),
        ),
        ("tools/list", json!({"name": "n"}), json!(null)),
        ("resources/subscribe", json!({"uri": "u"}), json!(null)),
        ("tools/call", json!({"name": 7}), json!(null)),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
        let headers = mirror.headers(request.to_string().as_bytes()).unwrap();
        let of = |wanted: &str| {
            let mut found = headers.iter().filter(|(name, _)| name == wanted);
            let value = found.next().map_or(json!(null), |(_, value)| json!(value));
            assert!(found.next().is_none());
            value
        };
        assert_eq!(of("mcp-method"), method);
        assert_eq!(of("mcp-name"), name, "{method}");
    }
    for other in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        assert!(mirror.headers(other.as_bytes()).unwrap().is_empty());
    }
    assert!(mirror.headers(b"no message").is_err());
}

#[test]
fn wrapping_transport_forwards_its_mirror() {
    struct Mirroring(oxmcp::transport::InMemory, HeaderMirror);

    impl Transport for Mirroring {
        type Read = <oxmcp::transport::InMemory as Transport>::Read;
        type Write = <oxmcp::transport::InMemory as Transport>::Write;

        async fn connect(&mut self, limits: &Limits) -> oxmcp::Result<(Self::Read, Self::Write)> {
            self.0.connect(limits).await
        }

        fn answers_each(&self) -> bool {
            true
        }

        fn mirror(&self) -> Option<HeaderMirror> {
            Some(self.1.clone())
        }
    }

    let plain = Logging::with(oxmcp::in_memory().0, |_| {});
    assert!(plain.mirror().is_none() && !plain.answers_each());
    let wrapped = Logging::with(Mirroring(oxmcp::in_memory().0, HeaderMirror::new()), |_| {});
    assert!(wrapped.mirror().is_some() && wrapped.answers_each());
}
