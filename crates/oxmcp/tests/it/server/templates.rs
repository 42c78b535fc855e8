//! Resource templates: which one reads a URI, and what its handler gets.

use oxmcp::{JsonSchema, RequestContext, Resource, ResourceTemplate, Revision, Server, testing};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::answer;

#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Row {
    table: String,
    id: u32,
}

fn server(templates: impl IntoIterator<Item = ResourceTemplate>) -> Server {
    Server::new("database", "1.0.0").resource_templates(templates)
}

async fn read(server: &Server, revision: Revision, uri: &str) -> Value {
    answer(server, revision, "resources/read", json!({"uri": uri})).await
}

/// The text that is read.
async fn text(server: &Server, revision: Revision, uri: &str) -> String {
    let answer = read(server, revision, uri).await;
    let text = answer["result"]["contents"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A template that says which one it is.
fn named(uri_template: &'static str) -> ResourceTemplate {
    ResourceTemplate::dynamic(
        uri_template,
        uri_template,
        move |_cx, _variables| async move { uri_template },
    )
}

async fn row(Row { table, id }: Row) -> String {
    format!("{table} {id}")
}

async fn with_context(cx: RequestContext, Row { table, id }: Row) -> String {
    format!("{table} {id} {}", cx.revision())
}

#[tokio::test]
async fn o5_variables_reach_the_handler_in_every_revision() {
    let server = server([
        ResourceTemplate::new("db://{table}/{id}", "row", row),
        ResourceTemplate::new("dbx://{table}/{id}", "row", with_context),
        ResourceTemplate::dynamic(
            "raw://{+path}{?q,tag*}",
            "raw",
            |_cx, variables| async move {
                let tags: Vec<_> = variables.get_all("tag").collect();
                let names: Vec<_> = variables.names().collect();
                format!(
                    "{} {:?} {:?} {tags:?} {names:?}",
                    variables.uri(),
                    variables.get("path"),
                    variables.get("q"),
                )
            },
        ),
    ]);
    for revision in Revision::ALL {
        assert_eq!(text(&server, revision, "db://users/7").await, "users 7");
        assert_eq!(
            text(&server, revision, "db://a%2Fb%20%C3%A9/7").await,
            "a/b é 7"
        );
        assert_eq!(text(&server, revision, "db://é/7").await, "é 7");
        let expected = format!("users 7 {revision}");
        assert_eq!(text(&server, revision, "dbx://users/7").await, expected);
        assert_eq!(
            text(&server, revision, "raw://a/..%2Fb?tag=1&tag=2").await,
            r#"raw://a/..%2Fb?tag=1&tag=2 Some("a/../b") None ["1", "2"] ["path", "tag"]"#
        );
    }
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    Desc,
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
struct Query {
    name: String,
    offset: Option<i64>,
    ratio: Option<f64>,
    all: Option<bool>,
    order: Option<Order>,
    #[serde(default)]
    tag: Vec<u8>,
    ids: Option<Vec<String>>,
}

#[tokio::test]
async fn o5_values_are_what_the_fields_say() {
    let query = ResourceTemplate::new(
        "q://{name}{?offset,ratio,all,order,tag*,ids}",
        "query",
        |query: Query| async move { serde_json::to_string(&query).unwrap() },
    );
    let server = server([query]);
    let revision = Revision::LATEST;
    assert_eq!(
        text(
            &server,
            revision,
            "q://007?order=desc&tag=1&all=true&tag=2&offset=-3&ratio=0.5&ids=a,b%2Cc"
        )
        .await,
        r#"{"name":"007","offset":-3,"ratio":0.5,"all":true,"order":"desc","tag":[1,2],"ids":["a","b,c"]}"#
    );
    assert_eq!(
        text(&server, revision, "q://true").await,
        r#"{"name":"true","offset":null,"ratio":null,"all":null,"order":null,"tag":[],"ids":null}"#
    );
}

#[tokio::test]
async fn o5_o8_a_value_that_a_field_cannot_have_is_no_resource() {
    let server = server([
        ResourceTemplate::new("db://{table}/{id}", "row", row),
        ResourceTemplate::new(
            "q://{name}{?offset,ratio,all,order,tag*,ids}",
            "query",
            |_: Query| async { "" },
        ),
        named("raw://{x}"),
    ]);
    for revision in Revision::ALL {
        let code = if revision.is_modern() { -32602 } else { -32002 };
        for (uri, said) in [
            (
                "db://users/abc",
                "\"id\": expected an integer of at least 0, got the string \"abc\"",
            ),
            ("db://users/-1", "\"id\""),
            ("db://users/5000000000", "\"id\""),
            ("db://%FF/1", "\"table\": \"%FF\" stands for no UTF-8 text"),
            ("raw://%FF", "\"x\": \"%FF\" stands for no UTF-8 text"),
            ("raw://%zz", "\"x\": \"%zz\" stands for no UTF-8 text"),
            ("q://a?order=up", "\"order\""),
            ("q://a?tag=1&tag=x", "\"tag/1\""),
        ] {
            let answer = read(&server, revision, uri).await;
            assert_eq!(answer["error"]["code"], code, "{answer}");
            assert_eq!(answer["error"]["data"], json!({"uri": uri}));
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.starts_with("Resource not found: "), "{message}");
            assert!(message.contains(said), "{message}");
        }
        for uri in ["db://users", "db://users/7/8", "q://a?unknown=1", "db://"] {
            let answer = read(&server, revision, uri).await;
            let message = format!("Resource not found: {uri}");
            assert_eq!(answer["error"]["message"], message);
        }
    }
}

#[tokio::test]
async fn o5_a_uri_goes_to_its_resource_then_to_the_most_literal_template() {
    let server = server([
        named("a://{+rest}"),
        named("a://{x}/{y}"),
        named("a://{x}"),
        named("a://b/{y}"),
        named("a://{x}/c"),
        named("{+anything}"),
    ])
    .resource(Resource::text("a://b/exact", "exact", "exact"));
    for revision in Revision::ALL {
        for (uri, expected) in [
            ("a://b/exact", "exact"),
            ("a://b/d", "a://b/{y}"),
            ("a://b/c", "a://b/{y}"),
            ("a://d/c", "a://{x}/c"),
            ("a://d/d", "a://{x}/{y}"),
            ("a://d", "a://{+rest}"),
            ("a://d/e/f", "a://{+rest}"),
            ("b://d", "{+anything}"),
        ] {
            assert_eq!(text(&server, revision, uri).await, expected, "{uri}");
        }
    }
    server.remove_resource_templates(["a://{+rest}"]);
    assert_eq!(text(&server, Revision::LATEST, "a://d").await, "a://{x}");
}

#[tokio::test]
async fn o5_the_first_template_that_matches_decides() {
    let server = server([
        ResourceTemplate::dynamic("a://b{x}", "none", |_cx, _variables| async {
            None::<String>
        }),
        named("a://{x}"),
    ]);
    let answer = read(&server, Revision::LATEST, "a://bc").await;
    assert_eq!(answer["error"]["message"], "Resource not found: a://bc");
}

fn problem(template: ResourceTemplate) -> String {
    let error = Server::new("x", "1").add_resource_templates([template]);
    error.unwrap_err().to_string()
}

#[tokio::test]
async fn o3_a_template_that_its_struct_does_not_fit_is_refused() {
    let of_row = |uri_template| problem(ResourceTemplate::new(uri_template, "row", row));
    #[derive(serde::Deserialize, JsonSchema)]
    struct Nested {
        #[expect(dead_code, reason = "it is never read")]
        inner: Row,
    }
    let problems = [
        of_row("db://{tabel}/{id}"),
        of_row("db://{table}"),
        of_row("db://{table}/{id}/{column}"),
        of_row("db://{table}/{id*}"),
        of_row("db://{table}{id}"),
        of_row("{table}/{id"),
        of_row("/{table}/{id}"),
        of_row("table/{id}/{table}"),
        problem(ResourceTemplate::new(
            "db://{inner}",
            "row",
            |_: Nested| async { "" },
        )),
        problem(ResourceTemplate::new(
            "db://{inner}",
            "row",
            |_: String| async { "" },
        )),
        problem(
            ResourceTemplate::new("db://{table}/{id}", "row", row).complete("tabel", ["users"]),
        ),
    ];
    insta::assert_snapshot!(problems.join("\n"), @r#"
    resource template "db://{tabel}/{id}": the input has a field "table", which is no variable of the template, did you mean "tabel"? (its variables are "tabel", "id")
    resource template "db://{table}": the input has a field "id", which is no variable of the template (its variables are "table")
    resource template "db://{table}/{id}/{column}": the input has no field for the variable "column"; add one, or take the variable out
    resource template "db://{table}/{id*}": the variable "id" is a list, for it ends with "*", and its field is none; let it be a Vec, or leave the "*" out
    resource template "db://{table}{id}": nobody knows where {table} ends and {id} begins; put something between them, "/" or "-"
    resource template "{table}/{id": the "{" of "{id" is never closed
    resource template "/{table}/{id}": it must begin with a scheme, as "file:///notes.txt" or "notes://today" do
    resource template "table/{id}/{table}": it must begin with a scheme, as "file:///notes.txt" or "notes://today" do
    resource template "db://{inner}": the field "inner" is an object with "table", "id", and all that comes is strings; let it be a String, a number, a bool, an enum without data, or an Option of these
    resource template "db://{inner}": arguments have names, and a string has none; use a struct with named fields (for a single value: with one field)
    resource template "db://{table}/{id}": there is no argument "tabel", did you mean "table"? (the arguments are "table", "id")
    "#);
    let server = server([ResourceTemplate::new("db://{tabel}/{id}", "row", row)]);
    let error = testing::connect(&server).await.unwrap_err();
    assert!(error.message().contains("did you mean"), "{error}");
}

#[tokio::test]
async fn o3_a_map_takes_any_variable() {
    type Map = std::collections::BTreeMap<String, String>;
    let template = ResourceTemplate::new("a://{x}/{y}", "map", |map: Map| async move {
        format!("{map:?}")
    });
    assert_eq!(
        text(&server([template]), Revision::LATEST, "a://1/2").await,
        r#"{"x": "1", "y": "2"}"#
    );
}

#[tokio::test]
async fn o3_the_list_says_all_that_was_said_of_a_template() {
    let server = server([ResourceTemplate::new("db://{table}/{id}", "row", row)
        .title("Row")
        .description("a row of a table")
        .mime_type("text/plain")
        .meta("com.example/a", 1)]);
    let list = answer(
        &server,
        Revision::LATEST,
        "resources/templates/list",
        json!({}),
    )
    .await;
    assert_eq!(
        list["result"]["resourceTemplates"],
        json!([{
            "uriTemplate": "db://{table}/{id}", "name": "row", "title": "Row", "description": "a row of a table",
            "mimeType": "text/plain", "_meta": {"com.example/a": 1},
        }])
    );
}

#[tokio::test]
async fn p6_variables_are_completed() {
    let query = ResourceTemplate::new(
        "q://{name}{?offset,ratio,all,order,tag*,ids}",
        "query",
        |_: Query| async { "" },
    )
    .complete("name", ["alpha", "beta", "alps"]);
    let server = server([query]);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        for (variable, typed, expected) in [
            ("name", "al", vec!["alpha", "alps"]),
            ("order", "", vec!["asc", "desc"]),
            ("all", "t", vec!["true"]),
            ("offset", "1", vec![]),
        ] {
            let template = "q://{name}{?offset,ratio,all,order,tag*,ids}";
            let completed = session.complete_resource(template, variable, typed);
            let completed = completed.await.unwrap();
            assert_eq!(
                completed.completion.values, expected,
                "{variable} in {revision}"
            );
        }
        let unknown = session.complete_resource("q://{x}", "x", "");
        let error = unknown.await.unwrap_err();
        assert!(
            error.message().contains("Unknown resource template"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_client_makes_uris_of_the_templates_that_it_is_listed() {
    let server = server([ResourceTemplate::new("db://{table}/{id}", "row", row)]);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let templates = session.resource_templates().all().await.unwrap();
        let uri = templates[0]
            .expand(json!({"table": "a/b ?é", "id": 7}))
            .unwrap();
        let read = session.read_resource(uri).await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some("a/b ?é 7"), "{revision}");
    }
    let wrong = oxmcp::protocol::ResourceTemplate::new("db://{x", "x");
    assert!(
        wrong
            .expand(())
            .unwrap_err()
            .to_string()
            .contains("never closed")
    );
    assert!(
        oxmcp::protocol::ResourceTemplate::new("db://{x}", "x")
            .expand(7)
            .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a client puts into a variable arrives as it was.
    #[test]
    fn o5_values_survive_the_way(table in "\\PC{1,20}", id: u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(async {
            let template = oxmcp::protocol::ResourceTemplate::new("db://{table}/{id}", "row");
            let uri = template.expand(json!({"table": table, "id": id})).unwrap();
            let server = server([ResourceTemplate::new("db://{table}/{id}", "row", row)]);
            text(&server, Revision::LATEST, &uri).await
        });
        prop_assert_eq!(found, format!("{table} {id}"));
    }
}
