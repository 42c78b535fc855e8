//! Owners of objects that were made with a token: its issuer, subject and client.

use http::{Response, StatusCode};
use oxmcp::{
    JsonSchema, Principal, RequestContext, Server, Tool, ToolError,
    auth::{
        Secret,
        jose::{Algorithm, Jwks, SigningKey},
        server::TrustedIssuer,
    },
    http::{LegacySse, ResponseBody, StreamableHttp},
    protocol::Meta,
    tasks::{ID, TaskPolicy, TaskTool, Tasks},
};
use serde_json::{Value, json};

use super::issuer::{Issuer, bearing, open};
use crate::{
    http::{
        mounts::{Target, mounts},
        server::peer::{Events, Session, json, modern_builder, send},
        sse_2024::Client,
    },
    support::{modern, request, text},
};

const OTHER_ISSUER: &str = "https://other.example.com";

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
struct Sure {
    sure: bool,
}

/// A server with a tool that elicits input, and one that runs as a task.
fn server() -> Server {
    let delete = Tool::new("delete", "Delete", |cx: RequestContext| async move {
        let Sure { sure } = cx.ask("sure", "Sure?").await?;
        Ok::<_, ToolError>(format!("deleted {sure}"))
    });
    let wait = Tool::new("wait", "Wait", std::future::pending::<String>);
    Server::new("files", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .tool(delete)
        .tool(wait.task(TaskPolicy::Always))
}

/// Sends a modern request of a client that supports elicitation and tasks.
async fn ask(
    endpoint: &impl Target,
    token: &str,
    method: &str,
    params: Value,
) -> Response<ResponseBody> {
    let mut message = modern(1, method, params);
    message["params"]["_meta"][Meta::CLIENT_CAPABILITIES] =
        json!({"extensions": {ID: {}}, "elicitation": {"form": {}}});
    let mut builder = modern_builder(&message);
    if let Some(id) = message["params"]["taskId"].as_str() {
        builder = builder.header("mcp-name", id);
    }
    send(endpoint, bearing(builder, token), message.to_string()).await
}

/// The session, request state and tasks that Ann has made.
struct Made<T> {
    session: Session<T>,
    state: Value,
    task: Value,
    legacy_task: Value,
}

impl<T: Target> Made<T> {
    async fn new(endpoint: &T, token: &str) -> Self {
        let session = open(endpoint, token, "2025-11-25").await;
        let call = async |name: &str| {
            let params = json!({"name": name, "arguments": {}});
            json(ask(endpoint, token, "tools/call", params).await).await
        };
        let state = call("delete").await["result"]["requestState"].clone();
        let task = call("wait").await["result"]["taskId"].clone();
        let params = json!({"name": "wait", "arguments": {}, "task": {}});
        let message = request(1, "tools/call", params).to_string();
        let created = send(endpoint, bearing(session.builder("POST"), token), message).await;
        let legacy_task = json(created).await["result"]["task"]["taskId"].clone();
        for made in [&state, &task, &legacy_task] {
            assert!(made.is_string(), "{made}");
        }
        Self {
            session,
            state,
            task,
            legacy_task,
        }
    }

    /// Whether a caller with this token finds the session, and its tasks.
    async fn session_is_found_by(&self, token: &str) -> bool {
        let endpoint = &self.session.endpoint;
        let mut found = Vec::new();
        for method in ["POST", "GET"] {
            for last in [None, Some("s0_1")] {
                let mut builder = bearing(self.session.builder(method), token);
                if let Some(last) = last.filter(|_| method == "GET") {
                    builder = builder.header("last-event-id", last);
                }
                let message = json!({"taskId": self.legacy_task});
                let message = request(1, "tasks/get", message).to_string();
                let response = send(endpoint, builder, message).await;
                let status = response.status();
                found.push(status != StatusCode::NOT_FOUND);
                if method == "POST" && status == StatusCode::OK {
                    assert_eq!(json(response).await["result"]["status"], "working");
                }
            }
        }
        assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
        found[0]
    }

    /// Whether a caller with this token can continue the request that elicited input.
    async fn state_opens_for(&self, token: &str) -> bool {
        let sure = json!({"action": "accept", "content": {"sure": true}});
        let params = json!({
            "name": "delete", "arguments": {},
            "requestState": self.state, "inputResponses": {"sure": sure},
        });
        let endpoint = &self.session.endpoint;
        let answer = json(ask(endpoint, token, "tools/call", params).await).await;
        if answer["error"]["code"] == -32602 {
            return false;
        }
        assert_eq!(text(&answer), "deleted true");
        true
    }

    /// Whether a caller with this token finds the task in every method.
    async fn task_is_found_by(&self, token: &str) -> bool {
        let endpoint = &self.session.endpoint;
        let listen = json!({"notifications": {"taskIds": [self.task]}});
        let response = ask(endpoint, token, "subscriptions/listen", listen).await;
        let mut events = Events::of(response);
        let acknowledged = loop {
            let event = events.next().await.unwrap();
            if !event.data.is_null() {
                break event.data;
            }
        };
        let granted = &acknowledged["params"]["notifications"]["taskIds"];
        let is_found = *granted == json!([self.task]);
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            // A task that is found is not cancelled, so that it can be checked with other tokens.
            if is_found && method == "tasks/cancel" {
                continue;
            }
            let params = json!({"taskId": self.task, "inputResponses": {}});
            let answer = json(ask(endpoint, token, method, params).await).await;
            let expected = if is_found { Value::Null } else { json!(-32602) };
            assert_eq!(answer["error"]["code"], expected, "{method}: {answer}");
        }
        is_found
    }
}

// Attack: sealed state of another principal and a session or subscription of another owner.
#[tokio::test]
async fn objects_made_with_token_belong_to_its_owner() {
    let issuer = Issuer::new();
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let keys = json!({"keys": [key.public_jwk()]}).to_string();
    let keys = Jwks::parse(keys.as_bytes()).unwrap();
    let other_issuer = TrustedIssuer::new(OTHER_ISSUER).keys(keys);
    let resource = issuer.resource().issuer(other_issuer);
    let changed = |name: &str, value: &str| {
        let mut claims = Issuer::claims("mcp");
        claims[name] = json!(value);
        claims
    };
    let of_others = [
        ("subject", issuer.sign(&changed("sub", "bob"))),
        ("client", issuer.sign(&changed("client_id", "other"))),
        (
            "issuer",
            key.sign("at+jwt", &changed("iss", OTHER_ISSUER)).unwrap(),
        ),
    ];
    for mount in mounts!() {
        let endpoint = StreamableHttp::from(server()).protect(resource.clone());
        let endpoint = mount.serve(&endpoint).await;
        let made = Made::new(&endpoint, &issuer.token("mcp")).await;
        for (other, token) in &of_others {
            assert!(!made.session_is_found_by(token).await, "another {other}");
            assert!(!made.state_opens_for(token).await, "another {other}");
            assert!(!made.task_is_found_by(token).await, "another {other}");
            let deleted = bearing(made.session.builder("DELETE"), token);
            let deleted = send(&endpoint, deleted, "").await.status();
            assert_eq!(deleted, StatusCode::NOT_FOUND, "another {other}");
        }
        // The next token of the same owner, which has other scopes.
        let fresh = issuer.token("mcp other");
        assert!(made.session_is_found_by(&fresh).await);
        assert!(made.state_opens_for(&fresh).await);
        assert!(made.task_is_found_by(&fresh).await);
    }
}

#[tokio::test]
async fn objects_made_with_own_tokens_belong_to_principal() {
    let endpoint = StreamableHttp::from(server()).authenticate(|token: Secret| async move {
        let name = token.expose().split('-').next().unwrap_or_default();
        Ok(Principal::new(name))
    });
    let made = Made::new(&endpoint, "ann-1").await;
    for (token, is_found) in [("bob-1", false), ("ann-2", true)] {
        assert_eq!(made.session_is_found_by(token).await, is_found);
        assert_eq!(made.state_opens_for(token).await, is_found);
        assert_eq!(made.task_is_found_by(token).await, is_found);
    }
}

#[tokio::test]
async fn session_over_2024_transport_belongs_to_token_owner() {
    let issuer = Issuer::new();
    let service = LegacySse::from(server()).protect(issuer.resource());
    let mut client = Client::open_with(&service, &issuer.token("mcp")).await;
    let ping = || request(1, "ping", json!({})).to_string();
    for (name, value) in [("sub", "bob"), ("client_id", "other")] {
        let mut claims = Issuer::claims("mcp");
        claims[name] = json!(value);
        client = client.bearing(&issuer.sign(&claims));
        let status = client.respond(ping()).await.status();
        assert_eq!(status, StatusCode::NOT_FOUND, "another {name}");
    }
    client = client.bearing(&issuer.token("mcp other"));
    assert_eq!(client.respond(ping()).await.status(), StatusCode::ACCEPTED);
}
