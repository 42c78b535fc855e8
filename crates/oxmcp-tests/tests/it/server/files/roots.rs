//! Clients' roots, which restrict the files that they may read.

use crate::server::files::*;

#[tokio::test]
async fn client_with_roots_reads_only_within_them() {
    let temp = Temp::new();
    temp.write("a/notes.txt", "a");
    temp.write("b/notes.txt", "b");
    let root = |path: &str| Root::new(format!("file://{}{path}", temp.served().display()));
    let limited = server(temp.files().listed(1));
    let own = server(temp.files().ignore_roots());
    for revision in Revision::ALL {
        for (roots, readable) in [
            (vec![root("/a")], [true, false]),
            (vec![root("/a/notes.txt")], [true, false]),
            (vec![root("/b/"), root("/a/")], [true, true]),
            (vec![root("")], [true, true]),
            (vec![Root::new("file:///nowhere")], [false, false]),
            (vec![], [false, false]),
        ] {
            let client = Client::new("rooted", "1.0.0").roots(roots);
            let session = testing::connect(&limited).client(&client);
            let session = session.revision(revision).await.unwrap();
            for (uri, readable) in ["t://a/notes.txt", "t://b/notes.txt"]
                .into_iter()
                .zip(readable)
            {
                let read = session.read_resource(uri).await;
                assert_eq!(read.is_ok(), readable, "{revision} {uri} {read:?}");
                if let Err(error) = read {
                    let message =
                        format!("Resource not found: {uri}\nit is outside the client's roots");
                    assert_eq!(error.message(), message);
                }
            }
            let session = testing::connect(&own).client(&client);
            let session = session.revision(revision).await.unwrap();
            session.read_resource("t://b/notes.txt").await.unwrap();
        }
        // Without declared roots there is no restriction.
        contents(&limited, revision, "t://b/notes.txt").await;
    }
}

#[tokio::test]
async fn strict_directory_is_closed_to_clients_without_roots() {
    let temp = Temp::new();
    temp.write("notes.txt", "x");
    let strict = server(temp.files().require_roots());
    let root = Root::new(format!("file://{}", temp.served().display()));
    for revision in Revision::ALL {
        let bare = Client::new("bare", "1.0.0");
        let session = testing::connect(&strict).client(&bare).revision(revision);
        let error = session.await.unwrap().read_resource("t://notes.txt").await;
        let message = error.unwrap_err().to_string();
        assert!(message.contains("the client has no roots"), "{message}");
        let rooted = Client::new("rooted", "1.0.0").roots([root.clone()]);
        let session = testing::connect(&strict).client(&rooted).revision(revision);
        session
            .await
            .unwrap()
            .read_resource("t://notes.txt")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn strict_directory_is_listed_only_with_roots() {
    let temp = Temp::new();
    temp.write("notes.txt", "x");
    let strict = || temp.files().require_roots();
    let later = Server::new("files", "1.0.0");
    later.add_resources(strict().list(9).unwrap()).unwrap();
    for server in [server(strict().listed(9)), later] {
        for revision in Revision::ALL {
            let bare = Client::new("bare", "1.0.0");
            let rooted = Client::new("rooted", "1.0.0").roots([Root::new("file:///nowhere")]);
            for (client, listed) in [(bare, 0), (rooted, 1)] {
                let session = testing::connect(&server).client(&client).revision(revision);
                let resources = session.await.unwrap().resources().all().await.unwrap();
                assert_eq!(resources.len(), listed, "{revision}");
            }
        }
    }
}

#[tokio::test]
async fn directory_given_with_parent_components_is_resolved() {
    let temp = Temp::new();
    temp.write("notes.txt", "x");
    fs::create_dir(temp.0.join("other")).unwrap();
    let files = file_resources(temp.0.join("other/../served")).uri_prefix("t://");
    let server = server(files);
    for (root, readable) in [("other", false), ("other/served", false), ("served", true)] {
        let root = Root::new(format!("file://{}/{root}", temp.0.display()));
        let client = Client::new("rooted", "1.0.0").roots([root.clone()]);
        let session = testing::connect(&server).client(&client).await.unwrap();
        let read = session.read_resource("t://notes.txt").await;
        assert_eq!(read.is_ok(), readable, "{root:?} {read:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn roots_are_always_the_clients_current_ones() {
    let temp = Temp::new();
    temp.write("notes.txt", "x");
    let server = server(temp.files());
    for revision in Revision::ALL {
        let client = Client::new("rooted", "1.0.0").roots([Root::new("file:///nowhere")]);
        let session = testing::connect(&server).client(&client);
        let session = session.revision(revision).await.unwrap();
        session.read_resource("t://notes.txt").await.unwrap_err();
        let root = Root::new(format!("file://{}", temp.served().display()));
        client.add_roots([root]).unwrap();
        // The server is notified before the next request.
        tokio::time::sleep(Duration::from_millis(50)).await;
        session.read_resource("t://notes.txt").await.unwrap();
    }
}
