//! Templates as they are defined and listed.

use crate::server::resource::template::*;

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
