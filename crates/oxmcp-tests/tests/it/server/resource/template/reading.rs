//! Matching of URIs to templates, and the variables that handlers receive.

use crate::server::resource::template::*;

/// A template whose contents are the template itself.
fn named(uri_template: &'static str) -> ResourceTemplate {
    ResourceTemplate::dynamic(
        uri_template,
        uri_template,
        move |_cx, _variables| async move { uri_template },
    )
}

async fn with_context(cx: RequestContext, Row { table, id }: Row) -> String {
    format!("{table} {id} {}", cx.revision())
}

#[tokio::test]
async fn variables_reach_the_handler_in_every_revision() {
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

#[tokio::test]
async fn variables_have_the_types_of_the_fields() {
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
async fn uri_with_invalid_variable_is_not_found() {
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
            ("db://%FF/1", "\"table\": \"%FF\" does not decode to UTF-8"),
            ("raw://%FF", "\"x\": \"%FF\" does not decode to UTF-8"),
            ("raw://%zz", "\"x\": \"%zz\" does not decode to UTF-8"),
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
async fn uri_matches_resource_before_most_literal_template() {
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
async fn first_matching_template_decides() {
    let server = server([
        ResourceTemplate::dynamic("a://b{x}", "none", |_cx, _variables| async {
            None::<String>
        }),
        named("a://{x}"),
    ]);
    let answer = read(&server, Revision::LATEST, "a://bc").await;
    assert_eq!(answer["error"]["message"], "Resource not found: a://bc");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every value of a variable arrives unchanged.
    #[test]
    fn variable_values_arrive_unchanged(table in "\\PC{1,20}", id: u32) {
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
