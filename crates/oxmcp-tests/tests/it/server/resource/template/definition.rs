//! Templates as they are defined and listed.

use crate::server::resource::template::*;

fn problem(template: ResourceTemplate) -> String {
    let error = Server::new("x", "1").add_resource_templates([template]);
    error.unwrap_err().to_string()
}

#[tokio::test]
async fn template_not_matching_its_struct_is_refused() {
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
    resource template "db://{tabel}/{id}": field "table" is not a variable of the template; did you mean "tabel"? (variables: "tabel", "id")
    resource template "db://{table}": field "id" is not a variable of the template (variables: "table")
    resource template "db://{table}/{id}/{column}": no field for the variable "column"; add one, or remove the variable
    resource template "db://{table}/{id*}": variable "id" is a list because of its "*", but its field is not; use a `Vec`, or remove the "*"
    resource template "db://{table}{id}": ambiguous template: nothing separates {table} and {id}; put "/" or "-" between them
    resource template "{table}/{id": unclosed "{" in "{id"
    resource template "/{table}/{id}": missing scheme; expected a URI such as "file:///notes.txt" or "notes://today"
    resource template "table/{id}/{table}": missing scheme; expected a URI such as "file:///notes.txt" or "notes://today"
    resource template "db://{inner}": the field "inner" cannot be read from a string, since it is an object with "table", "id"; use a String, a number, a bool, an enum without data, or an Option of these
    resource template "db://{inner}": arguments need names, but this schema accepts a string; use a struct with named fields
    resource template "db://{table}/{id}": unknown argument "tabel"; did you mean "table"? (arguments: "table", "id")
    "#);
    let server = server([ResourceTemplate::new("db://{tabel}/{id}", "row", row)]);
    let error = testing::connect(&server).await.unwrap_err();
    assert!(error.message().contains("did you mean"), "{error}");
}

#[tokio::test]
async fn map_accepts_any_variable() {
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
async fn template_list_contains_all_metadata() {
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
async fn template_variables_are_completed() {
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
async fn client_expands_listed_templates() {
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
            .contains("unclosed")
    );
    assert!(
        oxmcp::protocol::ResourceTemplate::new("db://{x}", "x")
            .expand(7)
            .is_err()
    );
}
