//! Reads of resources, and of unknown URIs.

use crate::server::resource::*;

/// The only contents of the resource.
async fn contents(resource: Resource, revision: Revision) -> Value {
    let mut answer = read(&server(resource), revision, URI).await;
    assert!(answer.get("error").is_none(), "{answer}");
    let contents = answer["result"]["contents"].take();
    assert_eq!(contents.as_array().unwrap().len(), 1, "{contents}");
    contents[0].clone()
}

async fn with_context(cx: RequestContext) -> String {
    cx.revision().to_string()
}

#[tokio::test]
async fn every_handler_form_reads_in_every_revision() {
    for revision in Revision::ALL {
        for (resource, text) in [
            (Resource::new(URI, "x", function), "text"),
            (Resource::new(URI, "x", with_context), revision.as_str()),
            (Resource::new(URI, "x", || async { "closure" }), "closure"),
            (
                Resource::new(URI, "x", |cx: RequestContext| async move {
                    let client = cx.peer_info().map(|info| info.name.clone());
                    client.unwrap_or_default()
                }),
                "scripted",
            ),
            (Resource::text(URI, "x", "fixed"), "fixed"),
        ] {
            let contents = contents(resource, revision).await;
            assert_eq!(contents, json!({"uri": URI, "text": text}), "{revision}");
        }
    }
}

#[tokio::test]
async fn handler_return_type_decides_the_contents() {
    let text = || ResourceContents::from("x");
    for revision in Revision::ALL {
        for resource in [
            Resource::new(URI, "x", || async { "x" }),
            Resource::new(URI, "x", || async { String::from("x") }),
            Resource::new(URI, "x", || async { Box::<str>::from("x") }),
            Resource::new(URI, "x", || async { Cow::Borrowed("x") }),
            Resource::new(URI, "x", move || async move { text() }),
            Resource::new(URI, "x", move || async move { vec![text()] }),
            Resource::new(URI, "x", move || async move { [text()] }),
            Resource::new(
                URI,
                "x",
                move || async move { ReadResourceResult::from(text()) },
            ),
            Resource::new(URI, "x", || async { Some("x") }),
            Resource::new(URI, "x", || async { Ok::<_, io::Error>("x") }),
            Resource::new(URI, "x", || async { Ok::<_, Error>(Some("x")) }),
        ] {
            let contents = contents(resource, revision).await;
            assert_eq!(contents, json!({"uri": URI, "text": "x"}), "{revision}");
        }
        for resource in [
            Resource::new(URI, "x", || async { vec![1u8, 2, 3] }),
            Resource::new(URI, "x", || async { Bytes::from_static(&[1, 2, 3]) }),
            Resource::new(URI, "x", || async { Blob::from(&[1, 2, 3]) }),
            Resource::blob(URI, "x", vec![1, 2, 3]),
        ] {
            let contents = contents(resource, revision).await;
            assert_eq!(contents, json!({"uri": URI, "blob": "AQID"}), "{revision}");
        }
    }
}

#[tokio::test]
async fn omitted_uri_and_type_are_filled_in() {
    let several = || async {
        [
            ResourceContents::from("own"),
            ResourceContents::from("typed").with_mime_type("text/html"),
            ResourceContents::text(URI, "named"),
            ResourceContents::text("app://part", "other"),
        ]
    };
    let server = server(Resource::new(URI, "x", several).mime_type("text/csv")).resource_template(
        ResourceTemplate::dynamic("app://all/{x}", "all", |_cx, _variables| async { "y" })
            .mime_type("text/css"),
    );
    for revision in Revision::ALL {
        let answer = read(&server, revision, URI).await;
        assert_eq!(
            answer["result"]["contents"],
            json!([
                {"uri": URI, "mimeType": "text/csv", "text": "own"},
                {"uri": URI, "mimeType": "text/html", "text": "typed"},
                {"uri": URI, "mimeType": "text/csv", "text": "named"},
                {"uri": "app://part", "text": "other"},
            ])
        );
        let answer = read(&server, revision, "app://all/%20").await;
        assert_eq!(
            answer["result"]["contents"],
            json!([{"uri": "app://all/%20", "mimeType": "text/css", "text": "y"}])
        );
    }
}

#[tokio::test]
async fn unknown_resource_error_contains_its_uri() {
    let server = server(Resource::text(URI, "x", ""))
        .resource(Resource::new("app://none", "none", || async {
            None::<String>
        }))
        .resource(Resource::new("app://own", "own", || async {
            Err::<String, _>(Error::resource_not_found("app://deep"))
        }));
    for revision in Revision::ALL {
        let code = if revision.is_modern() { -32602 } else { -32002 };
        for (uri, missing) in [
            ("app://y", "app://y"),
            ("no uri at all", "no uri at all"),
            ("", ""),
            ("app://none", "app://none"),
            ("app://own", "app://deep"),
        ] {
            let answer = read(&server, revision, uri).await;
            let message = format!("Resource not found: {missing}");
            let expected = json!({"code": code, "message": message, "data": {"uri": missing}});
            assert_eq!(answer["error"], expected, "{revision}");
        }
        let long = format!("app://{}", "é".repeat(10_000));
        let answer = read(&server, revision, &long).await;
        assert_eq!(answer["error"]["data"]["uri"], long);
        assert!(answer["error"]["message"].as_str().unwrap().len() < 600);
        for params in [json!({}), json!({"uri": 7})] {
            let answer = answer_to(&server, revision, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
}

async fn answer_to(server: &Server, revision: Revision, params: Value) -> Value {
    answer(server, revision, "resources/read", params).await
}

#[tokio::test]
async fn errors_keep_their_code_or_show_their_text() {
    let server = server(Resource::new(URI, "x", || async {
        Err::<String, _>(io::Error::other("the disk is on fire"))
    }))
    .resource(Resource::new("app://own", "own", || async {
        Err::<String, _>(Error::protocol(-32099, "quota").with_data(json!({"left": 0})))
    }))
    .resource(Resource::new("app://panics", "panics", || async {
        assert!(std::hint::black_box(false), "secret");
        ""
    }));
    for revision in Revision::ALL {
        let answer = read(&server, revision, URI).await;
        assert_eq!(
            answer["error"],
            json!({"code": -32603, "message": "the disk is on fire"})
        );
        let answer = read(&server, revision, "app://own").await;
        let expected = json!({"code": -32099, "message": "quota", "data": {"left": 0}});
        assert_eq!(answer["error"], expected);
        let session = testing::connect(&server).revision(revision).await.unwrap();
        // More than one call: from the third call on, a handler may run on another task.
        for _ in 0..4 {
            let error = session.read_resource("app://panics").await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR);
            assert!(!error.message().contains("secret"), "{error}");
        }
    }
}
