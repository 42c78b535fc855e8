//! Streams and calls that outlast the tokens that they were opened with.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use oxmcp::{
    Client, RequestContext, Resource, Result, Revision, Server, Tool,
    auth::{
        AuthError,
        server::{Introspection, VerifiedToken},
    },
    http::{
        Endpoint, HttpBody, HttpClient, LegacySse, ProtectedResource, ResponseBody, StreamableHttp,
    },
};
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep, sleep_until, timeout};
use tower::ServiceExt;

use super::issuer::{
    ISSUER, Issuer, URL, bearing, call, endpoint, files, open, read_to_end, whoami,
};
use crate::http::server::peer::{modern_builder, send};
use crate::http::sse_2024;
use crate::support::{modern, request};

/// The streams that a client listens to, opened with this token.
async fn streams(endpoint: &StreamableHttp, token: &str) -> [ResponseBody; 2] {
    let session = open(endpoint, token, "2025-11-25").await;
    let legacy = send(endpoint, bearing(session.builder("GET"), token), "").await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let modern = call(endpoint, token, "subscriptions/listen", filter).await;
    [legacy, modern].map(|response| {
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body()
    })
}

/// The number of seconds that the streams of a token last.
async fn lifetimes(endpoint: &StreamableHttp, token: &str) -> [u64; 2] {
    let opened = Instant::now();
    let ends = streams(endpoint, token).await.map(|body| async move {
        let end = timeout(Duration::from_secs(100_000), read_to_end(body)).await;
        let text = end.expect("the stream does not end");
        assert!(text.ends_with("retry: 100\n\n"), "{text}");
        opened.elapsed().as_secs()
    });
    let [legacy, modern] = ends;
    let (legacy, modern) = tokio::join!(legacy, modern);
    [legacy, modern]
}

#[tokio::test(start_paused = true)]
async fn streams_of_revocable_tokens_reopen_within_ten_minutes() {
    let issuer = Issuer::new();
    let introspection = Introspection::new(ISSUER, "https://auth.example.com/introspect");
    let introspecting = ProtectedResource::new(URL)
        .introspection(introspection)
        .http_client(issuer.clone());
    // The issuer reports no expiry of the token, or one after a day.
    for token in ["opaque", "opaque-day"] {
        assert_eq!(
            lifetimes(&endpoint(&introspecting), token).await,
            [600, 600],
            "{token}"
        );
    }
    // A JSON Web Token lasts until it expires.
    let lifetimes = lifetimes(&endpoint(&issuer.resource()), &issuer.ending(3_000)).await;
    assert!(
        lifetimes.iter().all(|it| (3_058..=3_060).contains(it)),
        "{lifetimes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn revoked_token_ends_its_streams_within_ten_minutes() {
    let is_revoked = Arc::new(AtomicBool::new(false));
    let revoked = Arc::clone(&is_revoked);
    let resource = ProtectedResource::new(URL).verify_with([ISSUER], move |_| {
        let is_revoked = revoked.load(Ordering::Relaxed);
        async move {
            if is_revoked {
                return Err(AuthError::invalid_token("the token was revoked"));
            }
            let mut token = VerifiedToken::new(ISSUER);
            token.subject = Some("ann".to_owned());
            Ok(token)
        }
    });
    let endpoint = endpoint(&resource);
    let open = streams(&endpoint, "token").await;
    is_revoked.store(true, Ordering::Relaxed);
    for stream in open {
        let end = timeout(Duration::from_secs(601), read_to_end(stream)).await;
        assert!(end.is_ok(), "the stream goes on");
    }
    assert_eq!(whoami(&endpoint, "token").await.0, StatusCode::UNAUTHORIZED);
}

/// An HTTP client that calls an endpoint in the same process.
#[derive(Clone)]
enum InProcess {
    Streamable(StreamableHttp),
    Sse(LegacySse),
}

impl HttpClient for InProcess {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let (mut parts, body) = request.into_parts();
        let host = HeaderValue::from_static("mcp.example.com");
        parts.headers.insert("host", host);
        let target = parts.uri.path_and_query().unwrap().as_str();
        parts.uri = target.parse::<Uri>().unwrap();
        let request = Request::from_parts(parts, Full::new(body));
        let response = match self {
            Self::Streamable(service) => service.clone().oneshot(request).await,
            Self::Sse(service) => service.clone().oneshot(request).await,
        };
        let Ok(response) = response;
        Ok(response.map(|body| {
            HttpBody::new(stream::unfold(body, |mut body| async move {
                let frame = body.frame().await?.unwrap();
                Some((Ok(frame.into_data().unwrap()), body))
            }))
        }))
    }
}

/// An endpoint of that revision that allows no clock skew for the expiry of tokens.
fn serving(server: &Server, issuer: &Issuer, revision: Revision) -> InProcess {
    let resource = issuer.resource().clock_skew(0);
    let hosts = ["mcp.example.com"];
    if revision == Revision::V2024_11_05 {
        let sse = LegacySse::from(server.clone());
        return InProcess::Sse(sse.allowed_hosts(hosts).protect(resource));
    }
    let streamable = StreamableHttp::from(server.clone());
    InProcess::Streamable(streamable.allowed_hosts(hosts).protect(resource))
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_tokens_expire_during_calls() {
    const WATCHED: &str = "file:///a";
    for revision in Revision::ALL {
        let slow = Tool::new("slow", "Take a while", || async {
            sleep(Duration::from_secs(20)).await;
            "done"
        });
        let server = Server::new("files", "1.0.0")
            .tool(slow)
            .resource(Resource::text(WATCHED, "a", "a"))
            .subscriptions();
        let issuer = Issuer::new();
        let tokens = Arc::new(Mutex::new(0));
        let (given, fresh) = (Arc::clone(&tokens), issuer.clone());
        let endpoint = Endpoint::new(URL)
            .http_client(serving(&server, &issuer, revision))
            .bearer_token_from(move || {
                *given.lock().unwrap() += 1;
                // The expiry is in whole seconds: the token may expire up to one second earlier.
                let token = fresh.ending(5);
                async move { Ok(token) }
            });
        let client = Client::new("editor", "1.0.0").revisions([revision]);
        let session = client.connect(endpoint).await.unwrap();
        assert_eq!(session.revision(), revision);
        let mut watch = session.watch_resource(WATCHED).await.unwrap();
        let calling = session.call_tool("slow", json!({}));
        let begun = Instant::now();
        let calling = tokio::spawn(async move { calling.await.map(|it| it.to_text()) });
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        let listening = tokio::spawn(async move {
            while watch.next().await.is_some() {
                hearing.lock().unwrap().push(Instant::now());
            }
        });
        let mut changed = Vec::new();
        // Some changes fall into the moments in which streams end and are reopened.
        for tenth in (0..200).step_by(3) {
            sleep_until(begun + Duration::from_millis(tenth * 100)).await;
            server.resource_updated(WATCHED);
            changed.push(Instant::now());
        }
        sleep(Duration::from_secs(3)).await;
        let heard = heard.lock().unwrap().clone();
        // While a stream is reopened, one notification stands for all changes.
        for at in changed {
            let in_time = at..at + Duration::from_secs(3);
            let is_told = heard.iter().any(|it| in_time.contains(it));
            assert!(is_told, "{revision}: the change after {:?}", at - begun);
        }
        listening.abort();
        assert_eq!(calling.await.unwrap().unwrap(), "done", "{revision}");
        assert!(*tokens.lock().unwrap() > 3, "{revision}");
        // The session of 2024-11-05 has ended by now, with the last token that a message was posted with.
        let closed = session.close().await;
        assert_eq!(closed.is_ok(), revision != Revision::V2024_11_05);
    }
}

#[tokio::test(start_paused = true)]
async fn idle_2024_stream_ends_with_its_token() {
    let issuer = Issuer::new();
    let server = Server::new("files", "1.0.0");
    let service = LegacySse::from(server).protect(issuer.resource().clock_skew(0));
    let client = sse_2024::Client::open_with(&service, &issuer.ending(5)).await;
    let end = timeout(Duration::from_secs(7), read_to_end(client.into_body())).await;
    assert!(end.unwrap().ends_with("retry: 100\n\n"));
}

#[tokio::test(start_paused = true)]
async fn event_is_complete_though_token_expires_while_sending() {
    const SIZE: usize = 200_000;
    let big = Tool::new("big", "Say much", |cx: RequestContext| async move {
        cx.progress(1).await;
        sleep(Duration::from_secs(2)).await;
        "x".repeat(SIZE)
    });
    let issuer = Issuer::new();
    let server = Server::new("files", "1.0.0").tool(big);
    let endpoint = StreamableHttp::from(server).protect(issuer.resource().clock_skew(0));
    let token = issuer.ending(6);
    let session = open(&endpoint, &token, "2025-11-25").await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let posted = bearing(session.builder("POST"), &token);
    send(&endpoint, posted, initialized.to_string()).await;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "big", "arguments": {}, "_meta": {"progressToken": 1}}});
    let posted = bearing(session.builder("POST"), &token);
    let mut lost = send(&endpoint, posted, request.to_string())
        .await
        .into_body();
    let first = lost.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let id = first.lines().find_map(|line| line.strip_prefix("id: "));
    let resumed = bearing(session.builder("GET"), &token).header("last-event-id", id.unwrap());
    drop(lost);
    let mut body = send(&endpoint, resumed, "").await.into_body();
    // The first part of the answer is read before the token expires.
    let mut text = Vec::new();
    while !text.ends_with(b"x") {
        text.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    assert!(text.len() < SIZE);
    sleep(Duration::from_secs(10)).await;
    text.extend(read_to_end(body).await.bytes());
    let text = String::from_utf8(text).unwrap();
    let (events, end) = text.rsplit_once("\n\nretry: 100").unwrap();
    let (_, answer) = events.rsplit_once("data: ").unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    let said = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!((said.len(), end), (SIZE, "\n\n"));
}

#[tokio::test(start_paused = true)]
async fn listening_streams_end_with_their_token() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource());
    for body in streams(&endpoint, &issuer.ending(5)).await {
        let text = read_to_end(body).await;
        assert!(text.ends_with("retry: 100\n\n"), "{text}");
    }
    let kept = self::endpoint(&issuer.resource().keep_streams());
    let bodies = streams(&kept, &issuer.ending(5)).await;
    let ends = futures_util::future::select_all(bodies.map(|body| Box::pin(read_to_end(body))));
    assert!(timeout(Duration::from_secs(600), ends).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn running_call_outlasts_its_token() {
    let issuer = Issuer::new();
    let slow = Tool::new("slow", "Take a while", |cx: RequestContext| async move {
        cx.progress(1).await;
        sleep(Duration::from_secs(1000)).await;
        "done"
    });
    let endpoint = StreamableHttp::from(files().tool(slow)).protect(issuer.resource());
    let mut message = modern(1, "tools/call", json!({"name": "slow", "arguments": {}}));
    message["params"]["_meta"]["progressToken"] = json!("t");
    let request = bearing(modern_builder(&message), &issuer.ending(5));
    let response = send(&endpoint, request, message.to_string()).await;
    let text = read_to_end(response.into_body()).await;
    assert!(
        text.contains("notifications/progress") && text.contains("done"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn stream_of_2024_lasts_like_its_newest_token() {
    let issuer = Issuer::new();
    let service = LegacySse::from(files()).protect(issuer.resource());
    let opened = Instant::now();
    let client = sse_2024::Client::open_with(&service, &issuer.ending(5)).await;
    advance(Duration::from_secs(30)).await;
    let client = client.bearing(&issuer.ending(1000));
    let ping = request(1, "ping", json!({}));
    assert_eq!(client.post(&ping).await, StatusCode::ACCEPTED);
    read_to_end(client.into_body()).await;
    assert!(opened.elapsed() > Duration::from_secs(1000));
}
