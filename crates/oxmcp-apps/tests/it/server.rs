//! The metadata and the documents that a server sends, and the mistakes that are reported before it serves.

use oxmcp::{
    Resource, ResourceTemplate, Revision, Server, Tool,
    protocol::{ResourceBody, Tool as Listed},
    testing,
};
use oxmcp_apps::{App, ID, MIME_TYPE, ServerExt, ToolExt, extension, rules};
use serde_json::{Value, json};

use crate::{HTML, URI, clock, revisions, session, view};

fn listed<'a>(tools: &'a [Listed], name: &str) -> &'a Listed {
    tools.iter().find(|tool| tool.name == name).unwrap()
}

#[tokio::test]
async fn metadata_is_sent_in_both_places_and_keys() {
    for revision in revisions() {
        let session = session(&clock(), revision).await;
        let tools = session.tools().all().await.unwrap();
        let visibilities = [
            ("now", json!(["model", "app"])),
            ("wind", json!(["app"])),
            ("stop", json!(["model"])),
        ];
        for (name, visibility) in visibilities {
            let meta = &listed(&tools, name).meta;
            let ui = json!({"resourceUri": URI, "visibility": visibility});
            assert_eq!(meta.get("ui"), Some(&ui), "{revision}: {name}");
            assert_eq!(meta.get("ui/resourceUri"), Some(&json!(URI)));
        }
        assert!(listed(&tools, "plain").meta.is_empty());

        let expected = json!({
            "csp": {"connectDomains": ["https://time.example.com"], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []},
            "permissions": {"clipboardWrite": {}},
            "prefersBorder": true,
        });
        let resources = session.resources().all().await.unwrap();
        let [entry] = &resources[..] else {
            panic!("one resource: {resources:?}");
        };
        assert_eq!(entry.mime_type.as_deref(), Some(MIME_TYPE));
        assert_eq!(entry.meta.get("ui"), Some(&expected), "{revision}");
        let read = session.read_resource(URI).await.unwrap();
        let [contents] = &read.contents[..] else {
            panic!("one document");
        };
        assert_eq!((contents.as_text(), &*contents.uri), (Some(HTML), URI));
        assert_eq!(contents.mime_type.as_deref(), Some(MIME_TYPE));
        assert_eq!(contents.meta.get("ui"), Some(&expected));
        assert_eq!(rules::check(&session).await.unwrap(), []);
    }
}

#[tokio::test]
async fn older_clients_have_tools_without_apps() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let session = session(&clock(), revision).await;
        let tools = session.tools().all().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        // The model of such a host must not see the tool of the view.
        assert_eq!(names, ["now", "plain", "stop"], "{revision}");
        assert!(tools.iter().all(|tool| tool.meta.is_empty()));
    }
}

#[tokio::test]
async fn extension_is_declared_once_for_all_apps() {
    let other = App::new("ui://clock/other.html", b"<!doctype html>".to_vec());
    let server = clock().app(other);
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let session = session(&server, revision).await;
        let declared = session.server_capabilities().extensions.as_ref().unwrap();
        assert_eq!(declared.get(ID), Some(&json!({})));
        let read = session
            .read_resource("ui://clock/other.html")
            .await
            .unwrap();
        assert!(matches!(&read.contents[0].body, ResourceBody::Blob(_)));
    }
}

#[tokio::test]
async fn handlers_know_whether_the_client_shows_apps() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let shows = session(&clock(), revision).await;
        let result = shows.call_tool("now", ()).await.unwrap();
        assert_eq!(result.as_text(), Some("ten past two, as shown"));
        let bare = testing::connect(&clock()).revision(revision).await.unwrap();
        let result = bare.call_tool("now", ()).await.unwrap();
        assert_eq!(result.as_text(), Some("ten past two"));
        // The metadata is sent nevertheless: some hosts declare nothing.
        let tools = bare.tools().all().await.unwrap();
        assert!(listed(&tools, "now").meta.get("ui").is_some());
    }
}

#[tokio::test]
async fn document_of_a_function_is_made_per_request() {
    let page = App::dynamic(URI, |cx| async move {
        Ok(format!("<!doctype html><p>{}", cx.revision()))
    });
    let server = Server::new("clock", "1.0.0").app(page.border(false));
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let session = session(&server, revision).await;
        let read = session.read_resource(URI).await.unwrap();
        let html = format!("<!doctype html><p>{revision}");
        assert_eq!(read.contents[0].as_text(), Some(&*html));
        let ui = read.contents[0].meta.get("ui").unwrap();
        assert_eq!(ui["prefersBorder"], false);
        assert_eq!(ui.get("domain"), None);
    }
}

/// The text of the mistake in a server, without the name of the extension.
fn mistake(server: &Server) -> String {
    let error = server.check().unwrap_err();
    let text = error.message().to_owned();
    let text = text.strip_prefix(&format!("the extension {ID}: "));
    text.unwrap_or_else(|| error.message()).to_owned()
}

#[test]
fn mistakes_in_apps_are_reported_before_serving() {
    let apps = [
        (
            App::new("https://a", HTML),
            "APP-001: resource \"https://a\": the URI of an app",
        ),
        (
            App::new(URI, ""),
            "APP-003: resource \"ui://clock/view.html\": it is empty",
        ),
        (
            App::new(URI, "<p>hi"),
            "APP-004: resource \"ui://clock/view.html\": it is not an HTML5",
        ),
        (
            App::new(URI, b"<!doctype html>\xff".to_vec()),
            "APP-004: resource \"ui://clock/view.html\": it is not UTF-8",
        ),
        (
            view().connect("time.example.com"),
            "APP-009: resource \"ui://clock/view.html\": `csp.connectDomains`",
        ),
        (
            view().resources("https://a.example/x"),
            "APP-009: resource \"ui://clock/view.html\": `csp.resourceDomains`",
        ),
        (
            view().frames("wss://a.example"),
            "APP-009: resource \"ui://clock/view.html\": `csp.frameDomains`",
        ),
        (
            view().base_uri("*"),
            "APP-009: resource \"ui://clock/view.html\": `csp.baseUriDomains`",
        ),
    ];
    for (app, expected) in apps {
        assert!(
            app.check().unwrap_err().message().starts_with(expected),
            "{expected}"
        );
        let server = Server::new("clock", "1.0.0").app(app.clone());
        assert!(
            mistake(&server).starts_with(expected),
            "{}",
            mistake(&server)
        );
        // A good app beside it changes nothing.
        let fine = App::new("ui://clock/fine.html", HTML);
        let server = Server::new("clock", "1.0.0").apps([fine, app]);
        assert!(mistake(&server).starts_with(expected));
    }
}

fn tool_with(ui: Value) -> Tool {
    Tool::new("now", "Tell the time", || async { "" }).meta("ui", ui)
}

#[test]
fn mistakes_in_tools_are_reported_before_serving() {
    let tools = [
        (
            tool_with(json!({"resourceUri": "http://a"})),
            "APP-001: tool \"now\"",
        ),
        (
            tool_with(json!({"resourceUri": "ui://other"})),
            "APP-005: tool \"now\": the server has no resource \"ui://other\"; add the app to the server with `.app(…)`",
        ),
        (tool_with(json!([])), "APP-007: tool \"now\""),
        (
            tool_with(json!({"visibility": ["user"]})),
            "APP-011: tool \"now\"",
        ),
    ];
    for (tool, expected) in tools {
        let server = Server::new("clock", "1.0.0").app(view()).tool(tool);
        assert!(
            mistake(&server).starts_with(expected),
            "{}",
            mistake(&server)
        );
    }
    let page = Resource::text("ui://clock/by-hand.html", "page", HTML);
    let server = Server::new("clock", "1.0.0").app(view()).resource(page);
    assert!(mistake(&server).starts_with("APP-002: resource \"ui://clock/by-hand.html\""));

    // An app that is attached and not added.
    let tool = Tool::new("now", "Tell the time", || async { "" }).app(&view());
    let server = Server::new("clock", "1.0.0").tool(tool);
    assert!(mistake(&server).contains("io.modelcontextprotocol/ui"));
}

#[test]
fn template_can_serve_the_app_of_a_tool() {
    let pages = ResourceTemplate::dynamic("ui://clock/{page}", "page", |_cx, _variables| async {
        HTML
    });
    let server = Server::new("clock", "1.0.0")
        .extension(extension())
        .tool(tool_with(json!({"resourceUri": "ui://clock/view.html"})))
        .resource_template(pages);
    assert!(server.check().is_ok());
    // A warning does not stop a server.
    let flat = Tool::new("old", "Be old", || async { "" }).meta("ui/resourceUri", "ui://clock/a");
    assert!(server.tool(flat).check().is_ok());
}
