//! Stolen state and shared caches: values that are sealed or cached for one caller, presented by or to
//! another.

use std::time::Duration;

use oxmcp::{
    Client, JsonSchema, Principal, RequestContext, Server, Tool, ToolError,
    http::{Endpoint, StreamableHttp},
    protocol::CacheHint,
};
use serde_json::{Value, json};

use crate::{
    http::mounts::{Target, mounts},
    http::server::peer::{json, modern_builder, send},
    support::{calculator, idle, modern, text},
};

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
struct Project {
    project: String,
}

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
struct Sure {
    sure: bool,
}

/// A server with two tools that elicit input before they act.
fn server(name: &str) -> Server {
    let ask = |cx: RequestContext, Project { project }: Project| async move {
        let Sure { sure } = cx.ask("sure", format!("Delete {project}?")).await?;
        Ok::<_, ToolError>(format!("{project} {sure}"))
    };
    Server::new(name, "1")
        .tool(Tool::new("delete", "Delete", ask))
        .tool(Tool::new("archive", "Archive", ask))
}

/// One round of a call: the caller, the tool, its argument, and the request state.
struct Round<'a> {
    who: Option<&'a str>,
    tool: &'a str,
    project: &'a str,
    state: Option<&'a str>,
}

impl Round<'_> {
    async fn ask(&self, endpoint: &impl Target) -> Value {
        let arguments = json!({"project": self.project});
        let mut params = json!({"name": self.tool, "arguments": arguments});
        if let Some(state) = self.state {
            let sure = json!({"action": "accept", "content": {"sure": true}});
            params["requestState"] = state.into();
            params["inputResponses"] = json!({"sure": sure});
        }
        let mut message = modern(1, "tools/call", params);
        let capabilities = "io.modelcontextprotocol/clientCapabilities";
        message["params"]["_meta"][capabilities] = json!({"elicitation": {"form": {}}});
        let mut builder = modern_builder(&message);
        if let Some(who) = self.who {
            builder = builder.extension(Principal::new(who));
        }
        json(send(endpoint, builder, message.to_string()).await).await
    }
}

/// The request state that Ann gets when she deletes "x".
async fn anns_state(endpoint: &impl Target) -> String {
    let first = Round { state: None, ..ANN };
    let answer = first.ask(endpoint).await;
    let state = &answer["result"]["requestState"];
    state.as_str().unwrap_or_else(|| panic!("{answer}")).into()
}

const ANN: Round<'static> = Round {
    who: Some("ann"),
    tool: "delete",
    project: "x",
    state: None,
};

// Attack: sealed state of another principal.
#[tokio::test]
async fn state_opens_only_for_its_principal_and_request() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(server("s"))).await;
        let sealed = anns_state(&endpoint).await;
        let state = Some(&*sealed);
        for (who, tool, project) in [
            (Some("bob"), "delete", "x"),
            (Some("ANN"), "delete", "x"),
            (Some(""), "delete", "x"),
            (None, "delete", "x"),
            (Some("ann"), "archive", "x"),
            (Some("ann"), "delete", "y"),
        ] {
            let forged = Round {
                who,
                tool,
                project,
                state,
            };
            let answer = forged.ask(&endpoint).await;
            assert_eq!(answer["error"]["code"], -32602, "{who:?} {tool}: {answer}");
        }
        // A change at any of these places of the state invalidates it.
        for place in [0, 3, 8, 40, sealed.len() / 2, sealed.len() - 1] {
            let mut bytes = sealed.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let bytes = String::from_utf8(bytes).unwrap();
            if bytes == sealed {
                continue;
            }
            let forged = Round {
                state: Some(&bytes),
                ..ANN
            };
            let answer = forged.ask(&endpoint).await;
            assert_eq!(answer["error"]["code"], -32602, "{place}: {answer}");
        }
        // Another server, and another process, have other keys.
        for name in ["s", "t"] {
            let elsewhere = mount.serve(&StreamableHttp::from(server(name))).await;
            let answer = Round { state, ..ANN }.ask(&elsewhere).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        let answer = Round { state, ..ANN }.ask(&endpoint).await;
        assert_eq!(text(&answer), "x true");
    }
}

// Attack: sealed state of another principal.
#[tokio::test]
async fn principal_cannot_use_an_anonymous_state() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(server("s"))).await;
        let nobody = Round { who: None, ..ANN };
        let answer = nobody.ask(&endpoint).await;
        let state = answer["result"]["requestState"].as_str();
        let answer = Round { state, ..ANN }.ask(&endpoint).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let answer = Round { state, ..nobody }.ask(&endpoint).await;
        assert_eq!(text(&answer), "x true");
    }
}

// Attack: private cached answers of another caller.
#[tokio::test]
async fn two_tokens_of_one_client_share_no_cache() {
    for mount in mounts!() {
        let fresh = CacheHint::private(Duration::from_secs(3600));
        let server = || calculator().cache_tools(fresh);
        let servers = ["a", "b"].map(|who| server().tool(idle(&format!("of-{who}"))));
        let endpoint = StreamableHttp::new(move |request| {
            let token = request.headers.get("authorization")?.to_str().ok()?;
            let place = match token {
                "Bearer a" => 0,
                "Bearer b" => 1,
                _ => return None,
            };
            Some(servers[place].clone())
        });
        let endpoint = mount.serve(&endpoint).await;
        let url = format!("http://{}/mcp", endpoint.address);
        let client = Client::new("two", "1");
        for _ in 0..2 {
            for who in ["a", "b"] {
                let to = Endpoint::new(&url).bearer_token(who);
                let session = client.connect(to).await.unwrap();
                let tools = session.tools().all().await.unwrap();
                let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
                assert_eq!(names, ["add", &format!("of-{who}")]);
                session.close().await.unwrap();
            }
        }
        assert!(client.connect(Endpoint::new(&url)).await.is_err());
    }
}
