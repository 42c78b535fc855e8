//! Resources, prompts and completion of several servers.

use oxmcp::{
    Client, Prompt, Resource, ResourceTemplate, Server, Tool,
    protocol::{self, CallToolResult, CompleteParams, CompletionReference, ContentBlock},
};
use oxmcp_group::GroupSession;

use crate::support::{Remote, clients, connect};

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Note {
    id: String,
}

/// A server whose resources tell its name, and whose tool refers to some of them.
fn office(name: &'static str) -> Server {
    let link = |uri: &str| ContentBlock::resource_link(protocol::Resource::new(uri, "link"));
    let links = move || async move {
        let own = format!("only://{name}");
        let unlisted = format!("{name}://unlisted");
        CallToolResult::new(
            [
                "shared://x",
                &own,
                &unlisted,
                "stray://y",
                "https://example.com/",
            ]
            .map(link),
        )
    };
    let note = move |Note { id }: Note| async move { format!("note {id} of {name}") };
    Server::new(name, "1.0.0")
        .resource(Resource::text("shared://x", "x", format!("x of {name}")))
        .resource(Resource::text(
            format!("only://{name}"),
            "o",
            format!("o of {name}"),
        ))
        .resource(Resource::text("stray://y", "y", format!("y of {name}")).visible_to(|_| false))
        .resource_template(ResourceTemplate::new(
            format!("{name}://{{id}}"),
            "own notes",
            note,
        ))
        .resource_template(
            ResourceTemplate::new("note://{id}", "notes", note).complete("id", [name]),
        )
        .prompt(Prompt::new("greet", "Greets", move || async move {
            format!("hello from {name}")
        }))
        .tool(Tool::new("links", "Refers to resources", links))
}

async fn group(client: Client) -> GroupSession {
    let (a, b) = (Remote::new(office("a")), Remote::new(office("b")));
    connect(client, &[("a", &a), ("b", &b)]).await
}

async fn read(group: &GroupSession, uri: &str) -> (String, String) {
    let result = group.read_resource(uri).await.unwrap();
    let contents = &result.contents[0];
    (contents.uri.clone(), contents.as_text().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn resources_keep_their_uri_unless_shared() {
    for client in clients() {
        let group = group(client).await;
        let uris: Vec<String> = group.resources().iter().map(|it| it.uri.clone()).collect();
        assert_eq!(
            uris,
            [
                "only://a",
                "shared://server@a/x",
                "only://b",
                "shared://server@b/x"
            ]
        );
        for (uri, text) in [
            ("shared://server@a/x", "x of a"),
            ("shared://server@b/x", "x of b"),
            ("only://b", "o of b"),
        ] {
            let expected = (uri.to_owned(), text.to_owned());
            assert_eq!(
                read(&group, uri).await,
                expected,
                "contents have the URI of the group"
            );
        }
        let error = group
            .read_resource("shared://x")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("Resource not found"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn templates_are_routed_and_completed() {
    for client in clients() {
        let group = group(client).await;
        let templates = group.resource_templates();
        let templates: Vec<&str> = templates
            .iter()
            .map(|it| it.uri_template.as_str())
            .collect();
        let expected = [
            "a://{id}",
            "note://server@a/{id}",
            "b://{id}",
            "note://server@b/{id}",
        ];
        assert_eq!(templates, expected);
        assert_eq!(read(&group, "note://server@b/7").await.1, "note 7 of b");
        assert_eq!(read(&group, "a://7").await.1, "note 7 of a");
        let reference = CompletionReference::resource("note://server@b/{id}");
        let completed = group
            .complete(CompleteParams::new(reference, "id", ""))
            .await
            .unwrap();
        assert_eq!(completed.completion.values, ["b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn links_in_results_can_be_read() {
    for client in clients() {
        let group = group(client).await;
        for label in ["b", "a"] {
            let result = group.call_tool(format!("{label}_links"), ()).await.unwrap();
            let uris: Vec<&str> = result
                .content
                .iter()
                .map(|block| match block {
                    ContentBlock::ResourceLink(link) => link.uri.as_str(),
                    other => panic!("{other:?}"),
                })
                .collect();
            let own = [
                format!("shared://server@{label}/x"),
                format!("only://{label}"),
                format!("{label}://unlisted"),
            ];
            assert_eq!(uris[..3], own);
            for (uri, says) in own.iter().zip(["x", "o", "note unlisted"]) {
                assert_eq!(read(&group, uri).await.1, format!("{says} of {label}"));
            }
            // Neither server lists it: a link that is left as it is could be read from the other.
            let expected = format!("stray://server@{label}/y");
            assert_eq!(uris[3], expected);
            assert_eq!(uris[4], "https://example.com/");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_are_merged_and_routed() {
    for client in clients() {
        let group = group(client).await;
        let names: Vec<String> = group.prompts().iter().map(|it| it.name.clone()).collect();
        assert_eq!(names, ["a_greet", "b_greet"]);
        let result = group.get_prompt("b_greet", ()).await.unwrap();
        assert_eq!(result.messages[0].content.as_text(), Some("hello from b"));
        let error = group.get_prompt("greet", ()).await.unwrap_err().to_string();
        assert!(
            error.contains("no server of the group has the prompt `greet`"),
            "{error}"
        );
    }
}
