//! Files as they are listed and read.

use std::fmt::Write;

use oxmcp::{Limits, testing::ScriptedPeer, transport::stream};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::sleep,
};

use crate::server::files::*;

#[tokio::test]
async fn files_are_read_in_every_revision() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    temp.write("empty", "");
    temp.write("deep/er/data.json", "{}");
    temp.write("picture.PNG", [0x89, b'P', b'N', b'G', 0]);
    temp.write("broken.txt", [b'a', 0xff]);
    temp.write("a b+c (é)?#%.md", "# x");
    let server = server(temp.files());
    for revision in Revision::ALL {
        for (uri, expected) in [
            (
                "t://notes.txt",
                json!({"mimeType": "text/plain", "text": "hello"}),
            ),
            ("t://empty", json!({"mimeType": "text/plain", "text": ""})),
            (
                "t://deep/er/data.json",
                json!({"mimeType": "application/json", "text": "{}"}),
            ),
            (
                "t://deep/er/d%61ta.json",
                json!({"mimeType": "application/json", "text": "{}"}),
            ),
            (
                "t://picture.PNG",
                json!({"mimeType": "image/png", "blob": "iVBORwA="}),
            ),
            (
                "t://broken.txt",
                json!({"mimeType": "text/plain", "blob": "Yf8="}),
            ),
            (
                "t://a b+c (é)%3F%23%25.md",
                json!({"mimeType": "text/markdown", "text": "# x"}),
            ),
            (
                "t://a%20b%2Bc%20%28%C3%A9%29%3F%23%25.md",
                json!({"mimeType": "text/markdown", "text": "# x"}),
            ),
        ] {
            let mut expected = expected;
            expected["uri"] = json!(uri);
            assert_eq!(
                contents(&server, revision, uri).await,
                expected,
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn file_uris_are_the_default() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    let files = file_resources(temp.served());
    let uri = format!("file://{}/notes.txt", temp.served().display());
    let server = server(files);
    assert_eq!(
        contents(&server, Revision::LATEST, &uri).await["text"],
        "hello"
    );
    let list = answer(
        &server,
        Revision::LATEST,
        "resources/templates/list",
        json!({}),
    )
    .await;
    let template = format!("file://{}/{{+path}}", temp.served().display());
    assert_eq!(
        list["result"]["resourceTemplates"],
        json!([{"uriTemplate": template, "name": "files"}])
    );
}

#[tokio::test]
async fn oversized_files_are_not_read() {
    let temp = Temp::new();
    temp.write("four", "1234");
    temp.write("five", "12345");
    File::create(temp.served().join("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let small = server(temp.files().max_bytes(4));
    let usual = server(temp.files());
    for revision in Revision::ALL {
        assert_eq!(contents(&small, revision, "t://four").await["text"], "1234");
        for (server, uri, limit) in [(&small, "t://five", "4"), (&usual, "t://huge", "16777216")] {
            let answer = read(server, revision, uri).await;
            let message = format!("the file is too large: the limit is {limit} bytes");
            assert_eq!(answer["error"], json!({"code": -32602, "message": message}));
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn non_utf8_names_are_percent_encoded() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let temp = Temp::new();
    let name = OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(temp.served().join(name), "latin").unwrap();
    let server = server(temp.files().listed(10));
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let listed = session.resources().all().await.unwrap();
        assert_eq!(listed[0].uri, "t://caf%E9.txt");
        assert_eq!(listed[0].name, "caf\u{fffd}.txt");
        for uri in ["t://caf%E9.txt", "t://caf%e9.txt"] {
            let read = session.read_resource(uri).await.unwrap();
            assert_eq!(read.contents[0].as_text(), Some("latin"), "{uri}");
        }
    }
}

#[tokio::test]
async fn file_list_is_bounded_and_can_be_refreshed() {
    let temp = Temp::new();
    for name in ["c/1", "a/2", "b", "a/1"] {
        temp.write(name, "x");
    }
    let server = server(temp.files().listed(3));
    let session = testing::connect(&server).await.unwrap();
    let uris = async || {
        let listed = session.resources().all().await.unwrap();
        listed.into_iter().map(|it| it.uri).collect::<Vec<_>>()
    };
    assert_eq!(uris().await, ["t://a/1", "t://a/2", "t://b"]);
    fs::remove_file(temp.served().join("b")).unwrap();
    assert_eq!(
        refusal(&server, Revision::LATEST, "t://b").await,
        "Resource not found: t://b"
    );
    temp.write("0.md", "new");
    server.remove_resources(uris().await);
    server.add_resources(temp.files().list(2).unwrap()).unwrap();
    assert_eq!(uris().await, ["t://0.md", "t://a/1"]);
    assert_eq!(temp.files().list(0).unwrap().len(), 0);
}

#[tokio::test]
async fn invalid_directory_is_refused_before_serving() {
    let temp = Temp::new();
    temp.write("file", "");
    for (files, said) in [
        (
            file_resources(temp.0.join("none")),
            "No such file or directory",
        ),
        (
            file_resources(temp.served().join("file")),
            "Not a directory",
        ),
        (temp.files().uri_prefix("docs"), "missing scheme"),
        (temp.files().uri_prefix("docs://{x}/"), "remove {}"),
        (
            file_resources(temp.0.join("none")).listed(1),
            "No such file or directory",
        ),
    ] {
        let error = testing::connect(&server(files)).await.unwrap_err();
        assert!(error.message().contains(said), "{error}");
    }
}

#[tokio::test]
async fn files_are_listed_as_a_template() {
    let temp = Temp::new();
    temp.write("notes.txt", "hello");
    let hint = CacheHint::public(Duration::from_secs(1));
    let template = ResourceTemplate::from(temp.files().name("docs").cache(hint)).title("Docs");
    let server = Server::new("files", "1.0.0").resource_template(template);
    let list = answer(
        &server,
        Revision::LATEST,
        "resources/templates/list",
        json!({}),
    )
    .await;
    let expected = json!([{"uriTemplate": "t://{+path}", "name": "docs", "title": "Docs"}]);
    assert_eq!(list["result"]["resourceTemplates"], expected);
    let read = read(&server, Revision::LATEST, "t://notes.txt").await;
    assert_eq!(read["result"]["ttlMs"], 1000);
}

/// For a client that reads no answers, only as many files are read as may be read at once.
#[tokio::test(start_paused = true)]
async fn stalled_client_limits_concurrent_file_reads() {
    const LONG: usize = 64 << 10;
    let temp = Temp::new();
    temp.write("file", "a".repeat(LONG));
    let limits = Limits::default().max_unsent_bytes(1024);
    let server = server(temp.files()).limits(limits);
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let _session = server.connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let mut all = String::new();
    for id in 0..100 {
        let params = json!({"uri": "t://file", "_meta": ScriptedPeer::modern_meta()});
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params});
        writeln!(all, "{request}").unwrap();
    }
    // The requests arrive together, before there are unsent answers.
    write.write_all(all.as_bytes()).await.unwrap();
    // The paused clock advances only when every task is idle.
    sleep(Duration::from_secs(1)).await;
    temp.write("file", "b".repeat(LONG));
    let mut lines = BufReader::new(read).lines();
    let (mut early, mut late) = (0, 0);
    for _ in 0..100 {
        let answer = lines.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(text.len(), LONG);
        *(if text.starts_with('a') {
            &mut early
        } else {
            &mut late
        }) += 1;
    }
    assert!(early <= 32 && late >= 68, "{early} were read early");
}
