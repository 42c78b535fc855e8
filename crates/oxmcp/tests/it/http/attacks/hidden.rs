//! What is hidden from a caller must not show by how a request for it is refused.

use http::StatusCode;
use oxmcp::{
    RequestContext, Server, Tool,
    http::{Principal, StreamableHttp},
    middleware::{self, Next, Request},
};
use serde_json::{Value, json};

use crate::{
    http::server::peer::{json, modern_builder, send},
    support::{calculator, modern},
};

/// A server with a tool for Ann alone, whose argument headers repeat.
fn server() -> Server {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tool = Tool::dynamic("move", "Move it", schema, |_, _| async { Ok("moved") });
    calculator().tool(tool.visible_to(is_ann))
}

fn is_ann(cx: &RequestContext) -> bool {
    let request = cx.http_request();
    let caller = request.and_then(|request| request.extensions.get::<Principal>());
    caller.is_some_and(|caller| caller.as_str() == "ann")
}

/// Calls a tool in a region, of which a header says something.
async fn call(server: &Server, who: &str, tool: &str, header: Option<&str>) -> (StatusCode, Value) {
    let endpoint = StreamableHttp::from(server.clone());
    let params = json!({"name": tool, "arguments": {"region": "eu"}});
    let message = modern(1, "tools/call", params);
    let mut request = modern_builder(&message).extension(Principal::new(who));
    if let Some(header) = header {
        request = request.header("mcp-param-region", header);
    }
    let response = send(&endpoint, request, message.to_string()).await;
    (response.status(), json(response).await)
}

#[tokio::test]
async fn attack_headers_that_are_wrong_do_not_tell_of_a_hidden_tool() {
    let layered = server().layer(middleware::from_fn(
        |request: Request, next: Next| async move { next.run(request).await },
    ));
    for server in [server(), layered] {
        for header in [None, Some("us"), Some("=?base64?=")] {
            let hidden = call(&server, "bob", "move", header).await;
            let (status, mut unknown) = call(&server, "bob", "moves", header).await;
            let message = unknown["error"]["message"].as_str().unwrap();
            unknown["error"]["message"] = json!(message.replace("moves", "move"));
            assert_eq!(hidden, (status, unknown), "{header:?}");

            let (status, answer) = call(&server, "ann", "move", header).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{header:?}: {answer}");
            assert_eq!(answer["error"]["code"], -32020, "{header:?}");
        }
        let (status, answer) = call(&server, "ann", "move", Some("eu")).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(answer["result"]["content"][0]["text"], "moved");
    }
}
