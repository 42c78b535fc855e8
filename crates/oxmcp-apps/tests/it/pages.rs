//! Opening apps from a session, whether they have their metadata in the listing, in the contents, or in both.

use std::{future::pending, sync::Arc};

use oxmcp::{
    Error, RequestContext, Resource, Revision, Server,
    middleware::{Next, Request, from_fn},
    protocol::ResourceContents,
};
use oxmcp_apps::{
    AppMeta, MIME_TYPE, Permission,
    host::{AppPage, is_for_app, is_for_model},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{HTML, URI, clock, revisions, session};

/// A server whose app has this metadata in its entry and in its contents.
fn server(entry: Option<Value>, contents: Option<Value>) -> Server {
    let page = Resource::new(URI, "page", move |_: RequestContext| {
        let meta = contents.clone();
        async move {
            let mut page = ResourceContents::from(HTML);
            if let Some(meta) = meta {
                page.meta.insert("ui", meta);
            }
            page
        }
    });
    let page = page.mime_type(MIME_TYPE);
    Server::new("s", "1.0.0").resource(match entry {
        Some(entry) => page.meta("ui", entry),
        None => page,
    })
}

#[tokio::test]
async fn app_of_a_tool_is_opened() {
    for revision in revisions() {
        let session = session(&clock(), revision).await;
        let tools = session.tools().all().await.unwrap();
        for tool in &tools {
            let page = AppPage::open(&session, tool).await.unwrap();
            let Some(page) = page else {
                assert_eq!(tool.name, "plain");
                continue;
            };
            assert_eq!((&*page.uri, &*page.html), (URI, HTML), "{revision}");
            assert_eq!(page.meta.prefers_border, Some(true));
            assert_eq!(page.meta.permissions, [Permission::ClipboardWrite]);
            assert_eq!(page.allow(), "clipboard-write");
            assert!(
                page.policy()
                    .contains("connect-src https://time.example.com;")
            );
            let html = page.html_with_policy();
            assert!(html.starts_with("<!doctype html><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
            assert!(html.ends_with("\"><!doctype html><p>ten past two"));
        }
    }
}

#[tokio::test]
async fn metadata_of_the_contents_wins() {
    let connect = |origin: &str| json!({"csp": {"connectDomains": [origin]}});
    let (a, b) = ("https://a.example", "https://b.example");
    let cases = [
        (None, None, None),
        (Some(connect(a)), None, Some(a)),
        (None, Some(connect(b)), Some(b)),
        (Some(connect(a)), Some(connect(b)), Some(b)),
        // Metadata without a policy allows nothing, even if the listing allows more.
        (Some(connect(a)), Some(json!({"prefersBorder": true})), None),
    ];
    for (entry, contents, expected) in cases {
        for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
            let server = server(entry.clone(), contents.clone());
            let session = session(&server, revision).await;
            let page = AppPage::read(&session, URI).await.unwrap();
            let origins: Vec<_> = expected.into_iter().collect();
            assert_eq!(page.meta.csp.connect, origins, "{entry:?} {contents:?}");
        }
    }
}

#[tokio::test]
async fn app_opens_if_listing_is_refused() {
    let refuse = |request: Request, next: Next| async move {
        match request.method() {
            "resources/list" => Err(Error::method_not_found("resources/list")),
            _ => next.run(request).await,
        }
    };
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let entry = json!({"csp": {"connectDomains": ["https://a.example"]}});
        let server = server(Some(entry), None).layer(from_fn(refuse));
        let session = session(&server, revision).await;
        let page = AppPage::read(&session, URI).await.unwrap();
        assert_eq!(page.html, HTML);
        // Without metadata it can load nothing.
        assert_eq!(page.meta, AppMeta::default());
    }
}

// Closing a session waits for calls in flight, in virtual time.
#[tokio::test(start_paused = true)]
async fn app_does_not_open_if_the_session_is_lost_meanwhile() {
    let listing = Arc::new(Notify::new());
    let begun = Arc::clone(&listing);
    let hang = move |request: Request, next: Next| {
        let begun = Arc::clone(&begun);
        async move {
            if request.method() == "resources/list" {
                begun.notify_one();
                pending::<()>().await;
            }
            next.run(request).await
        }
    };
    let server = server(None, None).layer(from_fn(hang));
    let session = session(&server, Revision::LATEST).await;
    let (page, closed) = tokio::join!(AppPage::read(&session, URI), async {
        listing.notified().await;
        session.close().await
    });
    closed.unwrap();
    assert!(page.unwrap_err().is_closed());
}

#[tokio::test]
async fn only_apps_are_opened() {
    let server = Server::new("s", "1.0.0").resource(Resource::text("docs://a", "a", HTML));
    let session = session(&server, Revision::LATEST).await;
    let error = AppPage::read(&session, "docs://a").await.unwrap_err();
    assert_eq!(
        error.message(),
        "could not open the app \"docs://a\": its URI does not begin with `ui://`"
    );
    assert!(AppPage::read(&session, "ui://a").await.is_err());
}

#[tokio::test]
async fn agent_and_view_see_their_tools() {
    let session = session(&clock(), Revision::LATEST).await;
    let tools = session.tools().all().await.unwrap();
    let names = |sees: fn(&oxmcp::protocol::Tool) -> bool| {
        let seen = tools.iter().filter(|it| sees(it));
        seen.map(|it| &*it.name).collect::<Vec<_>>()
    };
    assert_eq!(names(is_for_model), ["now", "plain", "stop"]);
    assert_eq!(names(is_for_app), ["now", "plain", "wind"]);
}
