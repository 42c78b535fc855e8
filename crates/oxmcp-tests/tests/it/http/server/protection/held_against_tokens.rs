//! Scopes of tokens, compared with those of the server, the template and the message that are actually served.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, StatusCode, request::Parts};
use http_body_util::{BodyExt, Full};
use oxmcp::{
    Resource, ResourceTemplate, Revision, Server, Tool,
    auth::dpop::ProofVerifier,
    http::{LegacySse, StreamableHttp},
    middleware::{self, Next, Request as Incoming},
};
use serde_json::json;
use tower::ServiceExt;

use super::issuer::{Issuer, URL, bearing, call, files, open, read_to_end, refusal};
use crate::http::server::peer::{builder, json, modern_builder, send};
use crate::http::sse_2024::Client;
use crate::support::{modern, request};

#[tokio::test]
async fn modern_message_needs_its_servers_scopes() {
    let write = || Tool::new("write", "Write", || async { "written" });
    let free = Server::new("free", "1.0.0").tool(write());
    let shut = Server::new("shut", "1.0.0").tool(write().scopes("files:write"));
    let choose = move |parts: &Parts| {
        let is_free = parts.headers.contains_key("x-free");
        if is_free { free.clone() } else { shut.clone() }
    };
    let issuer = Issuer::new();
    let endpoint = StreamableHttp::new(choose).protect(issuer.resource());
    let token = issuer.token("mcp");
    let initialize = crate::http::server::peer::initialize("2025-11-25", json!({})).to_string();
    for is_free in [true, false] {
        let which = |request: http::request::Builder, is_free| {
            let request = bearing(request, &token);
            if is_free {
                request.header("x-free", "1")
            } else {
                request
            }
        };
        let opened = send(
            &endpoint,
            which(builder("POST"), is_free),
            initialize.clone(),
        )
        .await;
        let id = &opened.headers()["mcp-session-id"];
        // The session belongs to one server, and the message goes to the other.
        let message = modern(1, "tools/call", json!({"name": "write", "arguments": {}}));
        let of_session = modern_builder(&message).header("mcp-session-id", id);
        let response = send(&endpoint, which(of_session, !is_free), message.to_string()).await;
        if is_free {
            assert_eq!(response.status(), StatusCode::FORBIDDEN);
            assert_eq!(refusal(&response).2, "files:write");
        } else {
            let served = json(response).await;
            assert_eq!(served["result"]["content"][0]["text"], "written");
        }
    }
}

#[tokio::test]
async fn hidden_template_does_not_bypass_another_templates_scopes() {
    let template = |uri: &str, name: &str| {
        ResourceTemplate::new(uri, name, |_: HashMap<String, String>| async { "contents" })
    };
    let server = Server::new("files", "1.0.0")
        .resource_template(template("files://pub/{x}", "hidden").visible_to(|_| false))
        .resource_template(template("files://{+path}", "all").scopes("files:read"))
        .resource_template(template("files://open/{x}", "open"))
        .subscriptions();
    let issuer = Issuer::new();
    let endpoint = StreamableHttp::from(server).protect(issuer.resource());
    let few = issuer.token("mcp");
    let listen = json!({"notifications": {"resourceSubscriptions": ["files://pub/a"]}});
    let read = json!({"uri": "files://pub/a"});
    for (method, params) in [("resources/read", &read), ("subscriptions/listen", &listen)] {
        let refused = call(&endpoint, &few, method, params.clone()).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{method}");
        assert_eq!(refusal(&refused).2, "files:read", "{method}");
    }
    let session = open(&endpoint, &few, "2025-11-25").await;
    let subscribe = request(1, "resources/subscribe", read.clone()).to_string();
    let refused = send(&endpoint, bearing(session.builder("POST"), &few), subscribe).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    // With the scopes the resource is served, and a resource that all callers see needs no scopes of another template.
    for (token, uri) in [
        (issuer.token("files:read"), "files://pub/a"),
        (few, "files://open/a"),
    ] {
        let served = call(&endpoint, &token, "resources/read", json!({"uri": uri})).await;
        let text = &json(served).await["result"]["contents"][0]["text"];
        assert_eq!(text, "contents", "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_ends_with_token_however_method_is_escaped() {
    let issuer = Issuer::new();
    let server = Server::new("files", "1.0.0").subscriptions();
    let endpoint = StreamableHttp::from(server).protect(issuer.resource());
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let message = modern(1, "subscriptions/listen", filter);
    for method in [
        "subscriptions/listen",
        "subscriptions/listen ",
        "\tsubscriptions/listen",
    ] {
        let request = builder("POST")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        let request = bearing(request, &issuer.ending(5));
        let stream = send(&endpoint, request, message.to_string()).await;
        assert_eq!(stream.status(), StatusCode::OK, "{method:?}");
        let read = read_to_end(stream.into_body());
        let read = tokio::time::timeout(std::time::Duration::from_secs(600), read).await;
        let text = read.unwrap_or_else(|_| panic!("{method:?} outlasts its token"));
        assert!(text.ends_with("retry: 100\n\n"), "{text}");
    }
}

#[tokio::test]
async fn unreadable_batch_is_refused_over_2024_transport() {
    let issuer = Issuer::new();
    let write = Tool::new("write", "Write", || async { "written" }).scopes("files:write");
    let server = Server::new("files", "1.0.0").tool(write);
    let service = LegacySse::from(server).protect(issuer.resource());
    let mut client = Client::open_with(&service, &issuer.token("mcp")).await;
    client.initialize(Revision::V2025_03_26).await;
    let write = request(1, "tools/call", json!({"name": "write", "arguments": {}}));
    let deep = "[".repeat(200) + &"]".repeat(200);
    for (batch, status) in [
        (format!("[{write}]"), StatusCode::FORBIDDEN),
        (format!("[{deep},{write}]"), StatusCode::BAD_REQUEST),
        (format!("[1 2,{write}]"), StatusCode::BAD_REQUEST),
    ] {
        let refused = client.respond(batch.clone()).await;
        assert_eq!(refused.status(), status, "{batch}");
    }
}

#[tokio::test]
async fn call_before_initialize_needs_scopes_over_2024_transport() {
    let issuer = Issuer::new();
    let write = Tool::new("write", "Write", || async { "written" })
        .scopes("files:write")
        .visible_to(|_| true);
    let service =
        LegacySse::from(Server::new("files", "1.0.0").tool(write)).protect(issuer.resource());
    let client = Client::open_with(&service, &issuer.token("mcp")).await;
    let initialize = crate::http::server::peer::initialize("2024-11-05", json!({}));
    assert_eq!(client.post(&initialize).await, StatusCode::ACCEPTED);
    // The stream was not read, so nothing shows yet that the session is open.
    let write = request(1, "tools/call", json!({"name": "write", "arguments": {}}));
    let refused = client.respond(write.to_string()).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(refusal(&refused).2, "files:write");
}

#[tokio::test]
async fn params_replaced_by_middleware_need_their_own_scopes() {
    let issuer = Issuer::new();
    let read = Tool::new("read", "Read", || async { "read" });
    let write = Tool::new("write", "Write", || async { "written" }).scopes("files:write");
    let server = Server::new("files", "1.0.0")
        .tool(read)
        .tool(write)
        .layer(middleware::from_fn(
            |mut request: Incoming, next: Next| async move {
                if request.method() == "tools/call" {
                    let mut params: serde_json::Value = request.params()?;
                    params["name"] = json!("write");
                    request.set_params(&params)?;
                }
                next.run(request).await
            },
        ));
    let endpoint = StreamableHttp::from(server.clone()).protect(issuer.resource());
    let params = json!({"name": "read", "arguments": {}});
    let few = issuer.token("mcp");
    let refused = json(call(&endpoint, &few, "tools/call", params.clone()).await).await;
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("this needs files:write"), "{refused}");
    let more = issuer.token("files:write");
    let served = json(call(&endpoint, &more, "tools/call", params.clone()).await).await;
    assert_eq!(served["result"]["content"][0]["text"], "written");
    let service = LegacySse::from(server).protect(issuer.resource());
    // The token of the POST counts, and not the token that opened the stream.
    for (opening, posting, is_served) in [(&more, &few, false), (&few, &more, true)] {
        let client = Client::opened_with(&service, opening).await;
        let mut client = client.bearing(posting);
        let answer = client.ask(request(1, "tools/call", params.clone())).await;
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(
            why.contains("this needs files:write"),
            !is_served,
            "{answer}"
        );
        assert_eq!(answer["result"].is_object(), is_served, "{answer}");
    }
}

#[tokio::test]
async fn message_over_2024_transport_belongs_to_its_token() {
    let issuer = Issuer::new();
    let server = files();
    let resource = issuer.resource().hide_unpermitted();
    let service = LegacySse::from(server.clone()).protect(resource);
    let (few, more) = (issuer.token("mcp"), issuer.token("mcp files:read"));
    let whoami = |id| request(id, "tools/call", json!({"name": "whoami", "arguments": {}}));
    for (opening, posting, may) in [(&more, &few, "mcp"), (&few, &more, "mcp files:read")] {
        let client = Client::open_with(&service, opening).await;
        let mut client = client.bearing(posting);
        client.initialize(Revision::V2025_03_26).await;
        let said = client.ask(whoami(1)).await;
        let expected = format!("ann may {may}");
        assert_eq!(said["result"]["content"][0]["text"], expected);
        let said = client.ask(json!([whoami(2)])).await;
        assert_eq!(said[0]["result"]["content"][0]["text"], expected);
        let listed = client.ask(request(3, "prompts/list", json!({}))).await;
        let prompts = listed["result"]["prompts"].as_array().unwrap();
        assert_eq!(prompts.len(), usize::from(posting == &more));
        // The token of the subscription decides whether the session may get an update.
        for (id, uri) in [(4, "file:///shut"), (5, "file:///open")] {
            client
                .ask(request(id, "resources/subscribe", json!({"uri": uri})))
                .await;
            server.resource_updated(uri);
        }
        let mut heard = vec![client.message().await["params"]["uri"].clone()];
        if posting == &more {
            heard.push(client.message().await["params"]["uri"].clone());
        }
        let heard = heard.iter().any(|uri| uri == "file:///shut");
        assert_eq!(heard, posting == &more);
    }
}

#[tokio::test]
async fn oversized_batch_is_refused_before_scope_lookup() {
    let seen = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&seen);
    let write = Tool::new("write", "Write", || async { "written" })
        .scopes("files:write")
        .visible_to(move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            true
        });
    let issuer = Issuer::new();
    let server = Server::new("files", "1.0.0").tool(write);
    let endpoint = StreamableHttp::from(server.clone()).protect(issuer.resource());
    let token = issuer.token("mcp");
    let session = open(&endpoint, &token, "2025-03-26").await;
    let service = LegacySse::from(server).protect(issuer.resource());
    let mut client = Client::open_with(&service, &token).await;
    client.initialize(Revision::V2025_03_26).await;
    let batch = |count: i64| {
        let params = json!({"name": "write", "arguments": {}});
        let calls = (0..count).map(|id| request(id, "tools/call", params.clone()));
        serde_json::Value::from_iter(calls)
    };
    let post = async |batch: &serde_json::Value| {
        let request = bearing(session.builder("POST"), &token);
        send(&endpoint, request, batch.to_string()).await
    };
    let few = batch(128);
    assert_eq!(refusal(&post(&few).await).2, "files:write");
    assert_eq!(
        refusal(&client.respond(few.to_string()).await).2,
        "files:write"
    );
    assert_eq!(seen.swap(0, Ordering::Relaxed), 256);
    let many = batch(129);
    let refused = json(post(&many).await).await;
    for refused in [refused, client.ask(many).await] {
        let why = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(
            why.contains("invalid batch: expected 1 to 128 messages"),
            "{refused}"
        );
    }
    assert_eq!(seen.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn modern_filter_needs_no_scopes_from_legacy_clients() {
    let seen = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&seen);
    let shut = Resource::text("f://shut", "shut", "shut")
        .scopes("files:read")
        .visible_to(move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            true
        });
    let issuer = Issuer::new();
    let server = Server::new("files", "1.0.0").resource(shut).subscriptions();
    let endpoint = StreamableHttp::from(server.clone()).protect(issuer.resource());
    let token = issuer.token("mcp");
    let listen = json!({"notifications": {"resourceSubscriptions": ["f://shut"]}});
    let session = open(&endpoint, &token, "2025-03-26").await;
    let service = LegacySse::from(server).protect(issuer.resource());
    let mut client = Client::open_with(&service, &token).await;
    client.initialize(Revision::V2025_03_26).await;
    let legacy = request(1, "subscriptions/listen", listen.clone());
    for message in [legacy.clone(), json!([legacy])] {
        let request = bearing(session.builder("POST"), &token);
        let answer = send(&endpoint, request, message.to_string()).await;
        assert_ne!(answer.status(), StatusCode::FORBIDDEN, "{message}");
        client.ask(message).await;
    }
    // A message that claims to be modern has no effect over a transport that no modern revision has.
    client
        .ask(modern(2, "subscriptions/listen", listen.clone()))
        .await;
    assert_eq!(seen.load(Ordering::Relaxed), 0);
    let refused = call(&endpoint, &token, "subscriptions/listen", listen).await;
    assert_eq!(refusal(&refused).2, "files:read");
}

#[tokio::test]
async fn excess_watched_uris_are_refused_before_matching() {
    let seen = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&seen);
    let template = ResourceTemplate::new("f://{x}", "all", |_: HashMap<String, String>| async {
        "contents"
    });
    let template = template.scopes("files:read").visible_to(move |_| {
        asked.fetch_add(1, Ordering::Relaxed);
        true
    });
    let server = Server::new("files", "1.0.0")
        .subscriptions()
        .resource_template(template);
    let issuer = Issuer::new();
    let endpoint = StreamableHttp::from(server).protect(issuer.resource());
    let token = issuer.token("mcp");
    let watch = |count: usize| {
        let uris: Vec<String> = (0..count).map(|n| format!("f://{n}")).collect();
        json!({"notifications": {"resourceSubscriptions": uris}})
    };
    let few = call(&endpoint, &token, "subscriptions/listen", watch(3)).await;
    assert_eq!(refusal(&few).2, "files:read");
    assert_eq!(seen.swap(0, Ordering::Relaxed), 3);
    let many = call(&endpoint, &token, "subscriptions/listen", watch(10_001)).await;
    let body = many.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("too many watched resources"), "{text}");
    assert_eq!(seen.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn messages_are_posted_to_the_proofs_url() {
    let issuer = Issuer::new();
    let server = Server::new("files", "1.0.0");
    let status = async |messages: &str, takes_proofs: bool| {
        let mut resource = issuer.resource();
        if takes_proofs {
            resource = resource.dpop(ProofVerifier::new());
        }
        let service = LegacySse::from(server.clone())
            .messages(messages)
            .protect(resource);
        let request = bearing(Request::get("/mcp"), &issuer.token("mcp"))
            .header("host", "localhost")
            .header("accept", "text/event-stream");
        let response = service
            .clone()
            .oneshot(request.body(Full::<Bytes>::default()).unwrap())
            .await;
        let status = response.unwrap().status();
        // The server that this starts is closed again, with all its clones.
        let is_served = service.serve("127.0.0.1:0").await.is_ok();
        assert_eq!(is_served, status == StatusCode::OK, "{messages}");
        status
    };
    for messages in ["", "?a=b", "/mcp", "/mcp?a=b", URL] {
        assert_eq!(status(messages, true).await, StatusCode::OK, "{messages}");
    }
    for messages in ["/messages", "messages", "https://other.example.com/mcp"] {
        let refused = status(messages, true).await;
        assert_eq!(refused, StatusCode::INTERNAL_SERVER_ERROR, "{messages}");
        assert_eq!(status(messages, false).await, StatusCode::OK, "{messages}");
    }
}
