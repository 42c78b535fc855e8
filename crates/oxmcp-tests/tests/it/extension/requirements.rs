//! Requirements of extensions: capabilities and other extensions of their own side.

use oxmcp::{
    Resource, ResourceTemplate, Tool,
    protocol::{ElicitAction, ElicitFormParams, ElicitResult},
    transport::in_memory,
};
use serde_json::json;

use crate::extension::*;
use crate::support::{idle, modern, script};

const OTHER: &str = "com.example/other";

fn other() -> Extension {
    Extension::new(OTHER)
}

async fn problem_of(server: &Server) -> String {
    let (_near, far) = in_memory();
    let refused = server.connect(far).await.err();
    let checked = server.check().err();
    let text = |error: Option<oxmcp::Error>| error.map(|it| it.message().to_owned());
    let (refused, checked) = (text(refused), text(checked));
    assert_eq!(refused, checked);
    checked.unwrap_or_default()
}

#[tokio::test]
async fn missing_required_extension_error_names_both() {
    let bare = server(clock().requires(OTHER));
    assert_eq!(
        problem_of(&bare).await,
        "the extension com.example/clock requires the extension com.example/other, which was not added"
    );
    // The order in which extensions are added does not matter, and two extensions may require each other.
    let after = server(clock().requires(OTHER)).extension(other());
    assert_eq!(problem_of(&after).await, "");
    let both = server(clock().requires(OTHER)).extension(other().requires(ID));
    assert_eq!(problem_of(&both).await, "");
}

#[tokio::test]
async fn server_without_a_required_capability_is_refused() {
    let cases = ["tools", "resources.subscribe", "tools.listChanged"];
    for path in cases {
        let bare = server(clock().requires_capability(path));
        let problem = problem_of(&bare).await;
        let expected = format!("the extension {ID} requires the capability {path}, ");
        assert!(problem.starts_with(&expected), "{problem}");
    }
    let equipped = server(clock().requires_capability("tools.listChanged")).tool(idle("t"));
    assert_eq!(problem_of(&equipped).await, "");
    // A capability that is declared as `false` is missing.
    assert!(
        !problem_of(&equipped.without_list_changes())
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn client_must_satisfy_its_extensions_requirements() {
    let sampling = clock().requires_capability("elicitation").requires(OTHER);
    let connect = async |client: Client| {
        let session = testing::connect(&Server::new("s", "1"))
            .client(&client)
            .await;
        session.err().map(|error| error.message().to_owned())
    };
    let problem = connect(client(sampling.clone())).await.unwrap();
    assert!(
        problem.contains("requires the capability elicitation"),
        "{problem}"
    );
    let asks = client(sampling.clone())
        .on_elicit(async |_: ElicitFormParams| ElicitResult::new(ElicitAction::Decline));
    let problem = connect(asks.clone()).await.unwrap();
    assert!(
        problem.contains("requires the extension com.example/other"),
        "{problem}"
    );
    assert_eq!(connect(asks.extension(other())).await, None);
}

#[tokio::test]
async fn extension_added_while_serving_waits_for_its_requirements() {
    let server = Server::new("s", "1").tool(Tool::new("t", "A tool", || async { "done" }));
    let mut peer = script(&server).await;
    let add = clock()
        .requires(OTHER)
        .method::<Add, _>(.., async |now: Hours| now);
    let server = server.extension(add);
    let ask = |id| modern(id, Add::NAME, json!({"hours": 1}));
    let refused = peer.ask(ask(1)).await.unwrap();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(ID) && message.contains(OTHER), "{message}");
    assert!(server.check().is_err());
    let server = server.extension(other());
    let answer = peer.ask(ask(2)).await.unwrap();
    assert_eq!(answer["result"]["hours"], 1, "{answer}");
    server.check().unwrap();
}

#[tokio::test]
async fn extension_check_stops_a_bad_server() {
    let uris = ["docs://a", "docs://page/7", "docs://b"];
    for (uri, is_served) in uris.into_iter().zip([true, true, false]) {
        let extension = clock().check_features(move |features| {
            assert_eq!(features.tools()[0].name, "t");
            assert_eq!(features.resources()[0].uri, "docs://a");
            let templates = features.resource_templates();
            assert_eq!(templates[0].uri_template, "docs://page/{number}");
            match features.has_resource(uri) {
                true => Ok(()),
                false => Err(format!("{uri} is missing")),
            }
        });
        let page = ResourceTemplate::dynamic("docs://page/{number}", "page", |_, _| async { "p" });
        let server = server(extension)
            .tool(idle("t"))
            .resource(Resource::text("docs://a", "a", "a"))
            .resource_template(page);
        let expected = match is_served {
            true => "",
            false => "the extension com.example/clock: docs://b is missing",
        };
        assert_eq!(problem_of(&server).await, expected);
        // A clone ends the building of the server, which changes nothing.
        assert_eq!(problem_of(&server.clone()).await, expected);
    }
}
